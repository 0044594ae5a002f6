"""Rate a player on Elo's scale by its matches against opponents whose ratings are fixed.

    score against each opponent -> the rating that makes it likeliest -> rating, deviation

Opponents do not change by it, so a rating depends on the player's own matches alone, not on their order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rlgym_bridge.training.intervals import CONFIDENCE_Z

SCALE: Final = 400.0
"""Points of rating by which ten wins come to each loss [Elo's]."""

_PRIOR: Final = 0.5  # matches won, and lost, that are added for each opponent, so that ratings are finite
_FAR: Final = 4000.0  # points beyond the opponents within which a rating is looked for
_HALVINGS: Final = 60


@dataclass(frozen=True)
class EloRating:
    """A rating and how far it may be off.

    Attributes:
        rating: In points.
        deviation: Standard deviation in points; 0 for a rating that is fixed.
    """

    rating: float
    deviation: float

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds, 95 % confidence; too wide where matches are drawn."""
        reach = CONFIDENCE_Z * self.deviation
        return self.rating - reach, self.rating + reach


def expect_score(lead: float) -> float:
    """Return the expected share of wins, 0..1, of a player whose rating leads by some points."""
    return 1 / (1 + 10 ** (-lead / SCALE))


def rate_by_scores(scores: Sequence[tuple[float, float, int]]) -> EloRating:
    """Rate a player by its scores.

    For each opponent half a match won and half a match lost are added, which keeps ratings finite where all
    matches were won or lost.

    Args:
        scores: Of each opponent, one at least: its rating; the share of matches that the player won, where a
            draw counts half; how many matches tell something.
    """
    played = [(rating, share * count + _PRIOR, count + 2 * _PRIOR) for rating, share, count in scores]
    low, high = (
        sign * _FAR + edge(rating for rating, _, _ in played) for sign, edge in ((-1, min), (1, max))
    )
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if sum(won - count * expect_score(middle - rating) for rating, won, count in played) > 0:
            low = middle
        else:
            high = middle
    expected = [(expect_score(low - rating), count) for rating, _, count in played]
    information = sum(count * share * (1 - share) for share, count in expected)
    return EloRating(low, SCALE / math.log(10) / math.sqrt(information))
