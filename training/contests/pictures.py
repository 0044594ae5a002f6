"""Draw ratings, leagues and what stress costs."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from rlgym_bridge.training.contests.league import EntryStanding, Pairs
from rlgym_bridge.training.contests.ratings import Anchor, RatedCheckpoint
from rlgym_bridge.training.contests.stress import CONTROL, Loss
from rlgym_bridge.training.elo import FIRST_RATING, EloRating

matplotlib.use("Agg")
matplotlib.rcParams["text.parse_math"] = False  # a name may hold $

_ROW_INCHES = 0.42


def draw_league(standings: Sequence[EntryStanding], pairs: Pairs, path: Path) -> None:
    """Write a picture of a league as a PNG file; see `describe_league`."""
    height, width = 1.6 + _ROW_INCHES * len(standings), 7.0 + 0.75 * len(standings)
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
    means = [one.rating.rating for one in standings]
    reach = [mean - one.rating.interval[0] for mean, one in zip(means, standings, strict=True)]
    axes.errorbar(means, places, xerr=reach, fmt="o", color="tab:blue", capsize=3)
    axes.axvline(FIRST_RATING, color="grey", linewidth=0.8, linestyle=":")
    axes.set_yticks(places, [one.name for one in standings])
    axes.set(xlabel="Elo (an average entry: 1000), 95 %", title="Ratings", ylim=(len(places) - 0.5, -0.5))
    axes.grid(axis="x", alpha=0.3)


def _draw_win_rates(axes: Axes, standings: Sequence[EntryStanding], pairs: Pairs) -> None:
    names = [one.name for one in standings]
    rates = np.full((len(names), len(names)), np.nan)
    for i, standing in enumerate(standings):
        if standing.against_itself is not None:
            rates[i, i] = standing.against_itself.win_rate
    for (one, other), evaluation in pairs.items():
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


def draw_ratings(title: str, rated: Sequence[RatedCheckpoint], anchors: Sequence[Anchor], path: Path) -> None:
    """Write a picture of checkpoints' ratings as a PNG file; anchors are lines."""
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8.0, 5.5), layout="constrained", sharex=True, height_ratios=[3, 1]
    )
    steps = [int(one.name) / 1e6 for one in rated]
    _draw_points(above, steps, [one.elo for one in rated])
    for anchor in anchors:
        above.axhline(anchor.rating, color="grey", linewidth=0.8, linestyle=":")
        above.annotate(
            anchor.name, (1, anchor.rating), xycoords=("axes fraction", "data"), ha="right", va="bottom",
            fontsize="small", color="grey",
        )  # fmt: skip
    above.set(ylabel="Elo, 95 %", title=title)
    both = [(step, one.noise) for step, one in zip(steps, rated, strict=True) if one.noise is not None]
    _draw_points(below, [step for step, _ in both], [noise for _, noise in both])
    below.axhline(0, color="grey", linewidth=0.8)
    below.set(ylabel="against itself", xlabel="agent steps, millions")
    for axes in (above, below):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_points(axes: Axes, steps: Sequence[float], ratings: Sequence[EloRating]) -> None:
    reach = [one.interval[1] - one.rating for one in ratings]
    axes.errorbar(
        steps, [one.rating for one in ratings], yerr=reach, fmt="o-", color="tab:blue", capsize=3,
        linewidth=1, markersize=4,
    )  # fmt: skip


def draw_losses(name: str, losses: Sequence[Loss], path: Path) -> None:
    """Write a picture of the cost of each cause for the bot `name` as a PNG file, the dearest on top."""
    # A control that others are compared with has no interval, nor has what has no effect at all.
    shown = [loss for loss in losses if loss.lost.reach > 0 or loss.verdict == "no effect"]
    places = np.arange(len(shown))
    points = np.array([100 * loss.lost.value for loss in shown])
    reach = np.array([100 * loss.lost.reach for loss in shown])
    figure, axes = plt.subplots(figsize=(8.0, 1.3 + 0.24 * len(shown)), layout="constrained")
    names = [f"{loss.trial.cause.name} ({loss.trial.place})" for loss in shown]
    colours = [
        "lightgrey" if loss.verdict or loss.trial.cause.name == CONTROL
        else "tab:red" if loss.lost.value > 0 else "tab:green"
        for loss in shown
    ]  # fmt: skip
    axes.barh(
        places, points, xerr=reach, color=colours, height=0.7, error_kw={"linewidth": 0.9, "capsize": 2}
    )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(places, names, fontsize="small")
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set(xlabel="points of win rate lost, 95 % (grey: within noise)", title=f"What costs {name} matches")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)
