"""Options that the commands have in common that let policies play."""

import argparse
import itertools
from pathlib import Path
from typing import Any

from rlgym_bridge.cli import options as shared
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.user_input.user_modules import add_module_folders


def add_options(parser: argparse.ArgumentParser, matches: int, of: str) -> None:
    """Add the options of playing.

    Args:
        parser: Of the command.
        matches: How many when nothing is said.
        of: What they are, for the help.
    """
    parser.add_argument("--matches", type=int, default=matches, help=f"{of} (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="game time of a match (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument(
        "--allow-modules", action="append", default=[], metavar="M",
        help="a module that policy folders may name; a run may name its own",
    )  # fmt: skip
    shared.add_output_options(parser)


def how(options: argparse.Namespace, *named: str | Path) -> dict[str, Any]:
    """Return what `evaluate` and its like are told of these options.

    Args:
        options: Those of `add_options`.
        named: What plays, as the user named it: the modules of runs are allowed.
    """
    if options.allow_modules:
        add_module_folders(Path.cwd())
    found = {name: getattr(options, name) for name in ("seconds", "seed", "processes")}
    return found | {"allow_modules": [*options.allow_modules, *itertools.chain(*map(run_modules, named))]}
