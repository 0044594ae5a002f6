"""Rate players by the results of their matches with openskill (Plackett-Luce).

A rating is a mean and a deviation. Everybody starts at 25.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from openskill.models import PlackettLuce

_ORDERS = 10  # of the results, over which a rating is the mean


@dataclass(frozen=True)
class Rating:
    """The rating of one player.

    Attributes:
        name: Of the player.
        mean, deviation: openskill's mu and sigma.
    """

    name: str
    mean: float
    deviation: float

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds between which the rating lies with 95 % confidence."""
        return self.mean - 1.96 * self.deviation, self.mean + 1.96 * self.deviation


def rate_outcomes(
    players: Sequence[str], outcomes: Iterable[tuple[str, str, int]], seed: int = 0
) -> list[Rating]:
    """Rate players by the results of their matches.

    A rating trusts what comes last most, so it is the mean over some orders of the results.

    Args:
        players: Their names, all different.
        outcomes: Two players, and the lead of the first: above 0 where it won, 0 for a draw.
        seed: Of the orders.

    Returns:
        In the order of `players`; everybody starts at 25.
    """
    model, random, shuffled = PlackettLuce(), Random(seed), list(outcomes)
    totals = dict.fromkeys(players, (0.0, 0.0))
    for _ in range(_ORDERS):
        random.shuffle(shuffled)
        ratings = {player: model.rating() for player in players}
        for a, b, lead in shuffled:
            [[ratings[a]], [ratings[b]]] = model.rate(
                [[ratings[a]], [ratings[b]]], ranks=[int(lead < 0), int(lead > 0)]
            )
        for player, (mean, deviation) in totals.items():
            totals[player] = mean + ratings[player].mu, deviation + ratings[player].sigma
    return [Rating(name, mean / _ORDERS, deviation / _ORDERS) for name, (mean, deviation) in totals.items()]
