"""Compare what training settings learn a step: `python -m tools.benchmarks.learning_curves FOLDER`.

    BATCHES x seeds -> runs, one after another -> last checkpoints against Chaser -> picture and table

`--networks` compares policies for all team sizes: attention or perceptron, with the ball to come or without.
`--clips` compares clip ranges and learning rates that larger batches and minibatches may need.

It runs at the lowest priority. A run in the folder goes on or stays, so that the command may be interrupted.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib
import numpy as np

from rlgym_bridge.policy.files import newest_checkpoint
from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.ppo import main as train
from rlgym_bridge.training.settings import check_settings

matplotlib.use("Agg")
from matplotlib import pyplot as plt

BATCHES: Final[dict[str, dict[str, Any]]] = {
    "batch 14,720": {},
    "batch 29,440": {"matches": 256},
    "batch 58,880": {"matches": 512},
    "batch 117,760": {"matches": 1024, "overlap": True},
    "batch 14,720, minibatch 3,680": {"minibatch": 3680},
    "batch 14,720, minibatch 7,360": {"minibatch": 7360},
    "batch 14,720, overlap": {"overlap": True},
}
"""Settings beside the defaults of two collectors: minibatches of 2,048 agent steps, in turns."""

_TEAMS: Final = {"team_sizes": [[1, 1, 0.5], [2, 2, 0.3], [3, 3, 0.2]]}
_ATTENTION: Final = _TEAMS | {"network": "attention", "policy_layers": [384] * 2, "critic_layers": [384] * 2}
_PERCEPTRON: Final = _TEAMS | {"policy_layers": [512] * 3, "critic_layers": [512] * 3}
_AHEAD: Final = {"ball_ahead": [0.25, 0.5, 1.0, 2.0]}
NETWORKS: Final[dict[str, dict[str, Any]]] = {
    "attention 2x384": _ATTENTION,
    "attention 2x384, ball to come": _ATTENTION | _AHEAD,
    "perceptron 3x512": _PERCEPTRON,
    "perceptron 3x512, ball to come": _PERCEPTRON | _AHEAD,
}
"""Settings beside the same defaults, for one policy that plays 1v1, 2v2 and 3v3."""

_STEPS_OF_7360: Final = {"minibatch": 7360, "learning_rate": 1e-3}
_STEPS_OF_14720: Final = {"minibatch": 14720, "learning_rate": 1.4e-3}  # by the square root of their size
CLIPS: Final[dict[str, dict[str, Any]]] = {
    "batch 14,720, clip 0.4": {"clip": 0.4},
    "batch 14,720, minibatch 7,360, learning rate 1e-3": _STEPS_OF_7360,
    "batch 29,440, the same": _STEPS_OF_7360 | {"matches": 256},
    "batch 29,440, the same, clip 0.4": _STEPS_OF_7360 | {"matches": 256, "clip": 0.4},
    "batch 29,440, minibatch 14,720, learning rate 1.4e-3, clip 0.5": _STEPS_OF_14720
    | {"matches": 256, "clip": 0.5},
    "batch 58,880, minibatch 7,360, learning rate 1e-3": _STEPS_OF_7360 | {"matches": 512},
    "batch 58,880, the same, clip 0.4": _STEPS_OF_7360 | {"matches": 512, "clip": 0.4},
    "batch 58,880, the same, clip 0.8": _STEPS_OF_7360 | {"matches": 512, "clip": 0.8},
    "batch 58,880, minibatch 14,720, learning rate 1.4e-3, clip 0.8": _STEPS_OF_14720
    | {"matches": 512, "clip": 0.8},
}
"""Settings beside the same defaults: clip 0.2, learning rate 5e-4."""

TOUCHES: Final = "touches_per_car_minute"
AIM: Final = 5.0  # touches a car and minute
MATCHES: Final = 100  # of a minute, with Chaser
_CHECKPOINTS: Final = 4
_PLAYED: Final = 0.7  # share of the steps from which on checkpoints play
_POINTS: Final = 60  # that a curve is cut into


def read_table(run: Path) -> np.ndarray:
    """Return progress.csv of a run, `(lines,)` with a field for each column."""
    found: np.ndarray = np.genfromtxt(run / "progress.csv", delimiter=",", names=True, deletechars="")
    return np.atleast_1d(found)


def train_run(run: Path, seed: int, changes: dict[str, Any], steps: int) -> None:
    """Train a run to its end, from its newest checkpoint on if there is one; end the program on Ctrl-C."""
    shared = {"out": str(run), "seed": seed, "steps": steps, "collectors": 2, "threads": 2, "device": "cpu"}
    shared |= {"matches": 128, "rollout_steps": 32, "minibatch": 2048, "overlap": False}
    often = {"checkpoint_every": steps // _CHECKPOINTS, "keep_checkpoints": 10 * _CHECKPOINTS}
    settings = check_settings(shared | often | changes)
    if train(settings, resume=(run / "checkpoints").exists(), quiet=True).stopped:
        sys.exit("stopped; the same command goes on")


def measure_wins(run: Path, steps: int, team_size: int = 1) -> dict[int, float]:
    """Return the win rate against Chaser of the last checkpoints up to `steps`; kept in the run's folder."""
    file = run / f"chaser-{team_size}v{team_size}.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for folder in newest_checkpoint(run).parent.iterdir():
        if folder.name.isdigit() and int(folder.name) >= _PLAYED * steps and folder.name not in known:
            known[folder.name] = evaluate(str(folder), "chaser", MATCHES, team_size=team_size).win_rate
            file.write_text(json.dumps(known), encoding="utf-8")
    rates = {int(at): rate for at, rate in known.items()}
    return {at: rates[at] for at in sorted(rates) if _PLAYED * steps <= at <= 1.05 * steps}


def read_touches(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return agent steps at the ends of a run's segments, and touches a car and minute in each, `(n,)`."""
    table = read_table(run)
    parts = np.array_split(np.arange(len(table)), min(_POINTS, len(table)))
    means = [float(np.nanmean(table[TOUCHES][part])) for part in parts]
    return np.array([table["steps"][part[-1]] for part in parts]), np.array(means)


def describe(name: str, runs: list[Path], steps: int, sizes: Sequence[int]) -> str:
    """Return the lines of a table on the runs of one variant, in the order of their seeds."""
    cells = []
    curves = [read_touches(run) for run in runs]
    for at in (steps / 4, steps / 2, steps):
        cells.append(", ".join(f"{np.interp(at, *curve):.1f}" for curve in curves))
    reached = [curve[0][curve[1] >= AIM] for curve in curves]
    cells.append(", ".join(f"{one[0] / 1e6:.2f}" if len(one) else "never" for one in reached))
    for size in sizes:
        wins = [measure_wins(run, steps, size) for run in runs]
        for share in (0.75, 1.0):
            rates = [min(one.items(), key=lambda entry: abs(entry[0] - share * steps))[1] for one in wins]
            cells.append(", ".join(f"{100 * rate:.0f}" for rate in rates))
    return f"| {name} | {' | '.join(cells)} |"


def draw(folder: Path, stem: str, runs: dict[str, list[Path]], steps: int, sizes: Sequence[int]) -> None:
    """Write `{stem}.png` and `.md`: a colour for each variant, a thin line for each seed."""
    figure, (touches, wins) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for number, (name, those) in enumerate(runs.items()):
        curves = [read_touches(run) for run in those]
        rates = [measure_wins(run, steps) for run in those]
        points = [(np.array(list(one)), np.array(list(one.values()))) for one in rates]
        for axes, lines in ((touches, curves), (wins, points)):
            at = lines[0][0]
            for line in lines:
                axes.plot(line[0] / 1e6, line[1], color=f"C{number}", linewidth=0.6, alpha=0.6)
            mean = np.mean([np.interp(at, *line) for line in lines], 0)
            axes.plot(at / 1e6, mean, color=f"C{number}", linewidth=2, label=name)
    touches.set(xlabel="agent steps, millions", title="touches a car and minute", xlim=(0, steps / 1e6))
    wins.set(
        xlabel="agent steps, millions", title=f"win rate against Chaser in 1v1, {MATCHES} matches of a minute"
    )
    touches.legend(fontsize="small")
    figure.savefig(folder / f"{stem}.png", dpi=110)
    whole, heads = steps / 1e6, "touches a car and minute at"
    lines = [
        f"| settings | {heads} {whole / 4:g} million | {whole / 2:g} | {whole:g} | {AIM:g} touches after, "
        + "millions | "
        + " | ".join(f"% in {n}v{n} at {0.75 * whole:g} million | {whole:g}" for n in sizes)
        + " |",
        "|---" * (5 + 2 * len(sizes)) + "|",
        *(describe(name, those, steps, sizes) for name, those in runs.items()),
    ]
    (folder / f"{stem}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def main() -> None:
    """Train what is missing, and draw all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2_000_000, help="agent steps of each run")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--networks", action="store_true", help="compare networks, not batches")
    asked.add_argument("--clips", action="store_true", help="compare clip ranges, not batches")
    parser.add_argument("--out", type=Path, help="folder of picture and table; default: that of the runs")
    options = parser.parse_args()
    if hasattr(os, "nice"):
        os.nice(19)
    variants, stem = BATCHES, "learning-per-step"
    if options.networks:
        variants, stem = NETWORKS, "networks-per-step"
    elif options.clips:
        variants, stem = CLIPS, "clips-per-step"
    sizes = (1, 2, 3) if options.networks else (1,)
    runs: dict[str, list[Path]] = {name: [] for name in variants}
    for seed in range(1, options.seeds + 1):
        for number, (name, changes) in enumerate(variants.items()):
            run = options.folder / f"{number}-{seed}"
            train_run(run, seed, changes, options.steps)
            wins = [measure_wins(run, options.steps, size) for size in sizes]
            print(f"{name}, seed {seed}: {wins}", flush=True)
            runs[name].append(run)
        draw(options.out or options.folder, stem, runs, options.steps, sizes)


if __name__ == "__main__":
    main()
