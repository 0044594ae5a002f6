"""Choose actions at random: the opponent that a beginner's bot has to beat first."""

from collections.abc import Sequence

import numpy as np

from rlgym_bridge.state import MatchState

ACTIONS = 90  # of LookupTableAction


class RandomPolicy:
    """Chooses one of the 90 actions of `LookupTableAction` at random; equal seeds play the same.

    Each action is as likely as every other, so it plays as an untrained policy does.
    """

    def __init__(self) -> None:
        self._resets = 0
        self.reset(())

    def reset(self, cars: Sequence[int], seed: int | None = None) -> None:
        """Begin an episode.

        Args:
            cars: Places in the state of the cars that it plays.
            seed: Of the actions; None counts the resets.
        """
        self._cars = len(cars)
        self._resets += 1
        self._random = np.random.default_rng(self._resets if seed is None else seed)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Choose an action for each of its cars.

        Args:
            obs: Ignored.
            state: N matches.

        Returns:
            `(N, cars)` int64, actions 0..89.
        """
        return self._random.integers(ACTIONS, size=(state.matches, self._cars))
