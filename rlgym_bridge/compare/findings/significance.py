"""Test whether one explanation fits better than another, over blocks of time that do not overlap."""

from math import comb, exp, log
from typing import Final

import numpy as np

LEVEL: Final = 0.01
"""Chance of any false claim of a test family in a comparison of data in which nothing is wrong: a hundred
comparisons of good recordings may raise one alarm. Each claim of a family has its share of it."""

BLOCK: Final = 120.0
"""Ticks of a block. Windows of a block count as one: what is hidden at the start of one window, as the time
since a jump, lasts for up to 150 ticks [RocketSim] and puts its neighbours off as well."""

_DRAWS: Final = 50_000  # of signs: the least p-value is 0.00002, a hundredth of what tests are held to
_EXACT: Final = 14  # differences up to which all signs are tried
_BINOMIAL: Final = 200  # up to which each term is added
_NOTHING: Final = 1e-9  # differences below it are ties


def sign_test(better: int, worse: int) -> float:
    """Return the chance that at least `better` of all counted blocks are better, were both as likely.

    Args:
        better: Blocks that are better; ties count nowhere.
        worse: Blocks that are worse.

    Returns:
        The one-sided p-value, 1 where there are no blocks.
    """
    count = better + worse
    return float(sum(comb(count, number) for number in range(better, count + 1)) / 2**count)


def binomial_tail(hits: int, count: int, share: float) -> float:
    """Return the chance of at least so many hits among `count`, each of which is a hit with a chance `share`.

    For many the bound of Chernoff, which is larger.
    """
    if count <= _BINOMIAL:
        chances = (comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(hits, count + 1))
        return min(float(sum(chances)), 1.0)
    part = hits / count
    if part <= share:
        return 1.0
    rest = (1 - part) * log((1 - part) / (1 - share)) if part < 1 else 0.0
    return exp(-count * (part * log(part / share) + rest))


def flip_test(differences: np.ndarray) -> float:
    """Return the chance that signs drawn at random give a sum as large: a paired permutation test.

    Args:
        differences: `(blocks,)` of any unit, above 0 where the explanation is better; ties count nowhere.

    Returns:
        The one-sided p-value: exact for few blocks, at least 0.00002 for many.
    """
    values = differences[np.abs(differences) > _NOTHING]
    total = float(values.sum()) - _NOTHING
    if not len(values):
        return 1.0
    if len(values) <= _EXACT:
        codes = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
        return float(((1 - 2 * codes) @ values >= total).mean())
    signs = np.random.default_rng(0).integers(0, 2, (_DRAWS, len(values)), dtype=np.int8) * 2 - 1
    return float((1 + (signs @ values >= total).sum()) / (1 + _DRAWS))
