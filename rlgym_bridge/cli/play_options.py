"""Define the options of the commands that let policies play."""

import argparse
import itertools
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.user_input.user_modules import add_module_folders

SECONDS: Final = 60.0
"""Game time of a match when nothing is said, s."""


def add_options(parser: argparse.ArgumentParser, matches: int, of: str) -> None:
    """Add the options of playing.

    Args:
        parser: Of the command.
        matches: How many when nothing is said.
        of: What they are, for the help.
    """
    parser.add_argument(
        "--matches",
        type=int,
        default=matches,
        metavar="N",
        help=f"matches to play, {of} (default: {matches})",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        metavar="S",
        help=f"game time of a match in seconds (default: {SECONDS:g})",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of kickoffs and sampled actions (default: 0)"
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=2,
        metavar="N",
        help="processes that play at the same time (default: 2)",
    )
    shared.add_simulator_option(parser)
    parser.add_argument(
        "--allow-modules", nargs="+", action="extend", default=[], metavar="MODULE",
        help="Python modules of yours that policy folders may import from",
    )  # fmt: skip
    shared.add_output_options(parser)


def how(options: argparse.Namespace, *named: str | Path) -> dict[str, Any]:
    """Return the keyword arguments of `evaluate` that these options set.

    Args:
        options: Those of `add_options`.
        named: What plays, as the user named it: the modules of runs are allowed.
    """
    if options.allow_modules:
        add_module_folders(Path.cwd())
    found = {name: getattr(options, name) for name in ("seconds", "seed", "processes", "simulator")}
    of_runs = itertools.chain(*(run_modules(one, options.allow_modules) for one in named))
    return found | {"allow_modules": [*options.allow_modules, *of_runs]}
