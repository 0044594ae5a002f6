"""Read bots and scripts as RLBot v5 describes them, with errors that name the line of a key."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rlbot import flat
from rlbot.config import ConfigParsingException, load_player_config, load_player_loadout, load_script_config

from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.result import ConfigError
from rlgym_bridge.user_input.arguments import nearest_key, shorten_text, show_value
from rlgym_bridge.user_input.text_files import explain_unreadable, parse_toml, read_text

_log = client_log(__name__)

_MOST_CHARACTERS: Final = 1 << 16  # longest file; those of matches and bots have a twentieth of this
_MOST_UNKNOWN: Final = 20  # keys of a section that are named: each is looked for in the whole file
_HEADER: Final = re.compile(r"\s*+\[++([^\]]++)\]")


class Source:
    """The text of a configuration file."""

    def __init__(self, path: Path) -> None:
        """Read a file; a ConfigError says that it cannot be read, is too long, or is no UTF-8 text."""
        self.path = path
        try:
            self.text = read_text(path)
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such file; expected a match, bot or loadout file") from None
        except (OSError, ValueError) as error:
            raise ConfigError(explain_unreadable(error)) from error
        if len(self.text) > _MOST_CHARACTERS:
            raise ConfigError(
                f"{path} has {len(self.text):,} characters, expected a match, bot or loadout file of "
                f"{_MOST_CHARACTERS:,} at most"
            )

    def line(self, section: str, key: str, occurrence: int = 0) -> int | None:
        """Return the number of a key's line, from 1, in one of several sections of a name."""
        here, seen = False, -1
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := _HEADER.match(line):
                is_named = header.group(1).strip() == section
                seen += is_named
                here = is_named and seen == occurrence
            elif here and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=:]", line, re.IGNORECASE):
                return number
        return None

    def error(self, section: str, key: str, problem: str, occurrence: int = 0) -> ConfigError:
        """Make the error for a key that is wrong or missing."""
        return ConfigError(f"{self._place(section, key, occurrence)}: [{section}] {key} {problem}")

    def warn_unknown(
        self, section: str, keys: Iterable[str], known: Iterable[str], occurrence: int = 0
    ) -> None:
        """Warn of keys that nobody reads, most likely misspelt."""
        known = list(known)
        unknown = [key for key in keys if key not in known]
        for key in unknown[:_MOST_UNKNOWN]:
            near = nearest_key(key, known, 0.6)
            hint = f"; did you mean {near}?" if near else ""
            where, shown = self._place(section, key, occurrence), shorten_text(key)
            _log.warning("%s: [%s] %s is unknown, ignored%s", where, section, shown, hint)
        if len(unknown) > _MOST_UNKNOWN:
            more = len(unknown) - _MOST_UNKNOWN
            _log.warning("%s: [%s] %d more keys are unknown, ignored", self.path, section, more)

    def _place(self, section: str, key: str, occurrence: int) -> str:
        """Return the file and, where the key has a line of its own, its number."""
        line = self.line(section, key, occurrence)
        return f"{self.path}" if line is None else f"{self.path}:{line}"


_MOST_ID: Final = (1 << 32) - 1  # of a loadout: ids are 32 bits, unsigned, in messages
LOADOUT_KEYS: Final = tuple(key for key in flat.PlayerLoadout.__match_args__ if key.endswith("_id"))
PAINT_KEYS: Final = tuple(key for key in flat.LoadoutPaint.__match_args__ if key.endswith("_id"))


def read_bot(
    path: Path, team: int, name: str, loadout: Path | None, auto_start: bool = True
) -> flat.PlayerConfiguration:
    """Read a `bot.toml`; `name` ("" for none) and `loadout` stand above the file's own.

    Without `auto_start` it has no command: the match does not start it. A ConfigError says why the file or
    its loadout cannot be read, or that it has no agent id.
    """
    settings, environment = _read_settings(path)
    named = settings.get("loadout_file")
    if loadout is None and isinstance(named, str):
        # "" means none; rlbot's reader takes that for the folder, and finds no loadout in the bot's own file
        loadout = path.parent / named if named else path
    if loadout is not None:
        _check_loadout(loadout, team)
    with catch_rlbot_errors(path):
        player = load_player_config(path, team, name, loadout)
    if isinstance(player.variety, flat.CustomBot):
        player.variety.environment = environment
        player.variety.run_command = _command(path, settings) if auto_start else ""
    return player


def idle_player(
    kind: str, team: int, name: str = "", loadout: Path | None = None
) -> flat.PlayerConfiguration:
    """Return the player of a car that nobody drives here; `kind` is "human" or "psyonix"."""
    if kind == "human":
        return flat.PlayerConfiguration(flat.Human(), team)
    looks = None
    if loadout is not None:
        _check_loadout(loadout, team)
        with catch_rlbot_errors(loadout):
            looks = load_player_loadout(loadout, team)
    return flat.PlayerConfiguration(flat.PsyonixBot(name, looks), team)


def read_script(path: Path, auto_start: bool = True) -> flat.ScriptConfiguration:
    """Read a script's toml file; without `auto_start` it has no command."""
    settings, environment = _read_settings(path)
    with catch_rlbot_errors(path):
        script = load_script_config(path)
    script.environment = environment
    script.run_command = _command(path, settings) if auto_start else ""
    return script


def _command(path: Path, settings: Mapping[str, object]) -> str:
    """Return the command for this system; as RLBot's core does, one for Windows alone with wine."""
    windows, others = (str(settings.get(key) or "") for key in ("run_command", "run_command_linux"))
    if sys.platform == "win32" or others or not windows:
        return windows if sys.platform == "win32" else others
    if shutil.which("wine"):
        return f"wine {windows}"
    _log.warning(
        "%s: run_command %s stands alone, and there is no wine with which RLBot's core runs it on this "
        "system; it is run as it is: add run_command_linux",
        path, shorten_text(windows),
    )  # fmt: skip
    return windows


def _check_loadout(path: Path, team: int) -> None:
    """Raise a ConfigError for a wrong id in the part of a loadout file that a team uses."""
    source = Source(path)
    name = "blue_loadout" if team == 0 else "orange_loadout"
    loadout = _table(source, "top level", name, parsed(source).get(name, {}))
    paint = _table(source, name, "paint", loadout.get("paint", {}))
    for section, table, keys in ((name, loadout, LOADOUT_KEYS), (f"{name}.paint", paint, PAINT_KEYS)):
        for key in keys:
            value = table.get(key, 0)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_ID:
                shown = shorten_text(repr(value))
                raise source.error(section, key, f"is {shown}, expected a whole number from 0 to {_MOST_ID}")


def _table(source: Source, section: str, key: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise source.error(section, key, f"is {shorten_text(repr(value))}, expected a table")
    return value


def _read_settings(path: Path) -> tuple[dict[str, object], list[flat.EnvironmentVariable]]:
    """Read `[settings]`, which has an agent id, and what rlbot's own reader leaves out: the environment."""
    if path.suffix == ".cfg" and path.exists():
        raise ConfigError(
            f"{path}: an RLBot v4 bot, expected a v5 bot.toml: `rlgym-bridge convert {path}` writes one, but "
            "its code has to be written anew; name that one in the match file"
        )
    source = Source(path)
    settings = parsed(source).get("settings")
    if not isinstance(settings, dict):
        raise ConfigError(f"{source.path}: no [settings], expected a v5 bot.toml with agent_id")
    if not str(settings.get("agent_id", "")).strip():
        raise source.error("settings", "agent_id", "is missing, expected 'developer/bot'")
    variables = settings.get("environment", {})
    if not isinstance(variables, dict):
        raise source.error("settings", "environment", 'is no table, expected NAME = "value"')
    return settings, [flat.EnvironmentVariable(name, str(value)) for name, value in variables.items()]


def parsed(source: Source) -> dict[str, object]:
    """Parse a TOML file; a ConfigError has line and column."""
    try:
        return parse_toml(source.text)
    except ValueError as error:
        raise ConfigError(f"{source.path}: no valid TOML: {error}") from error


@contextmanager
def catch_rlbot_errors(path: Path) -> Iterator[None]:
    """Raise a ConfigError for whatever rlbot's reader raises for a file: KeyError and RecursionError, too."""
    try:
        yield
    except (OSError, ValueError, ConfigParsingException) as error:
        raise ConfigError(f"{path}: {error}") from error
    except Exception as error:
        raise ConfigError(f"{path}: rlbot cannot read it: {type(error).__name__}: {error}") from None


def check_texts(match: flat.MatchConfiguration) -> None:
    """Raise a ConfigError for a text of a match that is no UTF-8, as RLBot's messages have it."""
    bots = [player.variety for player in match.player_configurations]
    for bot in (*bots, *match.script_configurations):
        texts = {name: getattr(bot, name, "") for name in ("name", "agent_id", "root_dir", "run_command")}
        texts |= {one.name: one.value for one in getattr(bot, "environment", None) or ()}
        for name, text in texts.items():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise ConfigError(
                    f"{name} of a bot is {show_value(os.fsencode(text))}, expected UTF-8 text, as RLBot's "
                    "messages have it: rename the folder"
                ) from None
