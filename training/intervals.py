"""Confidence intervals of shares and of medians, 95 %."""

import math
from typing import Final

import numpy as np

CONFIDENCE_Z: Final = 1.96  # of a normal distribution, 95 % within


def share_interval(share: float, count: int) -> tuple[float, float]:
    """Return the bounds of a share (Wilson's interval).

    Args:
        share: What was found, 0..1.
        count: In how many trials, 1 or more.
    """
    z = CONFIDENCE_Z
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def median_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the median of some values and its bounds: two of the values, by their ranks.

    No shape of the distribution is assumed. With fewer than six values, the bounds are the extremes.

    Args:
        values: `(n,)`, one at least; infinity where a time was not reached.
    """
    ordered, count = np.sort(values), len(values)
    reach = CONFIDENCE_Z * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - reach), math.ceil(count / 2 + reach)
    middle = ordered[[(count - 1) // 2, count // 2]]
    median = middle[0] if middle[0] == middle[1] else middle.mean()
    return float(median), float(ordered[max(low, 1) - 1]), float(ordered[min(high + 1, count) - 1])
