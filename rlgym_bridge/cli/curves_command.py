"""Plot the learning curves of training runs: `rlgym-bridge curves`."""

import argparse
import math
from pathlib import Path

import numpy as np
from matplotlib.backend_bases import FigureCanvasBase

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.project.this_project import run_named
from rlgym_bridge.training.curves import SHOWN, TOUCHES, draw, read_curve


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
    for curve in sorted(curves, key=lambda one: float(one.columns[TOUCHES][-1])):
        touches, goals, rating = (curve.columns[name][-1] for name in SHOWN)
        reached = curve.steps_to(options.touches)
        when = f"{reached:,.0f} steps" if np.isfinite(reached) else "never"
        say(f"{curve.name:>16} {curve.steps[-1]:13,.0f} {touches:8.1f} {goals:6.2f} {rating:7.1f}   {when}")
        last = {name: float(curve.columns[name][-1]) for name in SHOWN}
        numbers = {name: value if np.isfinite(value) else None for name, value in last.items()}
        steps_to = float(reached) if np.isfinite(reached) else None
        rows.append(
            {"run": curve.name, "steps": int(curve.steps[-1]), **numbers, "steps_to_touches": steps_to}
        )
    return 0 if output_files.write_json(options.json, rows) else 2
