"""`rlgym-bridge doctor`: say whether this machine has what is needed, and what to do where it has not."""

import argparse
import dataclasses
from typing import Final

from rich.markup import escape
from rich.table import Table

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.machine_checks import check_machine
from rlgym_bridge.user_input.text_files import escape_controls

STATUS: Final = "0 nothing is wrong, 1 something is, 2 bad usage or input"
_STYLES: Final = {"fine": "green", "missing": "yellow", "note": "", "wrong": "bold red"}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Check what this machine has: Python, packages and their versions, the simulator, extras, "
        "RLBotServer, the game. Nothing is changed. What is missing is needed by some commands alone."
    )
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Look, and print a table."""
    output_files.check_outputs(options.json)
    checks = list(check_machine())
    table = Table(box=None, pad_edge=False)
    for title in ("", "state", "found"):
        table.add_column(title, overflow="fold")
    for one in checks:
        advice = f"\n[italic]{escape(escape_controls(one.advice))}[/]" if one.advice else ""
        state = f"[{_STYLES[one.state]}]{one.state}[/]" if _STYLES[one.state] else one.state
        table.add_row(one.name, state, escape(escape_controls(one.found)) + advice)
    shared.console_of(options).print(table)
    if not output_files.write_json(options.json, {"checks": [dataclasses.asdict(one) for one in checks]}):
        return 2
    return int(any(one.state == "wrong" for one in checks))
