"""Follow docs/start/first-bot.md from a clean environment: `python -m tools.first_bot`.

    wheel -> environment, with the extra `train` -> the commands of the page, as they stand there

Prints times, sizes and what `evaluate` says. Fails where the bot wins less than 80 % of its matches against
random actions. `--seed N` trains with another seed.

`--until-half` trains a bot of `init` in this environment instead, until it wins half of its matches against
Chaser, and prints the minutes of training. Matches do not count as training.
"""

import argparse
import csv
import re
import shlex
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.documentation import blocks, command_lines
from tools.clean_folder import ROOT, CleanFolder, build_wheel, make_environment, print_figures

PAGE: Final = "docs/start/first-bot.md"
ENOUGH: Final = 0.8
"""Share of the matches that the bot has to win."""

_OURS: Final = "tools/first_bot.py"  # named above the blocks that are followed
_RESULT: Final = re.compile(r"won (\d+), drawn (\d+), lost (\d+)")
_LONGEST: Final = 3600.0  # s of one command: others may use the machine, too
_FIRST: Final = 3_000_000  # agent steps of the first phase
_LEG: Final = 2_000_000  # agent steps between matches against Chaser
_PHASES: Final = ("train.toml", "goals.toml")
_CHASER: Final = "evaluate runs/mine chaser --matches 100 --seconds 300"


def first_bot(folder: Path, settings: str = "") -> dict[str, float]:
    """Do all of it in an empty folder; return seconds, megabytes and shares by name.

    Args:
        folder: To do it in.
        settings: Lines of TOML in place of those that `init` writes into `train.toml`.
    """
    clean = CleanFolder(folder)
    wheel = build_wheel(clean)
    with clean.timed("all, but the wheel"):
        python = make_environment(
            clean, folder / "clean", "-c", str(ROOT / "constraints.txt"), f"{wheel}[rlgym,train]"
        )
        follow_page(clean, python.with_name("rlgym-bridge"), settings)
    clean.weigh("environment", folder / "clean")
    clean.weigh("run", folder / "mybot" / "runs")
    clean.weigh("packaged bot", folder / "mybot" / "dist")
    return clean.figures


def commands_of_page() -> list[str]:
    """Return the command lines of the page that are followed."""
    followed = [one for one in blocks("sh") if one.page == PAGE and one.detail.startswith(_OURS)]
    return [line for block in followed for line in command_lines(block)]


def follow_page(clean: CleanFolder, program: Path, settings: str = "", **more: str) -> None:
    """Run the page's commands, time each, and note the share of the matches that were won.

    Args:
        clean: Where.
        program: `rlgym-bridge` of an environment.
        settings: As for `first_bot`.
        more: Further options by command, such as `match="--seconds 2"`.
    """
    here = clean.folder
    for line in commands_of_page():
        first, command, *words = [*shlex.split(line), ""][:-1]
        if first == "cd":
            here = here / command
            _replace_settings(here / "train.toml", settings)
            continue
        with clean.timed(command):
            said = clean.run(
                program, command, *words, *shlex.split(more.get(command, "")), cwd=here, seconds=_LONGEST
            )
        print(f"$ {line}\n{chr(10).join(said.splitlines()[-6:])}")
        if command == "evaluate" and (result := _RESULT.search(said)):
            counts = [int(number) for number in result.groups()]
            clean.figures["matches won, share"] = counts[0] / sum(counts)


def _replace_settings(file: Path, settings: str) -> None:
    """Write some lines of settings above those of a file, in place of its own lines for the same keys."""
    keys = {line.partition("=")[0].strip() for line in settings.splitlines()}
    kept = [
        line for line in file.read_text("utf-8").splitlines() if line.partition("=")[0].strip() not in keys
    ]
    file.write_text("\n".join([settings, *kept]) + "\n", "utf-8")


def train_until_half(folder: Path, seed: int, most: int) -> int:
    """Train a bot of `init` until it wins half of its matches against Chaser; print minutes and win rates.

    Args:
        folder: An empty one.
        seed: Of training.
        most: Agent steps after which to give up.

    Returns:
        The exit code: 1 if it gave up.
    """
    clean, bot, seconds = CleanFolder(folder), folder / "mybot", 0.0
    program = Path(sys.executable).with_name("rlgym-bridge")
    clean.run(program, "init", "mybot")
    _replace_settings(bot / "train.toml", f"seed = {seed}")
    for steps in range(_FIRST, most + 1, _LEG):
        words = ["train", "--quiet", "--steps", str(steps)]
        words += [*_PHASES, "--resume"] if steps > _FIRST else []
        clean.run(program, *words, cwd=bot, seconds=_LONGEST)
        with (bot / "runs" / "mine" / "progress.csv").open(encoding="utf-8") as table:
            seconds += float([*csv.DictReader(table)][-1]["seconds"])  # since the start or the resume
        said = clean.run(program, *shlex.split(_CHASER), cwd=bot, seconds=_LONGEST)
        result = _RESULT.search(said)
        assert result is not None, said
        won, drawn, lost = (int(number) for number in result.groups())
        rate = (won + drawn / 2) / (won + drawn + lost)
        print(
            f"{steps:,} agent steps, {seconds / 60:.1f} minutes: won {won}, drawn {drawn}, lost {lost}",
            flush=True,
        )
        if rate >= 0.5:
            print(f"half of the matches against Chaser after {seconds / 60:.1f} minutes")
            return 0
    return 1


def main() -> int:
    """Print the figures; return 1 where the bot wins too seldom."""
    parser = argparse.ArgumentParser(description="Follow docs/start/first-bot.md from a clean environment.")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of training (default: 0)")
    parser.add_argument("--until-half", action="store_true", help="train until Chaser loses half instead")
    parser.add_argument("--most", type=int, default=60_000_000, metavar="N", help="agent steps of that")
    options = parser.parse_args()
    if options.until_half:
        with tempfile.TemporaryDirectory() as folder:
            return train_until_half(Path(folder), options.seed, options.most)
    figures = print_figures(partial(first_bot, settings=f"seed = {options.seed}"))
    share = figures["matches won, share"]
    verdict = "enough" if share >= ENOUGH else "too few"
    print(f"the bot won {share:.0%} of its matches against random actions: {verdict}, expected {ENOUGH:.0%}")
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
