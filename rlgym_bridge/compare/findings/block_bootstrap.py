"""Intervals of medians over windows that overlap: whole blocks of them are drawn, not windows."""

from typing import Final

import numpy as np

from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import HORIZONS

LEAST_BLOCKS: Final = 7
"""Fewer prove no gap: the medians of 6 blocks lie above any limit by chance in 1.6 %, of 7 in 0.8 %."""

_LEVEL: Final = 0.01
_DRAWS: Final = 400
_AT_ONCE: Final = 2**22  # numbers that are drawn together


def blocks_of(found: Errors, column: int, here: np.ndarray) -> np.ndarray:
    """Return in which block some windows lie: those of a body that begin within one horizon.

    Args:
        found: The errors of all windows.
        column: Which horizon.
        here: `(windows,)` bool, which windows.

    Returns:
        `(chosen windows,)` int64, from 0.
    """
    began = found.began[here, column] // HORIZONS[column]
    origins = np.array([found.origins[window][:2] for window in np.flatnonzero(here).tolist()])
    keys = np.column_stack([origins, began]) if len(began) else np.empty((0, 3))
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1))


def median_interval(errors: np.ndarray, blocks: np.ndarray) -> tuple[float, float]:
    """Return the interval of a median of errors that holds it with 99 %, from blocks drawn at random.

    Args:
        errors: `(windows,)`, one or more.
        blocks: `(windows,)` the block of each, numbered from 0 without gaps.
    """
    count = int(blocks.max()) + 1
    order = np.argsort(errors, kind="stable")
    sorted_errors, sorted_blocks = errors[order], blocks[order]
    random = np.random.default_rng(0)
    medians: list[np.ndarray] = []
    step = max(1, _AT_ONCE // len(errors))
    for start in range(0, _DRAWS, step):
        draws = min(step, _DRAWS - start)
        drawn = random.multinomial(count, np.full(count, 1 / count), draws)  # (draws, blocks)
        weights = np.cumsum(drawn[:, sorted_blocks], axis=1)
        half = weights[:, -1:] / 2
        below, above = (weights >= half).argmax(1), (weights > half).argmax(1)
        medians.append((sorted_errors[below] + sorted_errors[above]) / 2)
    low, high = np.percentile(np.concatenate(medians), [50 * _LEVEL, 100 - 50 * _LEVEL])
    return float(low), float(high)
