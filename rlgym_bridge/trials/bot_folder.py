"""Find a bot's `bot.toml` and read what its checks need."""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.game import MOST_TEAM_SIZE
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.config.bot_files import parsed, read_bot
from rlgym_bridge.server.config.toml_lines import Source
from rlgym_bridge.user_input.text_files import explain_unreadable

MODES: Final = {"snow-day": flat.GameMode.Snowday, "heatseeker": flat.GameMode.Heatseeker}
"""Tags of modes that the match server plays [RLBot wiki, "configuration files"]."""

_TEAM_TAG: Final = re.compile(r"([1-9])v\1")
_HINTS: Final = 3  # files named in an error


@dataclass(frozen=True)
class BotFile:
    """A bot as its `bot.toml` describes it.

    Attributes:
        path: The file.
        settings: Its table `settings`.
        details: Its table `details`; empty where it has none.
        tags: Of its details.
        loadout_problem: Why its loadout file cannot be read; empty where it can, or where none is named.
    """

    path: Path
    settings: Mapping[str, Any]
    details: Mapping[str, Any]
    tags: tuple[str, ...]
    loadout_problem: str

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


def names_bot(path: Path) -> bool:
    """Tell whether a file has a name by which RLBot's window finds bots [RLBot wiki]."""
    return path.name == "bot.toml" or path.name.endswith(".bot.toml")


def find_bot_file(given: Path) -> Path:
    """Return the `bot.toml` of a folder, or the file itself.

    Raises:
        ConfigError: There is none, or there are several and none is called bot.toml.
    """
    if not given.is_dir():
        return given
    try:
        files = sorted(path for path in given.iterdir() if names_bot(path))
        below = sorted(path for path in given.glob("*/*bot.toml") if names_bot(path))
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
    """Read a `bot.toml`.

    Raises:
        ConfigError: It cannot be read, has no agent id, no name or no command, or a value of the wrong kind.
    """
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
