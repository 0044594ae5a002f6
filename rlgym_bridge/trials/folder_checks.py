"""Check a bot's folder without starting the bot: its settings, commands, loadout, logo, details and size."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rlgym_bridge.trials.bot_folder import BotFile, names_bot
from rlgym_bridge.trials.bot_verdict import BotVerdict
from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.nearest_key import nearest_key

_SETTINGS: Final = (
    "agent_id", "name", "loadout_file", "root_dir", "run_command", "run_command_linux", "hivemind",
    "logo_file", "environment",
)  # fmt: skip
_DETAILS: Final = ("description", "fun_fact", "source_link", "developer", "language", "tags")
_NEEDED_DETAILS: Final = ("description", "developer", "language")
_AGENT_ID: Final = re.compile(r"[^\s/]+(/[^\s/]+)+")
_ABSOLUTE: Final = re.compile(r"""(?:^|(?<=[\s"'=;(]))(?:[A-Za-z]:[\\/]|[\\/]{1,2}|~/)[^\s"';)]+""")
_EVERYWHERE: Final = re.compile(r"/(usr/)?bin/(env|bash|sh|python3?)|/dev/null")
_LARGE_MB: Final = 200.0  # of a folder; a frozen bot with torch in it has more
_MOST_FILES: Final = 100_000


def check_folder(bot: BotFile) -> Iterator[BotVerdict]:
    """Check what a bot's files say, one verdict each; nothing is started."""
    yield _check_settings(bot)
    yield _check_commands(bot)
    yield _check_loadout(bot)
    yield _check_logo(bot)
    yield _check_details(bot)
    yield _check_size(bot.path.absolute().parent)


def runs_here(bot: BotFile) -> bool:
    """Tell whether it has a command for this system."""
    command = None if sys.platform == "win32" else bot.settings.get("run_command_linux")
    return bool(command or bot.settings.get("run_command"))


def _check_settings(bot: BotFile) -> BotVerdict:
    expected = "a name, an agent_id author/bot, known keys alone"
    agent_id = str(bot.settings["agent_id"])
    problems = []
    if not names_bot(bot.path):
        problems.append(f"{bot.path.name} is called neither bot.toml nor NAME.bot.toml")
    if not str(bot.settings.get("name", "")).strip():
        problems.append("it has no name")
    if not _AGENT_ID.fullmatch(agent_id):
        problems.append(f"agent_id is {agent_id!r}")
    for table, known in ((bot.settings, _SETTINGS), (bot.details, _DETAILS)):
        for key in table:
            if key not in known:
                near = nearest_key(key, known, 0.6)
                problems.append(
                    f"{shorten_text(key)} is no key" + (f" (did you mean {near}?)" if near else "")
                )
    if not problems:
        return BotVerdict("settings", "pass", f"{bot.settings['name']}, {agent_id}", expected)
    return BotVerdict("settings", "warning", "; ".join(problems), expected, f"mend it in {bot.path.name}")


def _check_commands(bot: BotFile) -> BotVerdict:
    name, expected = (
        "run commands",
        "one for Windows and one for Linux, with paths that are the same everywhere",
    )
    commands = {key: str(bot.settings.get(key) or "") for key in ("run_command", "run_command_linux")}
    places = commands | {"root_dir": str(bot.settings.get("root_dir") or "")}
    local = [f"{key} has {path}" for key, text in places.items() for path in _local_paths(text)]
    missing = [key for key, command in commands.items() if not command]
    remedies = []
    if local:
        remedies.append("it will not start elsewhere: use paths relative to the folder, or python")
    if missing:
        remedies.append("RLBot starts it with Wine, or not at all: add the command")
    seen = "; ".join([*local, *(f"no {key}" for key in missing)])
    if not runs_here(bot):
        return BotVerdict(name, "failure", f"no command for this system; {seen}", expected, "add the command")
    if seen:
        return BotVerdict(name, "warning", seen, expected, "; ".join(remedies))
    return BotVerdict(name, "pass", ", ".join(commands), expected)


def _local_paths(command: str) -> list[str]:
    """Return the paths of a command that may only be there on this machine."""
    return [path for path in _ABSOLUTE.findall(command) if not _EVERYWHERE.fullmatch(path)]


def _check_loadout(bot: BotFile) -> BotVerdict:
    expected = "loadout_file names a file that can be read"
    named = bot.settings.get("loadout_file")
    if bot.loadout_problem:
        remedy = "name the file, relative to bot.toml, or take the key out: RLBot refuses such a bot"
        seen = f"loadout_file is {named!r}: {bot.loadout_problem}"
        return BotVerdict("loadout", "failure", seen, expected, remedy)
    if named == "":
        remedy = "take the key out, or name a file: rlbot's own reader takes this for the folder, and fails"
        return BotVerdict("loadout", "warning", "loadout_file is ''", expected, remedy)
    if named is None:
        remedy = "add one, or the car is the game's usual one"
        return BotVerdict("loadout", "warning", "no loadout_file", expected, remedy)
    return BotVerdict("loadout", "pass", str(named), expected)


def _check_logo(bot: BotFile) -> BotVerdict:
    expected = "logo_file, or logo.png, is a picture for RLBot's window"
    named = bot.settings.get("logo_file")
    path = bot.path.parent / str(named or "logo.png")
    try:
        there = path.is_file() and path.stat().st_size > 0
    except (OSError, ValueError):
        there = False
    if there:
        return BotVerdict("logo", "pass", path.name, expected)
    if named:
        remedy = "put the picture there, or correct logo_file"
        return BotVerdict("logo", "failure", f"{named} is not there", expected, remedy)
    return BotVerdict("logo", "pass", "none named", expected)


def _check_details(bot: BotFile) -> BotVerdict:
    expected = f"{', '.join(_NEEDED_DETAILS)} and tags, for RLBot's window"
    empty = [key for key in _NEEDED_DETAILS if not str(bot.details.get(key, "")).strip()]
    empty += [] if bot.tags else ["tags"]
    if empty:
        remedy = "fill them in under [details]: RLBot's window shows them"
        return BotVerdict("details", "warning", f"empty: {', '.join(empty)}", expected, remedy)
    return BotVerdict("details", "pass", f"filled in, by {bot.details['developer']}", expected)


def _check_size(folder: Path) -> BotVerdict:
    expected = f"{_LARGE_MB:g} MB at most"
    total = count = 0
    largest = (0, "")
    for place, _, files in os.walk(folder):  # links to folders are not followed
        for path in (Path(place, name) for name in files):
            try:
                size = path.lstat().st_size
            except OSError:
                continue
            total, count = total + size, count + 1
            largest = max(largest, (size, str(path.relative_to(folder))))
        if count > _MOST_FILES:
            break
    megabytes = total / 1e6
    seen = f"{'more than ' if count > _MOST_FILES else ''}{megabytes:.1f} MB in {count:,} files"
    if megabytes > _LARGE_MB or count > _MOST_FILES:
        seen += f", the largest {largest[1]} with {largest[0] / 1e6:.1f} MB"
        remedy = "leave out what the bot does not play with, such as a virtual environment or checkpoints"
        return BotVerdict("size", "warning", seen, expected, remedy)
    return BotVerdict("size", "pass", seen, expected)
