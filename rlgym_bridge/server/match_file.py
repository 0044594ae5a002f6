"""Read match files: RLBot v5 `.toml`, or v4 `.cfg` whose participants name v5 `bot.toml` files."""

import configparser
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from rlbot import flat
from rlbot.utils.maps import GAME_MAP_TO_UPK

from rlgym_bridge.server.bot_files import Source, idle_player, parsed, read_bot, read_script
from rlgym_bridge.server.game.roster import ONLY_BOTS, seat_players
from rlgym_bridge.server.game.rules import check_rules, name_of
from rlgym_bridge.server.result import ConfigError
from rlgym_bridge.user_input.arguments import shorten_text

_MATCH: Final = "Match Configuration"
_PARTICIPANTS: Final = "Participant Configuration"
_MUTATORS: Final = "Mutator Configuration"
_SCRIPTS: Final = "Scripts"

_V4_MATCH_KEYS: Final = (
    "num_participants", "game_mode", "game_map", "skip_replays", "start_without_countdown",
    "existing_match_behavior", "enable_lockstep", "enable_rendering", "enable_state_setting",
    "auto_save_replay",
)  # fmt: skip

# What the options of v4 [RLBot 1.68, match settings] are called in v5. Numbers are earlier versions' values,
# also taken by v4 [its match_settings_config_parser.py].
GAME_MODES: Final = {
    "soccer": "Soccar", "soccar": "Soccar", "hoops": "Hoops", "dropshot": "Dropshot",
    "hockey": "Snowday", "rumble": "Rumble", "heatseeker": "Heatseeker", "gridiron": "Gridiron",
}  # fmt: skip
OPTIONS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "match length": ("match_length", {
        "5 minutes": "FiveMinutes", "10 minutes": "TenMinutes", "20 minutes": "TwentyMinutes",
        "unlimited": "Unlimited"}),
    "max score": ("max_score", {
        "unlimited": "Unlimited", "1 goal": "OneGoal", "3 goals": "ThreeGoals",
        "5 goals": "FiveGoals", "0": "Unlimited"}),
    "overtime": ("overtime", {
        "unlimited": "Unlimited", "+5 max, first score": "FiveMaxFirstScore",
        "+5 max, random team": "FiveMaxRandomTeam"}),
    "series length": ("series_length", {
        "unlimited": "Unlimited", "3 games": "ThreeGames", "5 games": "FiveGames",
        "7 games": "SevenGames"}),
    "game speed": ("game_speed", {
        "default": "Default", "slo-mo": "SloMo", "time warp": "TimeWarp"}),
    "ball max speed": ("ball_max_speed", {
        "default": "Default", "slow": "Slow", "fast": "Fast", "super fast": "SuperFast",
        "0": "Default"}),
    "ball type": ("ball_type", {
        "default": "Default", "cube": "Cube", "puck": "Puck", "basketball": "Basketball"}),
    "ball weight": ("ball_weight", {
        "default": "Default", "light": "Light", "heavy": "Heavy", "super light": "SuperLight"}),
    "ball size": ("ball_size", {
        "default": "Default", "small": "Small", "large": "Large", "gigantic": "Gigantic",
        "1.0": "Default"}),
    "ball bounciness": ("ball_bounciness", {
        "default": "Default", "low": "Low", "high": "High", "super high": "SuperHigh",
        "1.0": "Default"}),
    "boost amount": ("boost_amount", {
        "default": "NormalBoost", "unlimited": "UnlimitedBoost",
        "recharge (slow)": "SlowRecharge", "recharge (fast)": "RapidRecharge",
        "no boost": "NoBoost"}),
    "rumble": ("rumble", {
        "none": "Off", "default": "DefaultRumble", "slow": "Slow", "civilized": "Civilized",
        "destruction derby": "DestructionDerby", "spring loaded": "SpringLoaded",
        "spikes only": "SpikesOnly", "spike rush": "SpikeRush"}),
    "boost strength": ("boost_strength", {
        "1x": "One", "1.5x": "OneAndAHalf", "2x": "Two", "10x": "Ten", "default": "One", "1.0": "One"}),
    "gravity": ("gravity", {
        "default": "Default", "low": "Low", "high": "High", "super high": "SuperHigh"}),
    "demolish": ("demolish", {
        "default": "Default", "disabled": "Disabled", "friendly fire": "FriendlyFire",
        "on contact": "OnContact", "on contact (ff)": "OnContactFf",
        "on contact / ff": "OnContactFf"}),
    "respawn time": ("respawn_time", {
        "3 seconds": "ThreeSeconds", "2 seconds": "TwoSeconds", "1 second": "OneSecond",
        "disable goal reset": "DisableGoalReset", "3": "ThreeSeconds", "3.0": "ThreeSeconds"}),
}  # fmt: skip


_PARTICIPANT_KEY: Final = re.compile(
    "participant_(config|team|type|bot_skill|loadout_config)_(0|[1-9][0-9]?)"
)  # RLBot 1.68's rlbot.cfg has these for ten cars
KINDS: Final = {
    "rlbot": "rlbot", "party_member_bot": "rlbot", "human": "human", "controller_passthrough": "human",
    "psyonix": "psyonix",
}  # fmt: skip
"""v5's types of cars by v4's. A bot that the game takes for a human, and a human whom the framework passes
on, have none of their own."""
_FLAGS: Final = ("skip_replays", "start_without_countdown", "enable_state_setting", "auto_save_replay")


class _Cfg:
    """A v4 match file, as the tables that v5 would have; its rules are not checked yet."""

    def __init__(self, source: Source, allow_idle: bool) -> None:
        self._source, self._allow_idle = source, allow_idle
        self._parser = parse_cfg(source)
        for name in (_MATCH, _PARTICIPANTS):
            if not self._parser.has_section(name):
                raise ConfigError(f"{source.path}: no [{name}], expected an RLBot v4 match file")

    def tables(self) -> dict[str, object]:
        self._source.warn_unknown(_MATCH, self._parser[_MATCH], _V4_MATCH_KEYS)
        of_cars = self._parser[_PARTICIPANTS]
        self._source.warn_unknown(_PARTICIPANTS, of_cars, filter(_PARTICIPANT_KEY.fullmatch, of_cars))
        game_map = self._text(_MATCH, "game_map", "DFHStadium")
        drawn = self._flag("enable_rendering")
        match = {
            "game_mode": self._choice(_MATCH, "game_mode", GAME_MODES, "soccer"),
            "game_map_upk": GAME_MAP_TO_UPK.get(game_map, game_map),
            "enable_rendering": "OnByDefault" if drawn else "OffByDefault",
        } | {key: self._flag(key) for key in _FLAGS}
        if not self._parser.has_option(_MATCH, "num_participants"):
            raise self._source.error(_MATCH, "num_participants", "is missing, expected 1 to 8")
        cars = [self._car(number) for number in range(self._whole(_MATCH, "num_participants", "0", 1, 8))]
        entries = sorted(self._parser[_SCRIPTS].items()) if self._parser.has_section(_SCRIPTS) else []
        scripts = [
            {"config_file": path.strip()}
            for key, path in entries
            if key.startswith("script_config_") and path.strip() not in ("", "None")
        ]
        return {"match": match, "mutators": self._mutators(), "cars": cars, "scripts": scripts}

    def _text(self, section: str, key: str, default: str) -> str:
        return self._parser.get(section, key, fallback=default).strip() or default

    def _flag(self, key: str) -> bool:
        try:
            return self._parser.getboolean(_MATCH, key, fallback=False)
        except ValueError:
            text = self._parser.get(_MATCH, key)
            raise self._source.error(_MATCH, key, f"is {text!r}, expected True or False") from None

    def _choice(self, section: str, key: str, choices: dict[str, str], default: str) -> str:
        text = self._text(section, key, default)
        if text.lower() not in choices:
            problem = f"is {text!r}, expected one of {', '.join(choices)}"
            raise self._source.error(section, key, problem)
        return choices[text.lower()]

    def _whole(self, section: str, key: str, default: str, lowest: int, highest: int) -> int:
        text = self._text(section, key, default)
        if not text.isdecimal() or len(text) > 9 or not lowest <= int(text) <= highest:
            problem = f"is {text!r}, expected a whole number from {lowest} to {highest}"
            raise self._source.error(section, key, problem)
        return int(text)

    def _mutators(self) -> dict[str, str]:
        if not self._parser.has_section(_MUTATORS):
            return {}
        self._source.warn_unknown(_MUTATORS, self._parser[_MUTATORS], OPTIONS)
        return {
            name: self._choice(_MUTATORS, option, choices, next(iter(choices)))
            for option, (name, choices) in OPTIONS.items()
            if self._parser.has_option(_MUTATORS, option)
        }

    def _car(self, number: int) -> dict[str, object]:
        kind = self._choice(_PARTICIPANTS, f"participant_type_{number}", KINDS, "rlbot")
        team = self._whole(_PARTICIPANTS, f"participant_team_{number}", "0", 0, 1)
        if kind != "rlbot" and self._allow_idle:
            return {"type": kind, "team": team}
        if kind != "rlbot":
            raise self._source.error(_PARTICIPANTS, f"participant_type_{number}", f"is {kind!r}, {ONLY_BOTS}")
        key = f"participant_config_{number}"
        path = self._text(_PARTICIPANTS, key, "")
        if not path:
            raise self._source.error(_PARTICIPANTS, key, "is missing, expected a bot.toml's path")
        loadout = self._text(_PARTICIPANTS, f"participant_loadout_config_{number}", "None")
        return {"team": team, "config_file": path, "loadout_file": "" if loadout == "None" else loadout}


_MOST_IN_LINE: Final = 1000  # characters: configparser takes time with the square of the spaces in a line
_NO_DEFAULTS: Final = "\n"  # no section has this name: v4 has no defaults, and each section would repeat them


def parse_cfg(source: Source) -> configparser.ConfigParser:
    """Return the sections of a v4 file; a ConfigError says why it is none, or which line is too long."""
    parser = configparser.ConfigParser(
        interpolation=None, inline_comment_prefixes=("#", ";"), default_section=_NO_DEFAULTS
    )
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > _MOST_IN_LINE:
            problem = f"has {len(line):,} characters, expected {_MOST_IN_LINE:,} at most"
            raise ConfigError(f"{source.path}:{number}: the line {problem}")
    try:
        parser.read_string(source.text, source=str(source.path))
    except configparser.Error as error:
        raise ConfigError(f"{source.path}: no valid cfg file: {shorten_text(str(error), 300)}") from error
    return parser


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
_CAR_KEYS: Final = ("team", "type", "config_file", "name", "loadout_file", "auto_start", "skill")
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
    """Read a match from an RLBot v5 `.toml` or a v4 `.cfg` file; a ConfigError says why it cannot be.

    Where `cars_follow`, to be added or replaced, its own are not checked. Where `allow_idle`, it may have
    humans and Psyonix bots, whose cars stand idle.
    """
    path = Path(path)
    if path.suffix not in (".toml", ".cfg"):
        raise ConfigError(f"{path}: expected a match file, .toml (RLBot v5) or .cfg (RLBot v4)")
    source = Source(path)
    if path.suffix == ".cfg":
        data = _Cfg(source, allow_idle).tables()
    else:
        data = parsed(source)
        source.warn_unknown("top level", data, _SECTIONS)
    configuration = _match_of(source, data, allow_idle)
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


def _match_of(source: Source, data: Mapping[str, Any], allow_idle: bool) -> flat.MatchConfiguration:
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
        kind, key = "psyonix", "config_file"
        problem = "is missing, which makes a Psyonix bot of it"  # [RLBot core]
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
