"""Train the shipped bot further: from its last checkpoint on, with a learning rate that falls to 0.

    python -m tools.train_further
    python -m tools.train_further --steps 80_000_000 --by-failures --out OTHER_RUN

The settings, `stretch.toml` in the run, are those of `training/shipped.toml` and all its later phases,
`training/shipped/next*.toml`; you may change them there. Ctrl-C saves and ends it. The same command goes on,
and once all steps are done it begins another stretch. With `--by-failures` it plays scenes first, and more
episodes begin with a skill whose scenes fail.
"""

import argparse
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import tomli_w

from rlgym_bridge.cli import main as run_bridge
from rlgym_bridge.policy.files import CHECKPOINTS
from rlgym_bridge.training.processes import Locked
from rlgym_bridge.training.settings import read_settings
from rlgym_bridge.user_input.arguments import check_whole
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.text_files import read_toml
from tools.tool import run_tool

_ROOT: Final = Path(__file__).parents[1]
_BOT: Final = _ROOT / "lab" / "bot"
_PHASES: Final = _ROOT / "training" / "shipped"
_STRETCH: Final = "stretch.toml"  # in the run: all settings
_STEPS: Final = 40_000_000  # agent steps, about an hour on two cores
_LEAST: Final = 100_000  # some iterations
_MOST: Final = 10_000_000_000
_LEARNING_RATE: Final = 2.5e-4  # at the start of a stretch, as in the fourteenth phase
_TRIALS: Final = 100  # of each scene

_ALWAYS: Final = {"kickoff": 0.35, "anywhere": 0.15, "ground": 0.03, "wall": 0.04, "flight": 0.03}
_OF_SKILLS: Final = 0.4  # of the episodes, besides those
SKILLS: Final = {
    "kickoff": ("kickoff_diagonal", "kickoff_off_centre", "kickoff_straight", "kickoff_charged"),
    "save": ("save",), "shot": ("shot",), "aerial": ("aerial_500", "aerial_1000"), "dribble": ("dribble",),
    "recovery": ("recovery",),
}  # fmt: skip
"""Scenes that measure the skill of an initial state."""


def shares_by_failures(failed: Mapping[str, float]) -> dict[str, float]:
    """Return shares of the initial states, 1 together, from those of the scenes that failed, by name."""
    means = {state: fmean(failed[name] for name in names) for state, names in SKILLS.items()}
    shares, whole = dict(_ALWAYS), sum(means.values())
    for state, mean in means.items():
        part = mean / whole if whole else 1 / len(means)
        shares[state] = shares.get(state, 0.0) + _OF_SKILLS * part
    return shares


def measure_failures(bot: Path) -> dict[str, float]:
    """Play scenes, and return the shares of the initial states that a checkpoint's failures ask for."""
    from rlgym_bridge.training.scenes import evaluate_scenes  # imports torch, which --help does not need

    names = [name for scenes in SKILLS.values() for name in scenes]
    results = evaluate_scenes(str(bot), names, _TRIALS, team_size=1, processes=1)
    failed = {one.name: 1 - one.solved / one.trials for one in results}
    shares = shares_by_failures(failed)
    for title, numbers in (("trials that failed:", failed), ("episodes begin with", shares)):
        print(title, ", ".join(f"{name} {number:.0%}" for name, number in numbers.items()), flush=True)
    return shares


def phases() -> list[Path]:
    """Return the files of settings of the next bot in their order; later ones change earlier ones."""
    later = sorted(_PHASES.glob("next-*.toml"), key=lambda path: int(path.stem.split("-")[1]))
    return [_PHASES.with_suffix(".toml"), _PHASES / "next.toml", *later]


def prepare(run: Path, steps: int = _STEPS, by_failures: bool = False) -> Path:
    """Return the file of settings of a run's stretch: of the one that is not finished, else of a new one.

    The first stretch of a run begins with a copy of the checkpoint in `lab/bot`. `steps`, in agent steps, and
    `by_failures` are of a new one. Nothing is written unless all is well. Raises ValueError, SettingsError
    among them, where `steps` are too few or many, `run` is a folder that this command did not make, or a
    checkpoint or the stretch is damaged.
    """
    from rlgym_bridge.training.runs.checkpoints import read_checkpoint, whole_checkpoint  # they import torch

    check_whole("--steps", steps, _LEAST, _MOST)
    file, is_new = run / _STRETCH, not (run / _STRETCH).is_file()
    if is_new:
        begun = _kept_checkpoint()
        if _BOT.resolve() in run.resolve().parents or (run.exists() and any(run.iterdir())):
            raise ValueError(
                f"{run} is there and has no {_STRETCH}, expected a new folder, or a run that this command "
                "made: name another one with --out"
            )
        read_checkpoint(begun)
    else:
        found, end = whole_checkpoint(run), read_toml(file).get("steps")
        check_whole(f"steps of {file}", end, 1)
        if found is None:
            raise ValueError(f"{run} has no whole checkpoint: name another folder with --out")
        begun = found
        if int(begun.name) < end:
            print(f"{run} goes on with {file}; --steps and --by-failures count for the next one", flush=True)
            return file
    text = tomli_w.dumps(_settings_of_stretch(run, begun, steps, by_failures)).encode()
    if is_new:
        _begin(run, begun, text)
    else:
        with Locked(run):
            write_durably(run, {_STRETCH: text})
    return file


def _kept_checkpoint() -> Path:
    """Return the checkpoint with the most agent steps in `lab/bot`."""
    found = [one for one in _BOT.glob("*") if one.name.isdecimal()]
    if not found:
        raise ValueError(f"{_BOT} has no checkpoint, expected that of the shipped bot: restore it from git")
    return max(found, key=lambda one: int(one.name))


def _settings_of_stretch(run: Path, begun: Path, steps: int, by_failures: bool) -> dict[str, Any]:
    """Return the settings of the last phase, with a rate that is `_LEARNING_RATE` now and 0 after `steps`."""
    end = int(begun.name) + steps
    values = read_settings(*phases()) | {
        "out": str(run), "steps": end, "learning_rate_schedule": "linear",
        "learning_rate": _LEARNING_RATE * end / steps,  # at 0 steps, where its fall begins
    }  # fmt: skip
    values.pop("kickoff_share", None)  # of the first phase; initial states take its place
    if by_failures:
        values["initial_states"] = measure_failures(begun)
    return values


def _begin(run: Path, begun: Path, settings: bytes) -> None:
    """Make the folder of a run with a checkpoint and settings; it is there once it is whole."""
    unfinished = run.with_name(f".{run.name}.{os.getpid()}.tmp")
    try:
        shutil.copytree(begun, unfinished / CHECKPOINTS / begun.name)
        write_durably(unfinished, {_STRETCH: settings})
        if run.exists():
            run.rmdir()  # it is empty
        unfinished.rename(run)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def main(words: Sequence[str]) -> int:
    """Train for a stretch, or what is left of one, and return the exit code of `rlgym-bridge train`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--steps", type=int, default=_STEPS, help=f"agent steps of a new stretch (default: {_STEPS:,})"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs", "further"), help="the run (default: %(default)s)"
    )
    parser.add_argument(
        "--by-failures", action="store_true",
        help="begin more episodes of a new stretch with the skills that fail",
    )  # fmt: skip
    options = parser.parse_args(words)
    stretch = prepare(options.out, options.steps, options.by_failures)
    return run_bridge(["train", str(stretch), "--out", str(options.out), "--resume"])


if __name__ == "__main__":
    run_tool(main)
