"""Train runs that go wrong on purpose, and draw their curves: `python -m tools.benchmarks.wrong_runs FOLDER`.

A run that is in the folder already is not trained again.
"""

import sys
from pathlib import Path
from typing import Any, Final

import matplotlib
import numpy as np

from rlgym_bridge.user_input.text_files import toml_line
from tests.support.processes import run_to_end

matplotlib.use("Agg")
from matplotlib import pyplot as plt

STEPS: Final = 1_200_000
SHARED: Final[dict[str, Any]] = {
    "steps": STEPS, "matches": 64, "collectors": 1, "rollout_steps": 64, "threads": 1, "snapshot_share": 0.0,
    "policy_layers": [128, 128], "critic_layers": [128, 128], "checkpoint_every": STEPS,
}  # fmt: skip
RUNS: Final[dict[str, dict[str, Any]]] = {
    "healthy": {},
    "learning rate ten times as high": {"learning_rate": 5e-3},
    "a hundred times as high": {"learning_rate": 5e-2},
    "paid for standing": {"speed": -1.0},
    "entropy coefficient 0": {"entropy_coefficient": 0.0},
}
"""Settings that differ from those of the first run."""

COLUMNS: Final = {
    "kl": "kl", "clip_fraction": "clip fraction", "entropy": "entropy, nats",
    "explained_variance": "explained variance", "touches_per_car_minute": "touches a car and minute",
    "policy/speed": "speed, uu/s",
}  # fmt: skip
_POINTS: Final = 40  # that a curve is cut into


def train(folder: Path, changes: dict[str, Any]) -> None:
    """Train a run in a process of its own, unless it is there."""
    if (folder / "progress.csv").exists():
        return
    folder.mkdir(parents=True)
    settings = folder / "settings.toml"
    settings.write_text("\n".join(toml_line(*one) for one in (SHARED | changes).items()), encoding="utf-8")
    command = [sys.executable, "-m", "rlgym_bridge.cli", "train", str(settings), "--out", str(folder / "run")]
    run_to_end(command, seconds=1800, check=True, stdout=None, stderr=None)
    (folder / "run" / "progress.csv").rename(folder / "progress.csv")


def draw(folder: Path, picture: Path) -> None:
    """Draw the curves of all runs in a folder."""
    figure, axes = plt.subplots(2, 3, figsize=(12, 6), layout="constrained")
    for name in RUNS:
        file = folder / name.replace(" ", "_") / "progress.csv"
        table = np.genfromtxt(file, delimiter=",", names=True, deletechars="")
        parts = np.array_split(np.arange(len(table["steps"])), _POINTS)
        steps = [table["steps"][part[-1]] / 1e6 for part in parts]
        for place, column in zip(axes.flat, COLUMNS, strict=True):
            place.plot(steps, [np.nanmean(table[column][part]) for part in parts], label=name)
        numbers = ", ".join(f"{column} {np.nanmean(table[column][parts[-1]]):.3g}" for column in COLUMNS)
        print(f"{name}: {numbers}")
    for place, title in zip(axes.flat, COLUMNS.values(), strict=True):
        place.set(title=title, xlabel="agent steps, millions")
        place.grid(alpha=0.3)
    axes[0, 0].set_yscale("log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(RUNS))
    figure.savefig(picture, dpi=80)


if __name__ == "__main__":
    for run, settings in RUNS.items():
        train(Path(sys.argv[1]) / run.replace(" ", "_"), settings)
    draw(Path(sys.argv[1]), Path(sys.argv[1]) / "wrong-runs.png")
