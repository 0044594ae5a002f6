"""A hand-written policy, the first baseline for a trained bot to beat.

    MatchState -> FieldView (own goal at -y, path of the ball) -> where to hit it -> one of 90 actions

It reads only fields that live packets carry. A decision holds for 8 ticks and acts one tick late.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from rlgym_bridge.policy.chaser.driver import DODGE, DRIVE, Driver, view_field
from rlgym_bridge.state import MatchState


class Chaser:
    """Drives at the ball, lines up with the goal, boosts, jumps and dodges; equal seeds play the same.

    Two cars of one match differ in any case.
    """

    _kickoff: str = DODGE

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._kickoffs = 0
        self.reset(())

    def reset(self, cars: Sequence[int], seed: int | None = None) -> None:
        """Begin a kickoff: forget everything and draw new variations, by the number of resets or a seed."""
        self._cars = [int(car) for car in cars]
        self._kickoffs += 1
        self._reset_seed = self._kickoffs if seed is None else int(seed)
        self._drivers: dict[tuple[int, int], Driver] = {}

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Choose an action for each of its cars.

        Args:
            obs: Ignored.
            state: N matches. A kickoff without a reset is noticed in each match.

        Returns:
            `(N, cars)` int64, actions 0..89 of `LookupTableAction`.
        """
        actions = np.empty((state.matches, len(self._cars)), np.int64)
        for match in range(state.matches):
            row: list[float] = state.buffer[match].tolist()
            views = view_field(row, state.layout, self._cars)
            for column, (car, view) in enumerate(zip(self._cars, views, strict=True)):
                actions[match, column] = self._driver(match, car).decide(view)
        return actions

    def _driver(self, match: int, car: int) -> Driver:
        if (match, car) not in self._drivers:
            seed = f"{self._seed} {self._reset_seed} {match} {car}"  # text seeds are hashed alike everywhere
            self._drivers[match, car] = Driver(Random(seed), self._kickoff)
        return self._drivers[match, car]


class Charger(Chaser):
    """Plays as Chaser, but drives through the ball of a kickoff at once, and does not dodge into it.

    A policy that meets Chaser alone may learn to wait for its kickoff, and loses all others.
    """

    _kickoff = DRIVE


__all__ = ["Charger", "Chaser"]
