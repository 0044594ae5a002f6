"""`rlgym-bridge check`: try a bot as RLBot would start it, and say what would break in a match."""

import argparse
import dataclasses
import logging
import shutil
import tempfile
from pathlib import Path
from typing import Final

from rich.markup import escape

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.trials.bot_check import check_bot
from rlgym_bridge.trials.bot_folder import find_bot_file, read_bot_file
from rlgym_bridge.trials.bot_match import MatchTrier
from rlgym_bridge.user_input.stop_signals import stopped_by_signals

STATUS: Final = "0 no check failed, 1 a check failed, 2 bad usage or input"
_STYLES: Final = {"pass": "green", "warning": "yellow", "failure": "bold red"}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Try a bot of any language as RLBot v5 starts it, on the embedded match server: whether it starts, "
        "answers in time, moves, survives goals, demolitions, overtime and restarts, and plays what its tags "
        "say. Takes about half a minute. The bot's own command is run."
    )
    shared.add_option(parser, "bot FOLDER", "folder with a bot.toml, or the file itself", Path)
    shared.add_option(
        parser, "--timeout N", "seconds in which the bot must connect, and again in which it must be ready",
        shared.seconds, default=30.0,
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Check, show progress, and print a table."""
    output_files.check_outputs(options.json, inputs=[options.bot])
    bot = read_bot_file(find_bot_file(options.bot))
    progress = shared.console_of(options, stderr=True)
    log_dir = Path(tempfile.mkdtemp(prefix="rlgym-bridge-check-"))
    trier = MatchTrier(
        bot, options.timeout, log_dir, lambda name: progress.print(f"{name} ...", markup=False)
    )
    failed = False
    try:
        with shared.server_log(logging.CRITICAL), stopped_by_signals(trier.stop):
            verdicts = list(check_bot(bot, trier, options.timeout))
        failed = any(one.result == "failure" for one in verdicts)
    finally:
        if not failed:
            shutil.rmtree(log_dir, ignore_errors=True)
    console = shared.console_of(options)
    table = shared.make_table("check", "result", "seen")
    tried = [one for one in verdicts if one.result != "not tried"]
    for one in tried:
        seen = escape(one.seen) + (f"\n[italic]{escape(one.remedy)}[/]" if one.remedy else "")
        table.add_row(one.name, f"[{_STYLES[one.result]}]{one.result}[/]", seen)
    console.print(table)
    if untried := ", ".join(one.name for one in verdicts if one not in tried):
        console.print(f"not tried because of what is above: {untried}", markup=False)
    if failed:
        console.print(f"the bot's logs are in {log_dir}", markup=False)
    output_files.write_json(options.json, [dataclasses.asdict(one) for one in verdicts])
    return int(failed)
