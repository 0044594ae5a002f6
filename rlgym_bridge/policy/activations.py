"""Functions between a network's layers, in numpy, as torch computes them by default."""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

LEAKY_SLOPE: Final = 0.01
"""Slope of a leaky ReLU below 0 [torch's default]."""

NORM_EPS: Final = 1e-5
"""Number that layer normalisation adds to the variance [torch's default]."""

_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_SCALE: Final = 0.3275911
"""The error function to 1.5e-7 [Abramowitz and Stegun, 7.1.26]."""


def _relu(values: np.ndarray) -> None:
    np.maximum(values, 0, out=values)


def _leaky_relu(values: np.ndarray) -> None:
    np.maximum(values, values * np.float32(LEAKY_SLOPE), out=values)


def _tanh(values: np.ndarray) -> None:
    np.tanh(values, out=values)


def _silu(values: np.ndarray) -> None:
    """Multiply by the logistic function, written so that no exponential overflows."""
    half = values * np.float32(0.5)
    np.tanh(half, out=values)
    values += 1
    values *= half


def _gelu(values: np.ndarray) -> None:
    """Multiply by the normal distribution's cumulative function, exactly, not by tanh."""
    size = np.abs(values)
    scaled = size * np.float32(np.sqrt(0.5))
    step = 1 / (1 + np.float32(_ERF_SCALE) * scaled)
    tail = np.zeros_like(step)
    for factor in reversed(_ERF):
        tail += np.float32(factor)
        tail *= step
    # Beyond 10 it is 0 in float32 as well, and its square would overflow far out.
    tail *= np.exp(-np.square(np.minimum(scaled, 10)))
    tail *= size
    tail *= np.float32(0.5)
    np.maximum(values, 0, out=values)
    values -= tail


ACTIVATIONS: Final[Mapping[str, Callable[[np.ndarray], None]]] = {
    "relu": _relu, "leaky_relu": _leaky_relu, "tanh": _tanh, "silu": _silu, "gelu": _gelu,
}  # fmt: skip
"""For each name a function that changes float32 numbers of any shape in place."""


def normalise_layer(values: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> None:
    """Give each row the mean 0 and the variance 1, times a weight, plus a bias, in place.

    Args:
        values: `(n,)` or `(rows, n)` float32.
        weight: `(n,)` float32.
        bias: `(n,)` float32.
    """
    if values.ndim == 1:  # a live bot: numbers in place of arrays of one cost a third
        count = len(values)
        values -= np.add.reduce(values) / np.float32(count)
        variance_of_all = float(np.dot(values, values)) / count
        values *= np.float32(1 / math.sqrt(variance_of_all + NORM_EPS))
        values *= weight
        values += bias
        return
    values -= values.mean(-1, keepdims=True)
    variance = np.square(values).mean(-1, keepdims=True)
    values /= np.sqrt(variance + np.float32(NORM_EPS))
    values *= weight
    values += bias
