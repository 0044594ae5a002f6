"""Follow docs/start/first-bot.md from a clean environment: `python -m tools.first_bot`.

    wheel -> environment, with the extra `train` -> the commands of the page, as they stand there

Prints times, sizes and what `evaluate` says. Fails where the bot wins less than 80 % of its matches against
random actions. `--seed N` trains with another seed.
"""

import argparse
import re
import shlex
import sys
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


def main() -> int:
    """Print the figures; return 1 where the bot wins too seldom."""
    parser = argparse.ArgumentParser(description="Follow docs/start/first-bot.md from a clean environment.")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of training (default: 0)")
    options = parser.parse_args()
    figures = print_figures(partial(first_bot, settings=f"seed = {options.seed}"))
    share = figures["matches won, share"]
    verdict = "enough" if share >= ENOUGH else "too few"
    print(f"the bot won {share:.0%} of its matches against random actions: {verdict}, expected {ENOUGH:.0%}")
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
