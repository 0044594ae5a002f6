"""A hand-written policy: the first baseline that a trained bot has to beat.

    MatchState -> FieldView (own goal at -y, path of the ball) -> where to hit it -> one of 90 actions

It reads only what a live packet gives. A decision stands for 8 ticks and acts one tick late.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from rlgym_bridge.chaser.driver import Driver
from rlgym_bridge.chaser.perception import view_field
from rlgym_bridge.state import MatchState


class Chaser:
    """Drives at the ball, lines up with the goal, boosts, jumps and dodges; equal seeds play equally.

    Args:
        seed: Of all its variations; two in one match differ by their seats anyway.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._kickoffs = 0
        self.reset(())

    def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
        """Begin a kickoff: forget all, draw new variations.

        Args:
            seats: Rows of the state that it plays.
            seed: Of this kickoff; None counts the resets.
        """
        self._seats = [int(seat) for seat in seats]
        self._kickoffs += 1
        self._reset_seed = self._kickoffs if seed is None else int(seed)
        self._drivers: dict[tuple[int, int], Driver] = {}

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return an action for each of its seats.

        Args:
            obs: Ignored.
            state: N matches. A kickoff that comes without a reset is noticed for each match.

        Returns:
            (N, seats) int64, rows 0..89 of `LookupTableAction`.
        """
        actions = np.empty((state.matches, len(self._seats)), np.int64)
        for match in range(state.matches):
            row: list[float] = state.buffer[match].tolist()
            for column, seat in enumerate(self._seats):
                actions[match, column] = self._driver(match, seat).decide(view_field(row, state.layout, seat))
        return actions

    def _driver(self, match: int, seat: int) -> Driver:
        if (match, seat) not in self._drivers:
            seed = f"{self._seed} {self._reset_seed} {match} {seat}"  # text seeds are hashed alike everywhere
            self._drivers[match, seat] = Driver(Random(seed))
        return self._drivers[match, seat]


__all__ = ["Chaser"]
