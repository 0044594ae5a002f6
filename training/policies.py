"""A policy as one row of numbers, so that it can lie in shared memory: the learner's, and older ones.

    tensors and normalisation -> pack -> row -> unpack -> NetworkPolicy, which plays with numpy

Nothing here needs torch: a collector starts quickly, stays small, and plays with the very code that plays
in a match.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rlgym_bridge.manifest import Normalisation
from rlgym_bridge.network import NetworkPolicy


@dataclass(frozen=True)
class PolicyShape:
    """What a policy takes and gives.

    Attributes:
        obs_size: Numbers in an observation.
        distribution: `"categorical"`, `"multi_categorical"` or `"gaussian"`.
        sizes: Choices of each decision; `(k,)` for k real numbers.
        layers: Widths of the hidden layers.
        obs_clip: Normalised observations are clipped to this; None where they are taken as they are.
    """

    obs_size: int
    distribution: str
    sizes: tuple[int, ...]
    layers: tuple[int, ...]
    obs_clip: float | None

    @property
    def outputs(self) -> int:
        """Numbers that the last layer gives."""
        return sum(self.sizes)

    @property
    def action(self) -> tuple[tuple[int, ...], str]:
        """Shape and dtype of one car's action."""
        if self.distribution == "categorical":
            return (), "int64"
        if self.distribution == "multi_categorical":
            return (len(self.sizes),), "int64"
        return self.sizes, "float32"

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all that a row holds, by name and in order."""
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (inputs, outputs) in enumerate(pairwise((self.obs_size, *self.layers, self.outputs))):
            shapes |= {f"layers.{i}.weight": (outputs, inputs), f"layers.{i}.bias": (outputs,)}
        if self.distribution == "gaussian":
            shapes["log_std"] = self.sizes
        return shapes | {"obs_mean": (self.obs_size,), "obs_std": (self.obs_size,)}

    @property
    def numbers(self) -> int:
        """Length of a row."""
        return sum(math.prod(shape) for shape in self.tensors.values())


def pack(shape: PolicyShape, weights: Mapping[str, np.ndarray], scaling: Normalisation | None) -> np.ndarray:
    """Return a policy as a row of numbers, float32.

    Args:
        shape: Of the policy.
        weights: Its tensors, named as in `rlgym_bridge.network`.
        scaling: Of its observations; None for none.
    """
    mean, std = (np.zeros(shape.obs_size), np.ones(shape.obs_size)) if scaling is None else scaling[:2]
    tensors = {**weights, "obs_mean": mean, "obs_std": std}
    return np.concatenate([np.ravel(tensors[name]) for name in shape.tensors], dtype=np.float32)


def unpack(shape: PolicyShape, row: np.ndarray, seed: tuple[int, ...]) -> NetworkPolicy:
    """Return the policy of a row; it samples, from a random stream that `seed` begins.

    Args:
        shape: Of the policy.
        row: `(numbers,)` float32; copied.
        seed: Whole numbers, 0 or more.

    Raises:
        ValueError: A weight is not finite.
    """
    tensors, start = {}, 0
    for name, size in shape.tensors.items():
        tensors[name] = row[start : start + math.prod(size)].reshape(size)
        start += math.prod(size)
    mean, std = tensors.pop("obs_mean"), tensors.pop("obs_std")
    scaling = None
    if shape.obs_clip is not None:
        scaling = Normalisation(tuple(mean.tolist()), tuple(std.tolist()), shape.obs_clip)
    policy = NetworkPolicy(tensors, shape.distribution, shape.sizes, normalisation=scaling)
    policy.reset(seed)
    return policy
