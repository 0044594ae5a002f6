"""Draw the ratings of a run's checkpoints over its agent steps, and how far copies of a version differ."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from rlgym_bridge.training.contests.elo import EloRating
from rlgym_bridge.training.contests.rated_checkpoints import RatedCheckpoint
from rlgym_bridge.training.contests.rating_book import Anchor

matplotlib.rcParams["text.parse_math"] = False  # a name may hold $


def draw_ratings(title: str, rated: Sequence[RatedCheckpoint], anchors: Sequence[Anchor], path: Path) -> None:
    """Write a picture.

    Args:
        title: Above it.
        rated: The oldest first.
        anchors: Drawn as lines.
        path: PNG file.
    """
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
