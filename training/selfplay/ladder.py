"""Rate the policy in training (openskill), by goals against its older versions.

    goals in the matches against a snapshot -> Plackett-Luce -> rating

Every goal counts as a game won. A snapshot keeps the rating that the policy had when it was made, so that
the scale stays where the untrained policy's 25 put it.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np
from openskill.models import PlackettLuce

_EVEN_SHARE: Final = 0.2
_LEAST_NEAR: Final = 1e-9  # where the policy is far above all snapshots
_TAU: Final = 0.3  # added to the deviation at each goal, since the policy changes; openskill's own is 0.083

Mark = tuple[float, float]  # mean and deviation


class Ladder:
    """The ratings of one run.

    Attributes:
        marks: Mean and deviation of the policy, then of each snapshot.
    """

    def __init__(self) -> None:
        self._model = PlackettLuce(tau=_TAU)
        untrained = self._model.rating()
        self.marks: list[Mark] = [(untrained.mu, untrained.sigma)] * 2  # the first snapshot is the start

    @property
    def rating(self) -> float:
        """Mean of the policy's rating; 25 for the untrained one [openskill's default]."""
        return self.marks[0][0]

    def count(self, snapshot: int, won: int, lost: int, seed: int) -> None:
        """Take in the goals of an iteration.

        Args:
            snapshot: Played against, from 0.
            won: Goals of the policy.
            lost: Goals of the snapshot.
            seed: Of their order: a rating trusts what comes last most.
        """
        goals = [0] * won + [1] * lost
        Random(seed).shuffle(goals)
        for goal in goals:
            both = [[self._model.rating(*self.marks[i])] for i in (0, 1 + snapshot)]
            [[policy], _] = self._model.rate(both, ranks=[goal, 1 - goal])
            self.marks[0] = (policy.mu, policy.sigma)

    def weigh_by_rating(self) -> np.ndarray:
        """Return how likely each snapshot is to be met where near ratings are met more often.

        The share of a snapshot grows with p (1 - p), where p is the policy's chance of the next goal by their
        ratings. A fifth is spread evenly, so that no version is forgotten.

        Returns:
            `(snapshots,)` shares that make 1.
        """
        policy, *others = (self._model.rating(*mark) for mark in self.marks)
        chances = np.array([self._model.predict_win([[policy], [other]])[0] for other in others])
        near = chances * (1 - chances) + _LEAST_NEAR
        shares: np.ndarray = (1 - _EVEN_SHARE) * near / near.sum() + _EVEN_SHARE / len(near)
        return shares

    def keep(self, snapshot: int) -> None:
        """Give a snapshot, new or replaced, the rating that the policy has now."""
        self.marks[1 + snapshot : 2 + snapshot] = [self.marks[0]]

    def restore(self, marks: Sequence[Sequence[float]]) -> None:
        """Go on with the marks of a checkpoint."""
        self.marks = [(mean, deviation) for mean, deviation in marks]
