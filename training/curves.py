"""Plot the learning curves of training runs: `rlgym-bridge curves`.

Read from each run's progress.csv, and from those that were put aside when a column was added. Touches and
goals are those of all cars, snapshots included, as means over segments of equally many steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from rlgym_bridge.training.runs.progress_table import read_changes, read_tables
from rlgym_bridge.user_input.arguments import shorten_text

matplotlib.rcParams["text.parse_math"] = False  # a name may hold $

SHOWN: Final = {
    "touches_per_car_minute": "touches a car and minute",
    "goals_per_minute": "goals a minute",
    "rating": "rating (25: untrained)",
}
"""Columns of progress.csv that are drawn, with the titles of their pictures."""

TOUCHES: Final = "touches_per_car_minute"
"""Column by which runs are sorted."""


@dataclass(frozen=True)
class Curve:
    """One run.

    Attributes:
        name: Of its folder.
        steps: `(n,)` agent steps at the end of each segment.
        columns: Means over each segment, `(n,)`, by the names of progress.csv.
        changes: Agent steps at which settings became others, and which.
    """

    name: str
    steps: np.ndarray
    columns: dict[str, np.ndarray]
    changes: Sequence[tuple[int, str]] = ()

    def steps_to(self, touches: float) -> float:
        """Return the end of the first segment with as many touches; infinite if there is none."""
        reached = np.flatnonzero(self.columns[TOUCHES] >= touches)
        return float(self.steps[reached[0]]) if len(reached) else float("inf")


def read_curve(run: Path, points: int = 100) -> Curve:
    """Read a run.

    Args:
        run: Its folder.
        points: Segments that it is cut into.

    Raises:
        ValueError: progress.csv is missing, no table has lines, one is damaged, or steps do not rise.
    """
    table = read_tables(run, ("steps", *SHOWN))
    steps = table["steps"]
    ends = np.linspace(0, steps[-1], points + 1)[1:]
    segment = np.searchsorted(ends, steps)
    columns, used = {}, np.unique(segment)
    for name in SHOWN:
        columns[name] = np.array([_mean(table[name][segment == one]) for one in used])
    return Curve(run.name, ends[used], columns, read_changes(run))


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _by_steps(changes: Sequence[tuple[int, str]]) -> dict[int, list[str]]:
    """Return the texts of changes by their agent steps, cut to what a picture has room for."""
    found: dict[int, list[str]] = {}
    for steps, text in changes:
        found.setdefault(steps, []).append(shorten_text(text))
    return found


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw touches, goals and rating over steps: a line for each run, and the spread of several.

    A dotted line marks where settings became others, and which.
    """
    figure, every = plt.subplots(1, len(SHOWN), figsize=(12, 3.6), layout="constrained")
    for axes, (name, title) in zip(every, SHOWN.items(), strict=True):
        for curve in curves:
            (line,) = axes.plot(curve.steps / 1e6, curve.columns[name], linewidth=1, label=curve.name)
            for steps, texts in _by_steps(curve.changes).items():
                axes.axvline(steps / 1e6, color=line.get_color(), linestyle=":", linewidth=1)
                axes.text(
                    steps / 1e6, 0.98, "\n".join(texts), transform=axes.get_xaxis_transform(), rotation=90,
                    ha="right", va="top", fontsize="xx-small", color=line.get_color(),
                )  # fmt: skip
        if len(curves) > 1:
            shared = min((curve.steps for curve in curves), key=lambda steps: float(steps[-1]))
            lines = [np.interp(shared, curve.steps, curve.columns[name]) for curve in curves]
            axes.fill_between(shared / 1e6, np.min(lines, 0), np.max(lines, 0), alpha=0.15, color="grey")
        axes.set(xlabel="agent steps, millions", title=title)
        axes.set_xlim(0)
        axes.grid(alpha=0.3)
    if len(curves) > 1:
        every[0].legend(fontsize="small")
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("curves")
