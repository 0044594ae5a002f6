"""Train the shipped bot further: from its last checkpoint on, with a learning rate that falls to 0.

    python -m tools.train_further
    python -m tools.train_further --steps 80_000_000 --by-failures --out OTHER_RUN more.toml

The settings, `stretch.toml` in the run, are those of `training/shipped.toml` and all its later phases,
`training/shipped/next*.toml`. Files of yours change them. Ctrl-C saves and ends it. The same command goes on,
and once all steps are done it begins another stretch. With `--by-failures` it plays scenes first, and more
episodes begin with a skill whose scenes fail.
"""

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import tomli_w

from rlgym_bridge.cli import main as run_bridge
from rlgym_bridge.policy.files import CHECKPOINTS, newest_checkpoint
from rlgym_bridge.training.settings import read_settings
from rlgym_bridge.user_input.arguments import check_whole
from rlgym_bridge.user_input.text_files import explain_unreadable, read_toml

_ROOT: Final = Path(__file__).parents[1]
_BOT: Final = _ROOT / "lab" / "bot"
_PHASES: Final = _ROOT / "training" / "shipped"
_STRETCH: Final = "stretch.toml"  # in the run: all settings
_STEPS: Final = 40_000_000  # agent steps, about an hour on two cores
_LEAST: Final = 100_000  # some iterations
_LEARNING_RATE: Final = 2.5e-4  # at the begin of a stretch, as in the fourteenth phase
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


def prepare(run: Path, steps: int, by_failures: bool) -> Path:
    """Return the file of settings of a run's stretch: of the one that is not finished, else of a new one.

    The first stretch of a run begins with a copy of the checkpoint in `lab/bot`. A new one has that many
    agent steps. Raises ValueError where `run` is a folder that this command did not make.
    """
    file, begun = run / _STRETCH, newest_checkpoint(run)
    is_new = not file.is_file()
    if is_new:
        if run.exists() and any(run.iterdir()):
            raise ValueError(
                f"{run} is there and has no {_STRETCH}, expected a new folder, or a run that this command "
                "made: name another one with --out"
            )
        begun = max((one for one in _BOT.iterdir() if one.name.isdecimal()), key=lambda one: int(one.name))
    elif begun is None:
        raise ValueError(f"{run} has lost its checkpoints: name another folder with --out")
    elif int(begun.name) < (end := read_toml(file).get("steps", 0)):
        print(f"{run} goes on to {end:,} steps, see {file}", flush=True)
        return file
    end = int(begun.name) + steps
    # A linear schedule falls from 0 steps on, so that this is the rate at `begun`.
    values = read_settings(*phases()) | {
        "out": str(run), "steps": end, "learning_rate": _LEARNING_RATE * end / steps,
        "learning_rate_schedule": "linear",
    }  # fmt: skip
    values.pop("kickoff_share", None)  # of the first phase; initial states take its place
    if by_failures:
        values["initial_states"] = measure_failures(begun)
    if is_new:
        shutil.copytree(begun, run / CHECKPOINTS / begun.name)
    file.write_text(tomli_w.dumps(values), encoding="utf-8")
    return file


def main(words: Sequence[str]) -> int:
    """Train for a stretch, or what is left of one, and return the exit code of `rlgym-bridge train`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("more", nargs="*", type=Path, help="further files of settings, which come last")
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
    try:
        check_whole("--steps", options.steps, least=_LEAST)
        for file in options.more:
            read_toml(file)
        stretch = prepare(options.out, options.steps, options.by_failures)
    except (OSError, ValueError) as error:
        print(f"error: {explain_unreadable(error)}", file=sys.stderr)
        return 2
    return run_bridge(["train", *map(str, [stretch, *options.more]), "--resume"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
