"""A policy as one row of numbers, so that it can lie in shared memory: the learner's, and older ones.

    tensors and normalisation -> pack -> row -> unpack -> NetworkPolicy, which plays with numpy

Nothing here needs torch: a collector starts quickly, stays small, and plays with the very code that plays
in a match.
"""

import math
from collections.abc import Mapping

import numpy as np

from rlgym_bridge.policy.manifest import Normalisation
from rlgym_bridge.policy.numpy_network import NetworkPolicy, network_builder
from rlgym_bridge.policy.shape import PolicyShape


def pack(shape: PolicyShape, weights: Mapping[str, np.ndarray], scaling: Normalisation | None) -> np.ndarray:
    """Return a policy as a row of numbers, float32.

    Args:
        shape: Of the policy.
        weights: Its tensors, named as in `rlgym_bridge.policy.numpy_layers`.
        scaling: Of its observations; None for none.
    """
    mean, std = (
        (np.zeros(shape.obs_size), np.ones(shape.obs_size))
        if scaling is None
        else (scaling.mean, scaling.std)
    )
    tensors = {**weights, "obs_mean": mean, "obs_std": std}
    return np.concatenate([np.ravel(tensors[name]) for name in shape.tensors], dtype=np.float32)


def tensors_of(shape: PolicyShape, row: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a row `(numbers,)` holds by the names of `shape.tensors`: views of it."""
    tensors, start = {}, 0
    for name, size in shape.tensors.items():
        tensors[name] = row[start : start + math.prod(size)].reshape(size)
        start += math.prod(size)
    return tensors


def weights_and_scaling(
    shape: PolicyShape, row: np.ndarray
) -> tuple[dict[str, np.ndarray], Normalisation | None]:
    """Return the weights of a row `(numbers,)`, views of it, and the scaling of observations."""
    tensors = tensors_of(shape, row)
    mean, std = tensors.pop("obs_mean"), tensors.pop("obs_std")
    if shape.obs_clip is None:
        return tensors, None
    return tensors, Normalisation(tuple(mean.tolist()), tuple(std.tolist()), shape.obs_clip)


def unpack(shape: PolicyShape, row: np.ndarray, seed: tuple[int, ...]) -> NetworkPolicy:
    """Return the policy of a row; it samples, from a random stream that `seed` begins.

    Args:
        shape: Of the policy.
        row: `(numbers,)` float32; copied.
        seed: Whole numbers, 0 or more.

    Raises:
        ValueError: A weight is not finite.
    """
    tensors, scaling = weights_and_scaling(shape, row)
    policy = NetworkPolicy(
        tensors, shape.distribution, shape.sizes, normalisation=scaling, activation=shape.activation,
        mirror=shape.mirror, masked=shape.masked,
        build=network_builder(shape.network, shape.names, (shape.obs_size, shape.outputs), shape.activation),
    )  # fmt: skip
    policy.reset(seed)
    return policy
