"""The loss of windows, by which explanations are compared, and the amount of an effect that leaves least."""

from typing import Final

import numpy as np

NOISE: Final = 0.3
"""uu/s; what a window is off below it counts little."""

_AMOUNTS: Final = 24  # amounts tried for each explanation that is linear


def loss_of(errors: np.ndarray) -> np.ndarray:
    """Return the log of how far windows are off, `(windows,)`; what is below the noise counts little."""
    return np.asarray(0.5 * np.log1p((errors**2).sum(-1) / NOISE**2))


def fit_amount(base: np.ndarray, effect: np.ndarray, bounds: tuple[float, float]) -> float:
    """Return how much of an effect, `(windows, numbers)`, the windows have: what leaves least of them."""
    lengths = (effect**2).sum(1)
    shows = lengths > NOISE**2 * 1e-2
    if not shows.any():
        return 0.0
    amounts = ((base * effect).sum(1)[shows] / lengths[shows]).clip(*bounds)
    every = np.unique(np.append(np.quantile(amounts, np.linspace(0.02, 0.98, _AMOUNTS)), 0.0))
    losses = loss_of(base[None] - every[:, None, None] * effect[None]).mean(1)
    return float(every[int(losses.argmin())])
