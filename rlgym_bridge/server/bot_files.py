"""Bots and scripts as RLBot v5 describes them: `bot.toml` and `script.toml`."""

import tomllib
from pathlib import Path

from rlbot import flat
from rlbot.config import ConfigParsingException, load_player_config, load_script_config

from rlgym_bridge.server.errors import ConfigError
from rlgym_bridge.server.source import Source


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
    environment = _environment(_bot_source(path))
    try:
        player = load_player_config(path, team, name, loadout)
    except (OSError, tomllib.TOMLDecodeError, ConfigParsingException) as error:
        raise ConfigError(f"{path}: {error}") from error
    if isinstance(player.variety, flat.CustomBot):
        player.variety.environment = environment
    return player


def read_script(path: Path) -> flat.ScriptConfiguration:
    """Read a script's toml file.

    Raises:
        ConfigError: The file cannot be read, or it has no agent id.
    """
    environment = _environment(_bot_source(path))
    try:
        script = load_script_config(path)
    except (OSError, tomllib.TOMLDecodeError, ConfigParsingException) as error:
        raise ConfigError(f"{path}: {error}") from error
    script.environment = environment
    return script


def _bot_source(path: Path) -> Source:
    if path.suffix == ".cfg":
        raise ConfigError(
            f"{path}: an RLBot v4 bot, expected a v5 bot.toml: write one with agent_id, name and "
            f"run_command under [settings] and name it in the match file"
        )
    return Source(path)


def _environment(source: Source) -> list[flat.EnvironmentVariable]:
    """Read what rlbot's own reader leaves out: `[settings.environment]`."""
    settings = parsed(source).get("settings")
    if not isinstance(settings, dict):
        raise ConfigError(f"{source.path}: no [settings], expected a v5 bot.toml with agent_id")
    if not str(settings.get("agent_id", "")).strip():
        raise source.error("settings", "agent_id", "is missing, expected 'developer/bot'")
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
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source.path}: no valid TOML: {error}") from error
