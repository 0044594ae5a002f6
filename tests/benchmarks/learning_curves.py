"""Draw the learning curves of runs for the docs: `python -m tests.benchmarks.learning_curves PICTURE RUN...`.

It also prints after how many agent steps each run first had five touches a car and minute.
"""

import sys
from pathlib import Path
from typing import Final

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SHOWN: Final = {
    "touches_per_car_minute": "touches a car and minute", "goals_per_minute": "goals a minute",
    "elo": "Elo (0: untrained)",
}  # fmt: skip
AIM: Final = 5.0
_POINTS: Final = 100  # that a curve is cut into


def read_table(run: Path) -> np.ndarray:
    """Return progress.csv of a run, `(lines,)` with a field for each column."""
    found: np.ndarray = np.genfromtxt(run / "progress.csv", delimiter=",", names=True, deletechars="")
    return np.atleast_1d(found)


def read_curve(run: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return agent steps at the ends of a run's segments, `(n,)`, and the means of columns over each."""
    table = read_table(run)
    parts = np.array_split(np.arange(len(table)), min(_POINTS, len(table)))
    means = {name: np.array([np.nanmean(table[name][part]) for part in parts]) for name in SHOWN}
    return np.array([table["steps"][part[-1]] for part in parts]), means


def draw(runs: list[Path], picture: Path) -> None:
    """Draw a line for each run."""
    figure, every = plt.subplots(1, len(SHOWN), figsize=(12, 3.6), layout="constrained")
    for run in runs:
        steps, means = read_curve(run)
        for axes, (name, title) in zip(every, SHOWN.items(), strict=True):
            axes.plot(steps / 1e6, means[name], linewidth=1, label=run.name)
            axes.set(xlabel="agent steps, millions", title=title, xlim=(0, None))
        reached = np.flatnonzero(means["touches_per_car_minute"] >= AIM)
        print(
            f"{run.name}: {AIM:g} touches after {steps[reached[0]]:,.0f} steps" if len(reached) else run.name
        )
    every[0].legend(fontsize="small")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    draw([Path(name) for name in sys.argv[2:]], Path(sys.argv[1]))
