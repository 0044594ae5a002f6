"""Bots and scripts as RLBot v5 describes them: `bot.toml` and `script.toml`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlbot import flat
from rlbot.config import ConfigParsingException, load_player_config, load_script_config

from rlgym_bridge.server.config.toml_lines import Source
from rlgym_bridge.server.server_errors import ConfigError
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.text_files import parse_toml


def read_bot(path: Path, team: int, name: str, loadout: Path | None) -> flat.PlayerConfiguration:
    """Read a `bot.toml`.

    Args:
        path: The file.
        team: 0 blue, 1 orange.
        name: Name in place of the one in the file, "" to keep that.
        loadout: Loadout file in place of the one in the file.

    Returns:
        The player, its environment variables included.

    Raises:
        ConfigError: The file or its loadout cannot be read, or it has no agent id.
    """
    source = _bot_source(path)
    settings = _settings(source)
    environment = _environment(source, settings)
    named = settings.get("loadout_file")
    if loadout is None and isinstance(named, str):
        # "" means none; rlbot's reader takes that for the folder, and finds no loadout in the bot's own file
        loadout = path.parent / named if named else path
    if loadout is not None:
        parsed(Source(loadout))  # its errors, before rlbot reads it
    with catch_rlbot_errors(path):
        player = load_player_config(path, team, name, loadout)
    if isinstance(player.variety, flat.CustomBot):
        player.variety.environment = environment
    return player


def idle_player(kind: str, team: int, name: str = "") -> flat.PlayerConfiguration:
    """Return the player of a car that nobody drives here; `kind` is "human" or "psyonix"."""
    variety = flat.Human() if kind == "human" else flat.PsyonixBot(name)
    return flat.PlayerConfiguration(variety, team)


def read_script(path: Path) -> flat.ScriptConfiguration:
    """Read a script's toml file.

    Raises:
        ConfigError: The file cannot be read, or it has no agent id.
    """
    source = _bot_source(path)
    environment = _environment(source, _settings(source))
    with catch_rlbot_errors(path):
        script = load_script_config(path)
    script.environment = environment
    return script


def _bot_source(path: Path) -> Source:
    if path.suffix == ".cfg":
        raise ConfigError(
            f"{path}: an RLBot v4 bot, expected a v5 bot.toml: `rlgym-bridge convert {path}` writes one, but "
            "its code has to be written anew; name that one in the match file"
        )
    return Source(path)


def _settings(source: Source) -> dict[str, object]:
    """Read `[settings]`, which has an agent id."""
    settings = parsed(source).get("settings")
    if not isinstance(settings, dict):
        raise ConfigError(f"{source.path}: no [settings], expected a v5 bot.toml with agent_id")
    if not str(settings.get("agent_id", "")).strip():
        raise source.error("settings", "agent_id", "is missing, expected 'developer/bot'")
    return settings


def _environment(source: Source, settings: dict[str, object]) -> list[flat.EnvironmentVariable]:
    """Return what rlbot's own reader leaves out: `[settings.environment]`."""
    variables = settings.get("environment", {})
    if not isinstance(variables, dict):
        raise source.error("settings", "environment", 'is no table, expected NAME = "value"')
    return [flat.EnvironmentVariable(name, str(value)) for name, value in variables.items()]


def parsed(source: Source) -> dict[str, object]:
    """Return what a TOML file says.

    Raises:
        ConfigError: It is no valid TOML; the message has line and column.
    """
    try:
        return parse_toml(source.text)
    except ValueError as error:
        raise ConfigError(f"{source.path}: no valid TOML: {error}") from error


@contextmanager
def catch_rlbot_errors(path: Path) -> Iterator[None]:
    """Raise a ConfigError for whatever rlbot's own reader raises for a file.

    That reader hardly checks what a file holds: it raises KeyError, AttributeError and RecursionError, too.
    """
    try:
        yield
    except (OSError, ValueError, ConfigParsingException) as error:
        raise ConfigError(f"{path}: {error}") from error
    except Exception as error:
        raise ConfigError(f"{path}: rlbot cannot read it: {type(error).__name__}: {error}") from None


def check_texts(match: flat.MatchConfiguration) -> None:
    """Check that RLBot's messages can hold all that a match says of its bots and scripts.

    Raises:
        ConfigError: A text is no UTF-8: the name of a folder may be none.
    """
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
