"""Train a public example of rlgym-ppo or rlgym-learn here and in rlgym-learn: touches over steps and time.

    python -m tools.side_by_side rlgym-learn FOLDER --minutes 10

The example's settings are carried over by the table in docs/train/settings.md. Then both train, one after the
other, the same match with RLGym's DefaultObs. FOLDER gets both runs, touches.json and touches.png.
rlgym-ppo's example trains in rlgym-learn too, its successor, which has the same settings under other names.
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.training.settings import TrainingSettings, check_settings, settings_as_toml
from tests.support.processes import child
from tools.benchmarks.ppo import PEER_PYTHON, install_peer

_ROOT: Final = Path(__file__).parents[1]
_PAGE: Final = _ROOT / "docs" / "train" / "settings.md"
_HEADING: Final = "## From rlgym-ppo and rlgym-learn"
_BATCH: Final = "the batch above"  # rows of the table that are no setting here
_BUFFER: Final = "each batch once; for a buffer of n batches, `epochs` times n"
_ROLLOUT: Final = 32  # steps
_LEAST_BATCHES: Final = 20  # between checkpoints: at each of them all matches begin anew here
_POINTS: Final = 30  # that a curve is cut into

MATCH: Final = {
    "rlgym-ppo": {"team_sizes": [1, 1], "no_touch_seconds": 10.0, "episode_seconds": 1e6},
    "rlgym-learn": {"team_sizes": [2, 2], "no_touch_seconds": 30.0, "episode_seconds": 300.0},
}
"""Name the differences between the matches of both examples; both reward goals and touches alone."""

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "rlgym-ppo": {
        "ppo_batch_size": 50_000, "ts_per_iteration": 50_000, "exp_buffer_size": 150_000,
        "ppo_minibatch_size": 50_000, "ppo_ent_coef": 0.001, "ppo_epochs": 1, "ppo_clip_range": 0.2,
        "policy_lr": 3e-4, "critic_lr": 3e-4, "gae_gamma": 0.99, "gae_lambda": 0.95,
        "standardize_returns": True, "standardize_obs": False, "policy_layer_sizes": [256] * 3,
        "critic_layer_sizes": [256] * 3, "save_every_ts": 100_000, "n_checkpoints_to_keep": 5,
        "random_seed": 123, "timestep_limit": 1_000_000_000,
    },
    "rlgym-learn": {
        "batch_size": 50_000, "timesteps_per_iteration": 50_000, "max_size": 150_000, "n_minibatches": 1,
        "ent_coef": 0.01, "n_epochs": 1, "clip_range": 0.2, "actor_lr": 5e-5, "critic_lr": 5e-5,
        "gamma": 0.99, "lmbda": 0.95, "standardize_returns": True, "advantage_normalization": True,
        "save_every_ts": 1_000_000, "n_checkpoints_to_keep": 5, "random_seed": 123,
        "timestep_limit": 1_000_000_000,
    },
}  # fmt: skip
"""Settings in each library's names, its defaults among them: `rlgym_v2_example.py` of AechPro/rlgym-ppo at
4ffd2e92, and `quick_start_guide.py` of JPK314/rlgym-learn at f8309bde. Processes depend on the machine."""


def read_table(library: str) -> dict[str, list[str]]:
    """Return the table of the docs: by the text of our cell, the names in the library's cell."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in _PAGE.read_text(encoding="utf-8").partition(_HEADING)[2].splitlines()
        if line.startswith("|")
    ]
    column = rows[0].index(library)
    return {row[0]: re.findall(r"`(\w+)`", row[column]) for row in rows[2:]}


def carry_over(library: str, collectors: int) -> tuple[dict[str, Any], list[str]]:
    """Carry an example over, setting by setting.

    Args:
        library: A key of `EXAMPLES`.
        collectors: Processes that play here, which decide how many matches make the batch.

    Returns:
        Our settings, and the example's settings that have no counterpart here.
    """
    given, left = EXAMPLES[library], dict(EXAMPLES[library])
    settings: dict[str, Any] = {
        "components": "tools.benchmarks.default_obs", "goal": 10.0, "touch": 0.1, "touch_strength": 0.0,
        "velocity_to_ball": 0.0, "velocity_ball_to_goal": 0.0, "kickoff_share": 1.0, "snapshot_share": 0.0,
        "collectors": collectors, "rollout_steps": _ROLLOUT, **MATCH[library],
    }  # fmt: skip
    if library == "rlgym-learn":  # its networks are the example's own code
        settings |= {"policy_layers": [256] * 3, "critic_layers": [256] * 3}
    known = {field.name for field in dataclasses.fields(TrainingSettings)}
    table = read_table(library)
    for cell, theirs in table.items():
        if cell == _BUFFER:
            continue
        ours = [name for name in re.findall(r"`(\w+)`", cell) if name in known]
        for our_name, name in zip(ours, theirs, strict=False):
            if name in given:
                settings[our_name] = given[name]
                left.pop(name, None)
    batch, buffer = left.pop(table[_BATCH][0]), left.pop(table[_BUFFER][0])
    settings["matches"] = round(batch / (collectors * _ROLLOUT * sum(settings["team_sizes"])))
    settings["epochs"] *= buffer // batch  # a step is learned from in as many iterations as the buffer has
    settings["checkpoint_every"] = max(settings["checkpoint_every"], _LEAST_BATCHES * batch)
    return settings, list(left)


def peer_settings(settings: TrainingSettings, library: str, folder: Path, processes: int) -> dict[str, Any]:
    """Return what `rlgym_learn_peer` takes: the example as it is."""
    given, table = EXAMPLES[library], read_table(library)
    batch, buffer = given[table[_BATCH][0]], given[table[_BUFFER][0]]
    return dataclasses.asdict(settings) | {
        "batch": batch, "buffer": buffer, "epochs": settings.epochs // (buffer // batch),
        "processes": processes, "touches": str(folder / "touches-"), "threads": os.cpu_count() or 1,
    }  # fmt: skip


def train_for(seconds: float, command: list[Any], folder: Path, packages: Path) -> None:
    """Run a program with a terminal as its input, and end it after some time.

    Raises:
        RuntimeError: It ended before.
    """
    env = os.environ | {"PYTHONPATH": str(packages), "OPENBLAS_NUM_THREADS": "1"}
    words, terminal = folder / "words.txt", os.openpty()
    try:
        with (
            words.open("w", encoding="utf-8") as out,
            child(command, stdin=terminal[1], stdout=out, stderr=out, cwd=folder, env=env,
                  start_new_session=True) as process,
        ):  # fmt: skip
            code = process.wait(seconds)
        said = words.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"{command} ended with exit code {code} before its time:\n{said}")
    except subprocess.TimeoutExpired:
        return
    finally:
        for end in terminal:
            os.close(end)


def our_curve(progress: Path) -> np.ndarray:
    """Return `(n, 3)` float64 of a run here: seconds, agent steps and touches a car and minute so far."""
    table = np.atleast_1d(np.genfromtxt(progress, delimiter=",", names=True, deletechars=""))
    return np.stack([table["seconds"], table["steps"], table["touches_per_car_minute"]], 1)


def peer_curve(files: Sequence[Path], minutes_a_step: float) -> np.ndarray:
    """Return the same of a run of the peer, whose processes wrote `[time, agent steps, touches]`.

    Args:
        files: One of each process.
        minutes_a_step: Game minutes of an agent step.
    """
    rows = [np.atleast_2d([json.loads(line) for line in file.read_text().splitlines()]) for file in files]
    first, last = min(one[0, 0] for one in rows), max(one[-1, 0] for one in rows)
    times = np.linspace(first, last, _POINTS + 1)
    steps, touches = (sum(np.interp(times, one[:, 0], one[:, at], left=0.0) for one in rows) for at in (1, 2))
    played = np.maximum(np.diff(steps), 1) * minutes_a_step
    return np.stack([times[1:] - first, steps[1:], np.diff(touches) / played], 1)


def draw(curves: dict[str, np.ndarray], title: str, picture: Path) -> None:
    """Draw touches over agent steps and over minutes."""
    import matplotlib  # a second, which no other function here needs

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, every = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
    for name, curve in curves.items():
        parts = [part.mean(0) for part in np.array_split(curve, min(_POINTS, len(curve)))]
        seconds, steps, touches = np.array(parts).T
        for axes, across in zip(every, (steps / 1e6, seconds / 60), strict=True):
            axes.plot(across, touches, linewidth=1.2, label=name)
    every[0].set(xlabel="agent steps, millions", ylabel="touches a car and minute", title=title)
    every[1].set(xlabel="minutes", title="the same over time")
    every[0].legend(fontsize="small")
    figure.savefig(picture, dpi=110)


def main(words: Sequence[str]) -> None:
    """Train both, and write what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", choices=list(EXAMPLES), help="whose example")
    parser.add_argument("folder", type=Path, help="for the runs and the picture")
    parser.add_argument("--minutes", type=float, default=10.0, help="that each trains (default: 10)")
    parser.add_argument("--collectors", type=int, default=os.cpu_count(), help="here (default: one a core)")
    parser.add_argument("--processes", type=int, default=8, help="of rlgym-learn (default: 8)")
    parser.add_argument("--peer", type=Path, help="Python with rlgym-learn (default: one in .venv/peer)")
    options = parser.parse_args(words)
    peer = options.peer or PEER_PYTHON
    if options.peer is None:
        install_peer()
    carried, left = carry_over(options.library, options.collectors)
    folder = options.folder.absolute()
    folders = {name: folder / name for name in ("here", "rlgym-learn")}
    (empty := folder / "empty").mkdir(parents=True)
    (empty / "wandb.py").touch()  # the peer imports it, and sends nothing
    for one in folders.values():
        one.mkdir()
    settings = check_settings(carried | {"out": str(folders["here"] / "run")})
    print(
        f"{options.library}'s example; without a counterpart here: {', '.join(left) or 'nothing'}", flush=True
    )
    (file := folders["here"] / "my.toml").write_text(settings_as_toml(settings), encoding="utf-8")
    theirs = peer_settings(settings, options.library, folders["rlgym-learn"], options.processes)
    (given := folders["rlgym-learn"] / "settings.json").write_text(json.dumps(theirs), encoding="utf-8")
    script = _ROOT / "tools" / "benchmarks" / "rlgym_learn_peer.py"
    commands = {
        "here": ([sys.executable, "-m", "training", file, "--quiet"], _ROOT),
        "rlgym-learn": ([peer, script, given, folders["rlgym-learn"] / "log"], empty),
    }
    for name, (command, packages) in commands.items():
        print(f"{name}: {options.minutes:g} minutes from {time.strftime('%H:%M')} on", flush=True)
        train_for(60 * options.minutes, command, folders[name], packages)
    report(folder, folders, settings, options.library)


def report(folder: Path, folders: dict[str, Path], settings: TrainingSettings, library: str) -> None:
    """Write touches.json and touches.png, and print how far both came."""
    minutes_a_step = settings.tick_skip / 120 / 60
    logs = sorted(folders["rlgym-learn"].glob("touches-*"))
    curves = {
        "here": our_curve(folders["here"] / "run" / "progress.csv"),
        "rlgym-learn": peer_curve(logs, minutes_a_step),
    }
    numbers = {name: curve.tolist() for name, curve in curves.items()}
    (folder / "touches.json").write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    draw(curves, f"{library}'s example", folder / "touches.png")
    for name, curve in curves.items():
        last = curve[-max(1, len(curve) // 5) :, 2].mean()
        print(f"{name}: {curve[-1, 1]:,.0f} agent steps, {last:.2f} touches a car and minute at the end")


if __name__ == "__main__":
    main(sys.argv[1:])
