"""What the commands that let policies play have in common: options, and how errors end them."""

import argparse
import functools
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlgym_bridge.runs import run_modules

Command = Callable[..., int]


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
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the result to this file")


def how(options: argparse.Namespace, *named: str | Path) -> dict[str, Any]:
    """Return what `evaluate` and its like are told of these options.

    Args:
        options: Those of `add_options`.
        named: What plays, as the user named it: the modules of runs are allowed.
    """
    found = {name: getattr(options, name) for name in ("seconds", "seed", "processes")}
    return found | {"allow_modules": [*options.allow_modules, *itertools.chain(*map(run_modules, named))]}


def write_json(options: argparse.Namespace, result: Any) -> None:
    """Write the result where `--json` asked for it."""
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def errors_said(command: Command) -> Command:
    """Make a command print its errors and return 2 for bad input, 1 where something broke."""

    @functools.wraps(command)
    def wrapped(arguments: Sequence[str] | None = None) -> int:
        try:
            return command(arguments)
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except RuntimeError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 1

    return wrapped


def writable(text: str) -> Path:
    """Return a path that can be written to: better known now than after an hour."""
    path = Path(text)
    new = not path.exists()
    try:
        path.open("a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from error
    if new:
        path.unlink()  # nothing is left where the command fails
    return path
