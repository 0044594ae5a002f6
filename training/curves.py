"""Plot the learning curves of training runs: `python -m training.curves RUN [RUN...]`.

Read from each run's progress.csv, and from those that were put aside when a column was added. Touches and
goals are those of all cars, snapshots included, as means over segments of equally many steps.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.backend_bases import FigureCanvasBase
from rlgym_bridge.training.runs.progress_table import read_tables

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files, run_command
from rlgym_bridge.project.this_project import run_named

matplotlib.rcParams["text.parse_math"] = False  # a name may hold $

_SHOWN = {
    "touches_per_car_minute": "touches a car and minute",
    "goals_per_minute": "goals a minute",
    "rating": "rating (25: untrained)",
}
_TOUCHES = "touches_per_car_minute"


@dataclass(frozen=True)
class Curve:
    """One run.

    Attributes:
        name: Of its folder.
        steps: `(n,)` agent steps at the end of each segment.
        columns: Means over each segment, `(n,)`, by the names of progress.csv.
    """

    name: str
    steps: np.ndarray
    columns: dict[str, np.ndarray]

    def steps_to(self, touches: float) -> float:
        """Return the end of the first segment with as many touches; infinite if there is none."""
        reached = np.flatnonzero(self.columns[_TOUCHES] >= touches)
        return float(self.steps[reached[0]]) if len(reached) else float("inf")


def read_curve(run: Path, points: int = 100) -> Curve:
    """Read a run.

    Args:
        run: Its folder.
        points: Segments that it is cut into.

    Raises:
        ValueError: progress.csv is missing, no table has lines, one is damaged, or steps do not rise.
    """
    table = read_tables(run, ("steps", *_SHOWN))
    steps = table["steps"]
    ends = np.linspace(0, steps[-1], points + 1)[1:]
    segment = np.searchsorted(ends, steps)
    columns, used = {}, np.unique(segment)
    for name in _SHOWN:
        columns[name] = np.array([_mean(table[name][segment == one]) for one in used])
    return Curve(run.name, ends[used], columns)


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw touches, goals and rating over steps: a line for each run, and the spread of several."""
    figure, every = plt.subplots(1, len(_SHOWN), figsize=(12, 3.6), layout="constrained")
    for axes, (name, title) in zip(every, _SHOWN.items(), strict=True):
        for curve in curves:
            axes.plot(curve.steps / 1e6, curve.columns[name], linewidth=1, label=curve.name)
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


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Plot how training runs learned: touches, goals and rating over agent steps. Print their last values."
    )
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="*",
        help="folder of a training run (default: the run of train.toml in this folder)",
    )  # fmt: skip
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="picture to write (default: curves.png in the first run's folder)",
    )
    parser.add_argument(
        "--touches", type=float, default=5.0, metavar="N",
        help="also print after how many agent steps each run first had N touches per car per minute, to a "
        "hundredth of the run (default: %(default)g)",
    )  # fmt: skip
    shared.add_output_options(parser)


def _picture(options: argparse.Namespace) -> Path:
    """Return the file to draw, once it and `--touches` are checked."""
    if not 0 <= options.touches < math.inf:
        raise ValueError(f"--touches is {options.touches}, expected a number, 0 or more")
    if options.out is None:
        return Path(options.runs[0], "curves.png")
    known = [f".{kind}" for kind in sorted(FigureCanvasBase.get_supported_filetypes())]
    if options.out.suffix.lower() not in known:
        raise ValueError(
            f"--out is {options.out}, expected a file whose name ends with one of {', '.join(known)}"
        )
    return Path(options.out)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    say = shared.printer(options)
    options.runs = options.runs or [Path(run_named(None, "RUN", "the folder of a training run"))]
    picture = _picture(options)
    curves = [read_curve(run) for run in options.runs]
    output_files.check_outputs(options.json, picture)
    draw(curves, picture)
    say(str(picture))
    heads = f"{'run':>16} {'steps':>13} {'touches':>8} {'goals':>6} {'rating':>7}"
    say(f"{heads}   {options.touches:g} touches within")
    rows = []
    for curve in sorted(curves, key=lambda one: float(one.columns[_TOUCHES][-1])):
        touches, goals, rating = (curve.columns[name][-1] for name in _SHOWN)
        reached = curve.steps_to(options.touches)
        when = f"{reached:,.0f} steps" if np.isfinite(reached) else "never"
        say(f"{curve.name:>16} {curve.steps[-1]:13,.0f} {touches:8.1f} {goals:6.2f} {rating:7.1f}   {when}")
        last = {name: float(curve.columns[name][-1]) for name in _SHOWN}
        numbers = {name: value if np.isfinite(value) else None for name, value in last.items()}
        steps_to = float(reached) if np.isfinite(reached) else None
        rows.append(
            {"run": curve.name, "steps": int(curve.steps[-1]), **numbers, "steps_to_touches": steps_to}
        )
    return 0 if output_files.write_json(options.json, rows) else 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `rlgym-bridge curves`; see `rlgym_bridge.cli.run_command`."""
    return run_command("curves", arguments, "python -m training.curves")


if __name__ == "__main__":
    sys.exit(main())
