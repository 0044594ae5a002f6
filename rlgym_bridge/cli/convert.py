"""`rlgym-bridge convert`: translate files of RLBot v4."""

import argparse
import re
from pathlib import Path
from typing import Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.bot_files import Source
from rlgym_bridge.server.convert_v4 import convert, toml_name

_PATHS: Final = re.compile(r"^(?:(?:config|loadout|logo)_file|run_command) = ", re.MULTILINE)
"""Lines of a translated file that hold only in the folder of the file that it was translated from."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Translate a match, bot or loadout file of RLBot v4 (.cfg) into v5's TOML. Every key is translated "
        "or named with the reason why it has no counterpart. Code is not translated."
    )
    shared.add_option(parser, "file FILE.cfg", "file of RLBot v4", Path)
    shared.add_option(
        parser, "--out FILE.toml", "file to write, in the folder of FILE.cfg, to which paths in it are "
        "relative (default: FILE.toml, for a bot FILE.bot.toml)", Path,
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Translate, and say what became of each key."""
    source = Source(options.file)
    found = convert(source)
    out = options.out or options.file.with_name(toml_name(found.kind, options.file.stem))
    if _PATHS.search(found.text) and out.parent.resolve() != options.file.parent.resolve():
        raise ConfigError(
            f"--out is {out}, expected a file in the folder of {options.file}: paths in it begin there"
        )
    output_files.check_outputs(options.json, out, inputs=[options.file])
    if out.exists() or out.is_symlink():  # a link among a stranger's files may lead anywhere
        raise ConfigError(f"{out} is there already, expected a new file: give one with --out")
    output_files.write(out, found.text)
    say = shared.printer(options)
    say(f"{options.file} is a {found.kind} file of RLBot v4, written to {out}")
    for key, line in found.translated:
        say(f"  {key}: {line}")
    for key, why in found.left_out:
        say(f"  {key}: left out, {why}")
    named = dict.fromkeys(re.findall(r'^(?:config|loadout)_file = "(.+)"$', found.text, re.MULTILINE))
    missing = [one for one in named if not (out.parent / one).exists()]
    if missing:
        say(f"not there yet: {', '.join(missing)}; convert the .cfg files that these were, too")
    if found.kind == "bot":
        say("the code of the bot is not translated: it has to speak RLBot v5")
    result = {
        "kind": found.kind, "file": str(out), "translated": dict(found.translated),
        "left_out": dict(found.left_out),
    }  # fmt: skip
    output_files.write_json(options.json, result)
    return 0
