"""Rate players on Elo's scale: a player who leads by 400 points wins ten times for each loss.

    one player against opponents whose ratings stay -> `rate_by_scores`    checkpoints against anchors
    all players of a league at once                 -> `rate_together`     standings
    a player that changes, win by win               -> `update_rating`     the policy in training

The first two find the ratings that make all results likeliest [Bradley and Terry 1952], whatever their order.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

CONFIDENCE_Z: Final = 1.96  # of a normal distribution, 95 % within
SCALE: Final = 400.0  # points of rating by which ten wins come to each loss [Elo's]
FIRST_RATING: Final = 1000.0  # points of the first anchor, and of a league's players in the mean
_NATURAL: Final = SCALE / math.log(10)  # points for which the odds of a win grow by e
_PRIOR: Final = 0.5  # matches won, and lost, that are added, so that ratings are finite
_GAIN: Final = 16.0  # points by which a win that nobody expected raises a player that changes
_ROUNDS, _LONGEST, _LEVEL = 200, 400.0, 1e-6  # of Newton's method: steps, and their points


@dataclass(frozen=True)
class EloRating:
    """A rating in points, and its standard deviation; 0 for a rating that is fixed."""

    rating: float
    deviation: float

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds, 95 % confidence; too wide where matches are drawn."""
        reach = CONFIDENCE_Z * self.deviation
        return self.rating - reach, self.rating + reach


def expect_score(lead: np.ndarray) -> np.ndarray:
    """Return the expected share of wins, 0..1, of players whose ratings lead by some points, of any shape."""
    share: np.ndarray = 1 / (1 + 10 ** (-lead / SCALE))
    return share


def update_rating(rating: float, opponent: float, score: float) -> float:
    """Return the rating of a player that changes, after a match: 1 won, 0.5 drawn, 0 lost."""
    return rating + _GAIN * (score - float(expect_score(np.array(rating - opponent))))


def rate_by_scores(scores: Sequence[tuple[float, float, int]]) -> EloRating:
    """Rate a player by its scores against opponents whose ratings stay.

    Scores are of each opponent, one at least: its rating; the share of matches that the player won, where a
    draw counts half; how many matches tell something. For each half a match won and half a match lost are
    added, which keeps ratings finite.
    """
    opponents = np.array([rating for rating, _, _ in scores])
    won = np.zeros((len(scores) + 1,) * 2)
    won[0, 1:] = [share * count + _PRIOR for _, share, count in scores]
    won[1:, 0] = [(1 - share) * count + _PRIOR for _, share, count in scores]
    return _as_ratings(*_fit(won, np.append(opponents.mean(), opponents), 1))[0]


def rate_together(players: Sequence[str], outcomes: Iterable[tuple[str, str, int]]) -> list[EloRating]:
    """Rate players, whose names differ, by their matches; in the mean they have `FIRST_RATING` points.

    To each player half a match won and half a match lost against an average one are added, so that those who
    have won all, or have not played, are rated, too. An outcome is two players, and the lead of the first:
    above 0 where it won, 0 for a draw. Deviations are those from the mean of all.
    """
    places, count = {name: place for place, name in enumerate(players)}, len(players)
    won = np.zeros((count + 1, count + 1))
    won[-1, :-1] = won[:-1, -1] = _PRIOR
    for one, other, lead in outcomes:
        score = (np.sign(lead) + 1) / 2
        won[places[one], places[other]] += score
        won[places[other], places[one]] += 1 - score
    ratings, covariance = _fit(won, np.zeros(count + 1), count)
    centred = np.eye(count) - 1 / count
    return _as_ratings(centred @ ratings + FIRST_RATING, centred @ covariance @ centred)


def _fit(won: np.ndarray, ratings: np.ndarray, free: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the likeliest ratings of the first `free` players and their covariance, by Newton's method."""
    # won[i, j]: matches that i won against j; ratings: points to begin with, of which the others stay.
    played, ratings = won + won.T, ratings.copy()
    for _ in range(_ROUNDS):
        expected = expect_score(ratings[:, None] - ratings)
        weights = played * expected * (1 - expected)
        information = (np.diag(weights.sum(1)) - weights)[:free, :free]
        step = _NATURAL * np.linalg.solve(information, (won - played * expected).sum(1)[:free])
        ratings[:free] += np.clip(step, -_LONGEST, _LONGEST)
        if np.abs(step).max() < _LEVEL:
            break
    return ratings[:free], _NATURAL**2 * np.linalg.inv(information)


def _as_ratings(ratings: np.ndarray, covariance: np.ndarray) -> list[EloRating]:
    deviations = np.sqrt(np.diag(covariance))
    return [EloRating(*pair) for pair in zip(ratings.tolist(), deviations.tolist(), strict=True)]
