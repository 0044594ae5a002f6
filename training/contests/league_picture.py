"""Draw a league: ratings with their intervals, and the win rate of each entry against each."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from rlgym_bridge.training.contests.standings import EntryStanding
from rlgym_bridge.training.evaluate import Evaluation

matplotlib.rcParams["text.parse_math"] = False  # a name may hold $

_ROW_INCHES = 0.42


def draw_league(
    standings: Sequence[EntryStanding], pairs: Mapping[tuple[str, str], tuple[Evaluation, int]], path: Path
) -> None:
    """Write a picture of a league.

    Args:
        standings: The best first.
        pairs: As `pairs_of` returns them.
        path: PNG file.
    """
    height = 1.6 + _ROW_INCHES * len(standings)
    width = 7.0 + 0.75 * len(standings)
    ratios = [4.5, 2.5 + 0.75 * len(standings)]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(width, max(height, 3.0)), layout="constrained", width_ratios=ratios
    )
    _draw_ratings(left, standings)
    _draw_win_rates(right, standings, pairs)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_ratings(axes: Axes, standings: Sequence[EntryStanding]) -> None:
    places = np.arange(len(standings))
    means = [one.rating.mean for one in standings]
    reach = [mean - one.rating.interval[0] for mean, one in zip(means, standings, strict=True)]
    axes.errorbar(means, places, xerr=reach, fmt="o", color="tab:blue", capsize=3)
    axes.axvline(25, color="grey", linewidth=0.8, linestyle=":")
    axes.set_yticks(places, [one.name for one in standings])
    axes.set(
        xlabel="rating (openskill; all start at 25), 95 %", title="Ratings", ylim=(len(places) - 0.5, -0.5)
    )
    axes.grid(axis="x", alpha=0.3)


def _draw_win_rates(
    axes: Axes, standings: Sequence[EntryStanding], pairs: Mapping[tuple[str, str], tuple[Evaluation, int]]
) -> None:
    names = [one.name for one in standings]
    rates = np.full((len(names), len(names)), np.nan)
    for i, standing in enumerate(standings):
        if standing.against_itself is not None:
            rates[i, i] = standing.against_itself.win_rate
    for (one, other), (evaluation, _) in pairs.items():
        i, j = names.index(one), names.index(other)
        rates[i, j], rates[j, i] = evaluation.win_rate, 1 - evaluation.win_rate
    axes.imshow(rates, cmap="RdBu", vmin=0, vmax=1, aspect="auto")
    for (i, j), rate in np.ndenumerate(rates):
        if not np.isnan(rate):
            colour = "white" if abs(rate - 0.5) > 0.3 else "black"
            axes.text(j, i, f"{rate:.0%}", ha="center", va="center", color=colour, fontsize="small")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize="small")
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.set(title="Win rate of the row against the column")
