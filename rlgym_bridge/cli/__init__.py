"""The command line: one file per command, each with `add_to` (its options) and `run`."""

import argparse
import logging
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `rlgym-bridge`.

    Args:
        arguments: The words after the program's name; those of this process when None.

    Returns:
        The exit code: 0 fine, 1 a failure was found, 2 bad usage or input.
    """
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 1
    except OSError as error:  # what commands read and write, they see to; this is what they print
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(arguments: Sequence[str] | None) -> int:
    # Here and not above: loading them takes a second, in which Ctrl-C may come.
    from rlgym_bridge.cli import compare, import_bot, inspect, match, parity, probe, server, timing, view

    parser = argparse.ArgumentParser(
        prog="rlgym-bridge",
        description="Play RLGym-trained bots in RLBot v5 matches, with or without the game.",
        epilog="exit status: 0 fine, 1 a failure was found, 2 bad usage or input",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (match, server, probe, parity, timing, inspect, view, compare, import_bot):
        command.add_to(commands)
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.WARNING if options.quiet else logging.INFO,
        format="%(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    return int(options.run(options))
