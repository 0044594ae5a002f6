"""Read match files: RLBot v5 `.toml` here, v4 `.cfg` in `match_file_v4.py`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from rlbot import flat

from rlgym_bridge.server.config.bot_files import idle_player, parsed, read_bot, read_script
from rlgym_bridge.server.config.match_file_v4 import read_cfg
from rlgym_bridge.server.config.toml_lines import Source
from rlgym_bridge.server.game.match_mutators import name_of
from rlgym_bridge.server.game.roster import ONLY_BOTS, seat_players
from rlgym_bridge.server.game.rules import check_rules
from rlgym_bridge.server.server_errors import ConfigError

Table = Mapping[str, object]
_Value = TypeVar("_Value", str, bool)
_Enum = TypeVar("_Enum")

_SECTIONS: Final = ("rlbot", "match", "mutators", "cars", "scripts")
_RLBOT_KEYS: Final = (
    "launcher", "launcher_arg", "auto_start_agents", "wait_for_agents", "performance_monitor",
    "auto_start_bots",
)  # fmt: skip
_MATCH_KEYS: Final = (
    "game_mode", "game_map_upk", "skip_replays", "start_without_countdown", "instant_start",
    "existing_match_behavior", "enable_rendering", "enable_state_setting", "auto_save_replays",
    "auto_save_replay", "freeplay",
)  # fmt: skip
_CAR_KEYS: Final = (
    "team", "type", "config_file", "name", "loadout_file", "auto_start", "skill",
)  # fmt: skip
_ALIASES: Final = {
    ("game_mode", "soccer"): "soccar",
    ("game_mode", "hockey"): "snowday",  # [RLBot wiki]
    ("ball_bounciness", "lowishbounciness"): "lowish",  # [RLBot wiki]
    ("max_score", "default"): "unlimited",  # from here on: names of earlier schemas
    ("max_time", "default"): "unlimited",
    ("rumble", "default"): "defaultrumble",
    ("rumble", "norumble"): "off",
}
_TEAMS: Final = {"0": 0, "1": 1, "blue": 0, "orange": 1}


def read_match_file(
    path: Path | str, cars_follow: bool = False, allow_idle: bool = False
) -> flat.MatchConfiguration:
    """Read a match from an RLBot v5 `.toml` or a v4 `.cfg` file, and check that it can be played here.

    Args:
        path: The file; paths in it are relative to it.
        cars_follow: Whether cars are to be added or replaced: then its own are not checked.
        allow_idle: Whether it may have humans and Psyonix bots, whose cars stand idle.

    Raises:
        ConfigError: The file cannot be read, or describes no match that can be played here.
    """
    path = Path(path)
    if path.suffix not in (".toml", ".cfg"):
        raise ConfigError(f"{path}: expected a match file, .toml (RLBot v5) or .cfg (RLBot v4)")
    source = Source(path)
    read = read_cfg if path.suffix == ".cfg" else _read_toml
    configuration = read(source, allow_idle)
    try:
        check_rules(configuration)
        if not cars_follow:
            seat_players(configuration, allow_idle)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return configuration


def enum_value(kind: Callable[[int], _Enum], text: str) -> _Enum:
    """Return the value of a flatbuffer enum by its name, in any case; a ValueError lists the names."""
    values: dict[str, _Enum] = {}
    try:
        while True:
            value = kind(len(values))
            values[name_of(value).lower()] = value
    except ValueError:  # past the last one
        if text.lower() in values:
            return values[text.lower()]
    names = ", ".join(name_of(value) for value in values.values())
    raise ValueError(f"is {text!r}, expected one of {names}")


class _Reader:
    """Typed values of one table of a TOML file, with errors that name file, line and key."""

    def __init__(self, source: Source, section: str, table: object, occurrence: int = 0) -> None:
        if not isinstance(table, dict):
            raise ConfigError(f"{source.path}: {section} is {table!r}, expected a table")
        self.table: Table = table
        self._source, self._section, self._occurrence = source, section, occurrence

    def known(self, keys: tuple[str, ...]) -> "_Reader":
        self._source.warn_unknown(self._section, self.table, keys, self._occurrence)
        return self

    def error(self, key: str, problem: str) -> ConfigError:
        return self._source.error(self._section, key, problem, self._occurrence)

    def value(self, key: str, default: _Value) -> _Value:
        value = self.table.get(key, default)
        if not isinstance(value, type(default)):
            kind = "true or false" if isinstance(default, bool) else "a string in quotes"
            raise self.error(key, f"is {value!r}, expected {kind}")
        return value

    def enum(self, key: str, kind: Callable[[int], _Enum]) -> _Enum:
        text = self.value(key, "")
        try:
            return enum_value(kind, _ALIASES.get((key, text.lower()), text)) if text else kind(0)
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def team(self) -> int:
        value = self.table.get("team", 0)
        team = None if isinstance(value, bool) else _TEAMS.get(str(value).lower())
        if team is None:
            raise self.error("team", f'is {value!r}, expected 0, 1, "blue" or "orange"')
        return team

    def file(self, key: str) -> Path | None:
        text = self.value(key, "")
        return self._source.path.parent.absolute() / text if text else None


def _read_toml(source: Source, allow_idle: bool) -> flat.MatchConfiguration:
    data = parsed(source)
    source.warn_unknown("top level", data, _SECTIONS)
    rlbot = _Reader(source, "rlbot", data.get("rlbot", {})).known(_RLBOT_KEYS)
    match = _Reader(source, "match", data.get("match", {})).known(_MATCH_KEYS)
    cars, scripts = data.get("cars", []), data.get("scripts", [])
    if not isinstance(cars, list) or not isinstance(scripts, list):
        raise ConfigError(f"{source.path}: expected cars as [[cars]] and scripts as [[scripts]]")
    return flat.MatchConfiguration(
        launcher=rlbot.enum("launcher", flat.Launcher),
        launcher_arg=rlbot.value("launcher_arg", ""),
        auto_start_agents=rlbot.value("auto_start_agents", True),
        wait_for_agents=rlbot.value("wait_for_agents", True),
        game_map_upk=match.value("game_map_upk", "Stadium_P"),
        player_configurations=[_car(source, i, table, allow_idle) for i, table in enumerate(cars)],
        script_configurations=[_script(source, i, table) for i, table in enumerate(scripts)],
        game_mode=match.enum("game_mode", flat.GameMode),
        skip_replays=match.value("skip_replays", False),
        instant_start=match.value("start_without_countdown", False) or match.value("instant_start", False),
        mutators=_mutators(source, data.get("mutators", {})),
        existing_match_behavior=match.enum("existing_match_behavior", flat.ExistingMatchBehavior),
        enable_rendering=_rendering(match),
        enable_state_setting=match.value("enable_state_setting", True),  # [RLBot core]
        auto_save_replay=match.value("auto_save_replays", False) or match.value("auto_save_replay", False),
        freeplay=match.value("freeplay", False),
        performance_monitor=rlbot.enum("performance_monitor", flat.PerformanceMonitor),
    )


def _rendering(match: _Reader) -> flat.DebugRendering:
    """Return who may draw; true and false stand for the extremes [RLBot core, `ConfigParser.cs`]."""
    value = match.table.get("enable_rendering")
    if isinstance(value, bool):
        return flat.DebugRendering.OnByDefault if value else flat.DebugRendering.AlwaysOff
    return match.enum("enable_rendering", flat.DebugRendering)


def _mutators(source: Source, table: object) -> flat.MutatorSettings:
    settings = flat.MutatorSettings()
    names = settings.__match_args__
    reader = _Reader(source, "mutators", table).known(names)
    for name in names:
        if name in reader.table:
            setattr(settings, name, reader.enum(name, type(getattr(settings, name))))
    return settings


def _car(source: Source, number: int, table: object, allow_idle: bool) -> flat.PlayerConfiguration:
    car = _Reader(source, "cars", table, number).known(_CAR_KEYS)
    kind = car.value("type", "rlbot").lower()
    if kind not in ("rlbot", "human", "psyonix"):
        raise car.error("type", f"is {kind!r}, expected rlbot, human or psyonix")
    path = car.file("config_file")
    key, problem = "type", f"is {kind!r}"
    if kind == "rlbot" and path is None:
        kind, key, problem = (
            "psyonix",
            "config_file",
            "is missing, which makes a Psyonix bot of it",
        )  # [RLBot core]
    if kind != "rlbot" or path is None:
        if not allow_idle:
            raise car.error(key, f"{problem}, {ONLY_BOTS}")
        return idle_player(kind, car.team(), car.value("name", ""), car.file("loadout_file"))
    return read_bot(
        path, car.team(), car.value("name", ""), car.file("loadout_file"), car.value("auto_start", True)
    )


def _script(source: Source, number: int, table: object) -> flat.ScriptConfiguration:
    reader = _Reader(source, "scripts", table, number).known(("config_file", "auto_start"))
    path = reader.file("config_file")
    if path is None:
        raise reader.error("config_file", "is missing, expected the path of a script's toml")
    return read_script(path, reader.value("auto_start", True))
