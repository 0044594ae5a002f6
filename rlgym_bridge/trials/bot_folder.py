"""Find a bot's `bot.toml`, read it, and check its folder without starting the bot."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from rlbot import flat

from rlgym_bridge.game import MOST_TEAM_SIZE
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.bot_files import Source, parsed, read_bot
from rlgym_bridge.user_input.arguments import nearest_key, shorten_text
from rlgym_bridge.user_input.text_files import explain_unreadable

MODES: Final = {"snow-day": flat.GameMode.Snowday, "heatseeker": flat.GameMode.Heatseeker}
"""Tags of modes that the match server plays [RLBot wiki, "configuration files"]."""

Result = Literal["pass", "warning", "failure", "not tried"]

_TEAM_TAG: Final = re.compile(r"([1-9])v\1")
_HINTS: Final = 3  # files named in an error


@dataclass(frozen=True)
class BotVerdict:
    """The result of one check."""

    name: str
    result: Result  # what fails, what to look at, what an earlier failure made pointless
    seen: str
    expected: str
    remedy: str = ""  # what to do; empty where nothing is to be done


class BotCheck(NamedTuple):
    """A check by its name, and what it expects."""

    name: str
    expected: str

    def __call__(self, result: Result, seen: str, remedy: str = "") -> BotVerdict:
        """Return the check's verdict."""
        return BotVerdict(self.name, result, seen, self.expected, remedy)


@dataclass(frozen=True)
class BotFile:
    """A bot as its `bot.toml` describes it."""

    path: Path
    settings: Mapping[str, Any]
    details: Mapping[str, Any]  # its table `details`; empty where it has none
    tags: tuple[str, ...]
    loadout_problem: str  # why its loadout file cannot be read; empty where it can, or where none is named

    @property
    def team_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the teams that its tags promise, ascending; none where they promise none."""
        sizes = {2} if "teamplay" in self.tags else set()
        sizes |= {int(found[1]) for tag in self.tags if (found := _TEAM_TAG.fullmatch(tag))}
        return tuple(sorted(size for size in sizes if size <= MOST_TEAM_SIZE))

    @property
    def home_mode(self) -> flat.GameMode:
        """Return the mode of its first match: not Soccar only where all its tags are of other modes."""
        modes = [MODES[tag] for tag in self.tags if tag in MODES]
        plays_soccar = self.team_sizes or not modes or {"goalie", "memebot"} & set(self.tags)
        return flat.GameMode.Soccar if plays_soccar else modes[0]

    @property
    def is_hivemind(self) -> bool:
        """Tell whether one process drives all cars of a team."""
        return self.settings.get("hivemind") is True

    def player(self, team: int) -> flat.PlayerConfiguration:
        """Return it as a player of a team, with the usual car where its loadout cannot be read."""
        if not self.loadout_problem:
            return read_bot(self.path, team, "", None)
        with tempfile.TemporaryDirectory(prefix="rlgym-bridge-") as folder:
            empty = Path(folder) / "loadout.toml"
            empty.touch()
            return read_bot(self.path, team, "", empty)


def _names_bot(path: Path) -> bool:
    """Tell whether a file has a name by which RLBot's window finds bots [RLBot wiki]."""
    return path.name == "bot.toml" or path.name.endswith(".bot.toml")


def find_bot_file(given: Path) -> Path:
    """Return the `bot.toml` of a folder, or the file itself; a ConfigError says where there is not one."""
    if not given.is_dir():
        return given
    try:
        files = sorted(path for path in given.iterdir() if _names_bot(path))
        below = sorted(path for path in given.glob("*/*bot.toml") if _names_bot(path))
    except OSError as error:
        raise ConfigError(explain_unreadable(error)) from error
    if given / "bot.toml" in files:
        return given / "bot.toml"
    if len(files) == 1:
        return files[0]
    if files:
        names = ", ".join(path.name for path in files[:_HINTS])
        raise ConfigError(f"{given} holds {len(files)} bots ({names}), expected one: name the file")
    hint = f": name {' or '.join(map(str, below[:_HINTS]))}" if below else ""
    raise ConfigError(f"{given} has no bot.toml, expected one, or NAME.bot.toml{hint}")


def read_bot_file(path: Path) -> BotFile:
    """Read a `bot.toml`; a ConfigError says why it cannot be read, what it lacks, or which value is wrong."""
    source = Source(path)
    data = parsed(source)
    problem = ""
    try:
        read_bot(path, 0, "", None)
    except ConfigError as error:
        problem = str(error)
    settings, details = data.get("settings"), data.get("details", {})
    if not isinstance(settings, dict) or not isinstance(details, dict):
        raise ConfigError(problem or f"{path}: details is {details!r}, expected a table")
    if not (settings.get("run_command") or settings.get("run_command_linux")):
        raise source.error("settings", "run_command", "is missing, expected the command that starts the bot")
    tags = details.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise source.error("details", "tags", f'is {tags!r}, expected a list such as ["1v1"]')
    bot = BotFile(path, settings, details, tuple(tags), problem if "loadout_file" in settings else "")
    bot.player(0)  # an error that is not the loadout's
    return bot


_SETTINGS: Final = (
    "agent_id", "name", "loadout_file", "root_dir", "run_command", "run_command_linux", "hivemind",
    "logo_file", "environment", "forecast",
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
    check = BotCheck("settings", "a name, an agent_id author/bot, known keys alone")
    agent_id = str(bot.settings["agent_id"])
    problems = []
    if not _names_bot(bot.path):
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
        return check("pass", f"{bot.settings['name']}, {agent_id}")
    return check("warning", "; ".join(problems), f"mend it in {bot.path.name}")


def _check_commands(bot: BotFile) -> BotVerdict:
    check = BotCheck(
        "run commands", "one for Windows and one for Linux, with paths that are the same everywhere"
    )
    commands = {key: str(bot.settings.get(key) or "") for key in ("run_command", "run_command_linux")}
    places = commands | {"root_dir": str(bot.settings.get("root_dir") or "")}
    local = [
        f"{key} has {path}"
        for key, text in places.items()
        for path in _ABSOLUTE.findall(text)
        if not _EVERYWHERE.fullmatch(path)
    ]
    missing = [key for key, command in commands.items() if not command]
    remedies = []
    if local:
        remedies.append(
            "it will not start elsewhere: use relative paths or python, as `rlgym-bridge package` does"
        )
    if missing:
        remedies.append("RLBot starts it with Wine, or not at all: add the command")
    seen = "; ".join([*local, *(f"no {key}" for key in missing)])
    if not runs_here(bot):
        return check("failure", f"no command for this system; {seen}", "add the command")
    if seen:
        return check("warning", seen, "; ".join(remedies))
    return check("pass", ", ".join(commands))


def _check_loadout(bot: BotFile) -> BotVerdict:
    check = BotCheck("loadout", "loadout_file names a file that can be read")
    named = bot.settings.get("loadout_file")
    if bot.loadout_problem:
        remedy = "name the file, relative to bot.toml, or take the key out: RLBot refuses such a bot"
        return check("failure", f"loadout_file is {named!r}: {bot.loadout_problem}", remedy)
    if named == "":
        remedy = "take the key out, or name a file: rlbot's own reader takes this for the folder, and fails"
        return check("warning", "loadout_file is ''", remedy)
    if named is None:
        return check("warning", "no loadout_file", "add one, or the car is the game's usual one")
    return check("pass", str(named))


def _check_logo(bot: BotFile) -> BotVerdict:
    check = BotCheck("logo", "logo_file, or logo.png, is a picture for RLBot's window")
    named = bot.settings.get("logo_file")
    path = bot.path.parent / str(named or "logo.png")
    try:
        there = path.is_file() and path.stat().st_size > 0
    except (OSError, ValueError):
        there = False
    if there:
        return check("pass", path.name)
    if named:
        return check("failure", f"{named} is not there", "put the picture there, or correct logo_file")
    return check("pass", "none named")


def _check_details(bot: BotFile) -> BotVerdict:
    check = BotCheck("details", f"{', '.join(_NEEDED_DETAILS)} and tags, for RLBot's window")
    empty = [key for key in _NEEDED_DETAILS if not str(bot.details.get(key, "")).strip()]
    empty += [] if bot.tags else ["tags"]
    if empty:
        seen = f"empty: {', '.join(empty)}"
        return check("warning", seen, "fill them in under [details]: RLBot's window shows them")
    return check("pass", f"filled in, by {bot.details['developer']}")


def _check_size(folder: Path) -> BotVerdict:
    check = BotCheck("size", f"{_LARGE_MB:g} MB at most")
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
        return check("warning", seen, remedy)
    return check("pass", seen)
