"""Train the next bot for some minutes from the checkpoint in `lab/bot` on, and put the newest one there.

    python -m tools.train_further --minutes 8
    python -m tools.train_further --minutes 8 --to OTHER_FOLDER --by-failures more.toml

The run is `runs/next`, with `training/shipped.toml`, `training/shipped/next.toml` and its later phases
`next-*.toml`. Further files of settings come after them. Without a checkpoint it begins at 0 steps. With
`--by-failures` it plays the scenes first, and lets episodes begin with a skill the oftener, the more of its
scenes fail. It prints what belongs into `lab/shipped-bot-log.md`, which is written by hand.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import tomli_w

from rlgym_bridge.policy.files import CHECKPOINTS, all_checkpoints
from rlgym_bridge.training.scenes import evaluate_scenes
from tests.support.processes import child

_ROOT: Final = Path(__file__).parents[1]
_BOT: Final = _ROOT / "lab" / "bot"
_RUN: Final = _ROOT / "runs" / "next"
_PHASES: Final = _ROOT / "training" / "shipped"
_TRIALS: Final = 100  # of each scene
_TO_SAVE: Final = 120.0  # s that the last iteration and its checkpoint may take

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


def by_failures(bot: Path) -> Path:
    """Write settings with the initial states that a checkpoint's failures ask for, and return their file."""
    names = [name for scenes in SKILLS.values() for name in scenes]
    results = evaluate_scenes(str(bot), names, _TRIALS, team_size=1, processes=1)
    failed = {one.name: 1 - one.solved / one.trials for one in results}
    shares = shares_by_failures(failed)
    for title, numbers in (("failed", failed), ("begins with", shares)):
        print(title, ", ".join(f"{name} {number:.0%}" for name, number in numbers.items()), flush=True)
    file = _RUN.with_name("by-failures.toml")
    file.parent.mkdir(exist_ok=True)
    file.write_text(tomli_w.dumps({"initial_states": shares}), encoding="utf-8")
    return file


def phases() -> list[Path]:
    """Return the files of settings of the next bot in their order; later ones change earlier ones."""
    later = sorted(_PHASES.glob("next-*.toml"), key=lambda path: int(path.stem.split("-")[1]))
    return [_PHASES.with_suffix(".toml"), _PHASES / "next.toml", *later]


def newest(folder: Path) -> Path | None:
    """Return the checkpoint with the most agent steps in a folder that holds some by their steps."""
    found = [path for path in folder.glob("[0-9]*") if path.name.isdigit()]
    return max(found, key=lambda path: int(path.name), default=None)


def train(minutes: float, more: Sequence[Path]) -> Path:
    """Train for some minutes, and return the newest checkpoint of the run.

    Args:
        minutes: From the start of the program on; its end takes some seconds more.
        more: Files of settings that come after the bot's own.

    Raises:
        RuntimeError: Training ended by itself.
    """
    shutil.rmtree(_RUN, ignore_errors=True)
    command: list[str | Path] = [sys.executable, "-m", "training", *phases(), *more, "--out", _RUN]
    if (begun := newest(_BOT)) is not None:
        shutil.copytree(begun, _RUN / CHECKPOINTS / begun.name)
        command.append("--resume")
    with child(command, cwd=_ROOT) as process:
        try:
            code = process.wait(60 * minutes)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait(_TO_SAVE)
        else:
            raise RuntimeError(f"training ended by itself, with exit code {code}")
    return max(all_checkpoints(_RUN), key=lambda path: int(path.name))


def main(words: Sequence[str]) -> None:
    """Train, put the checkpoint in place of the one before, and print what was done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("more", nargs="*", type=Path, help="further files of settings")
    parser.add_argument("--minutes", type=float, required=True, help="to train")
    parser.add_argument("--to", type=Path, default=_BOT, help="folder for the checkpoint (default: lab/bot)")
    parser.add_argument(
        "--by-failures", action="store_true", help="begin episodes with the skills that fail, by their shares"
    )
    options = parser.parse_args(words)
    begun, start = newest(_BOT), time.monotonic()
    more = [by_failures(begun)] if options.by_failures and begun is not None else []
    reached = train(options.minutes - (time.monotonic() - start) / 60, [*more, *options.more])
    for old in options.to.glob("[0-9]*"):
        shutil.rmtree(old)
    shutil.copytree(reached, options.to / reached.name)
    size = sum(file.stat().st_size for file in reached.rglob("*") if file.is_file())
    print(
        f"from {int(begun.name) if begun else 0:,} to {int(reached.name):,} agent steps in "
        f"{(time.monotonic() - start) / 60:.1f} minutes on {os.cpu_count()} cores; {size / 1e6:.1f} MB in "
        f"{options.to / reached.name}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
