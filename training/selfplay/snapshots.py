"""Older versions of the policy to play against, each one row of numbers, which can lie in shared memory.

Nothing here needs torch: a collector starts quickly, stays small, and plays with the code of a match.
"""

import math
from collections.abc import Mapping
from random import Random
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.manifest import Normalisation
from rlgym_bridge.policy.numpy_network import NetworkPolicy, network_builder
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.training.elo import expect_score, update_rating

_EVEN_SHARE: Final = 0.2
_LEAST_NEAR: Final = 1e-9  # where the policy is far above all snapshots


class Snapshots:
    """Some of all versions that there were, each of them as likely to be here as any other.

    Each keeps the rating that the policy had when it was made. So the scale stays where the 0 points of the
    untrained policy, `first`, put it. `rows` are at most `most` policies, as `pack` makes them, `ratings`
    theirs, and `rating` that of the policy in training, in Elo points.
    """

    def __init__(self, most: int, first: np.ndarray) -> None:
        self._most, self._offered = most, 1
        self.rows, self.ratings, self.rating = [first], [0.0], 0.0
        self._drawn: tuple[int, int] | None = None  # agent steps, and the snapshot drawn for them

    def offer(self, policy: np.ndarray, random: np.random.Generator) -> None:
        """Add a version `(numbers,)`, perhaps in place of another [reservoir sampling, Vitter 1985]."""
        self._offered += 1
        place = len(self.rows) if len(self.rows) < self._most else int(random.integers(self._offered))
        if place < self._most:
            self.rows[place : place + 1], self.ratings[place : place + 1] = [policy], [self.rating]

    def count(self, snapshot: int, won: int, lost: int, seed: int) -> None:
        """Rate the policy by the goals of an iteration against a snapshot, each of which counts as a match.

        `seed` is that of their order: a rating trusts what comes last most.
        """
        goals = [1] * won + [0] * lost
        Random(seed).shuffle(goals)
        for goal in goals:
            self.rating = update_rating(self.rating, self.ratings[snapshot], goal)

    def weigh_by_rating(self) -> np.ndarray:
        """Return the share of each snapshot where near ratings are met more often, `(snapshots,)`.

        The share of a snapshot grows with p (1 - p), where p is the policy's chance of the next goal by their
        ratings. A fifth is spread evenly, so that no version is forgotten.
        """
        chances = expect_score(self.rating - np.array(self.ratings))
        near = chances * (1 - chances) + _LEAST_NEAR
        shares: np.ndarray = (1 - _EVEN_SHARE) * near / near.sum() + _EVEN_SHARE / len(near)
        return shares

    def draw(self, steps: int, random: np.random.Generator, by_rating: bool) -> int:
        """Draw the snapshot that an iteration meets; return the same one for the same agent steps.

        With overlap it is drawn before the goals of the iteration before are counted.
        """
        if self._drawn is None or self._drawn[0] != steps:
            count = len(self.rows)
            number = random.choice(count, p=self.weigh_by_rating()) if by_rating else random.integers(count)
            self._drawn = steps, int(number)
        return self._drawn[1]

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        rows = np.stack(self.rows)
        return {"snapshots": rows, "offered": self._offered, "ratings": [self.rating, *self.ratings]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what a checkpoint kept."""
        self.rows, self._offered = list(state["snapshots"].numpy()), state["offered"]
        self.rating, *self.ratings = map(float, state["ratings"])
        self._drawn = None


def pack(shape: PolicyShape, weights: Mapping[str, np.ndarray], scaling: Normalisation | None) -> np.ndarray:
    """Return a policy as a row `(numbers,)` float32: its tensors in the order of `shape.tensors`."""
    mean, std = np.zeros(shape.obs_size), np.ones(shape.obs_size)
    if scaling is not None:
        mean, std = np.array(scaling.mean), np.array(scaling.std)
    tensors = {**weights, "obs_mean": mean, "obs_std": std}
    return np.concatenate([np.ravel(tensors[name]) for name in shape.tensors], dtype=np.float32)


def tensors_of(shape: PolicyShape, row: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a row `(numbers,)` holds by the names of `shape.tensors`: views of it."""
    tensors, start = {}, 0
    for name, size in shape.tensors.items():
        tensors[name] = row[start : start + math.prod(size)].reshape(size)
        start += math.prod(size)
    return tensors


def unpack(shape: PolicyShape, row: np.ndarray, seed: tuple[int, ...]) -> NetworkPolicy:
    """Return the policy of a row `(numbers,)`, copied; it samples, from a stream that `seed` begins."""
    tensors, scaling = tensors_of(shape, row), None
    mean, std = tensors.pop("obs_mean"), tensors.pop("obs_std")
    if shape.obs_clip is not None:
        scaling = Normalisation(tuple(mean.tolist()), tuple(std.tolist()), shape.obs_clip)
    policy = NetworkPolicy(
        tensors, shape.distribution, shape.sizes, normalisation=scaling, activation=shape.activation,
        mirror=shape.mirror, masked=shape.masked,
        build=network_builder(shape.network, shape.names, (shape.obs_size, shape.outputs), shape.activation),
    )  # fmt: skip
    policy.reset(seed)
    return policy
