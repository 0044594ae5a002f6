"""`rlgym-bridge init`: begin a bot of one's own."""

import argparse
import shlex
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.project.new_project import new_project


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Begin a bot of your own: a folder with settings, an observation and a reward of its own, the bot as "
        "RLBot starts it, and a match. In that folder train, evaluate and match run without options."
    )
    shared.add_option(parser, "folder NAME", "folder to make; the bot has its name", Path)
    shared.add_option(
        parser, "--author A", "who made it, for RLBot's window (default: nobody is named)", default=""
    )


def run(options: argparse.Namespace) -> int:
    """Write the project, and say what comes next."""
    output_files.check_outputs(options.json)
    files = [file.name for file in new_project(options.folder, options.author)]
    say = shared.printer(options)
    say(f"{options.folder}: {', '.join(files)}")
    if not options.author:
        say("no author: --author A names you; or write it into bot.toml, as developer")
    say(f"next:\n  cd {shlex.quote(str(options.folder))}")
    for name in ("train", "evaluate", "match --pace lockstep"):
        say(f"  rlgym-bridge {name}")
    output_files.write_json(options.json, {"folder": str(options.folder), "files": files})
    return 0
