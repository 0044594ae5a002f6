"""Older versions of the policy to play against."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from rlgym_bridge.training.selfplay.ladder import Ladder


class Snapshots:
    """Some of all versions that there were, each of them as likely to be here as any other.

    Args:
        most: How many are kept.
        first: The untrained policy, as a row of `rlgym_bridge.training.selfplay.policy_rows`.

    Attributes:
        rows: The policies.
        ladder: How strong they and the policy in training are.
    """

    def __init__(self, most: int, first: np.ndarray) -> None:
        self._most, self._offered = most, 1
        self.rows = [first]
        self.ladder = Ladder()
        self._drawn: tuple[int, int] | None = None  # agent steps, and the snapshot drawn for them

    def offer(self, policy: np.ndarray, random: np.random.Generator) -> None:
        """Add a version to the opponent pool, perhaps in place of another [reservoir sampling, Vitter 1985].

        Args:
            policy: Its weights as a row, `(numbers,)` float32; see `selfplay/policy_rows.py`.
            random: Draws the place.
        """
        self._offered += 1
        if len(self.rows) < self._most:
            self.rows.append(policy)
            self.ladder.keep(len(self.rows) - 1)
            return
        place = int(random.integers(self._offered))
        if place < len(self.rows):
            self.rows[place] = policy
            self.ladder.keep(place)

    def draw(self, steps: int, random: np.random.Generator, by_rating: bool) -> int:
        """Draw the snapshot that an iteration meets; asked again for it, return the same one.

        With overlap it is drawn before the goals of the iteration before are counted.

        Args:
            steps: Agent steps at the iteration's beginning.
            random: Draws it.
            by_rating: Whether near ratings are met more often, see `Ladder.weigh_by_rating`.
        """
        if self._drawn is None or self._drawn[0] != steps:
            count = len(self.rows)
            shares = self.ladder.weigh_by_rating() if by_rating else None
            number = random.integers(count) if shares is None else random.choice(count, p=shares)
            self._drawn = steps, int(number)
        return self._drawn[1]

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {
            "snapshots": torch.from_numpy(np.stack(self.rows)),
            "offered": self._offered,
            "ratings": [list(mark) for mark in self.ladder.marks],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what a checkpoint kept."""
        self.rows, self._offered = list(state["snapshots"].numpy()), state["offered"]
        self.ladder.restore(state["ratings"])
        self._drawn = None
