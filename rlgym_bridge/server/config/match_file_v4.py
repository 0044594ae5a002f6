"""Match files in RLBot v4's `.cfg` form, whose participants name v5 `bot.toml` files."""

import configparser
from pathlib import Path
from typing import Final

from rlbot import flat
from rlbot.utils.maps import GAME_MAP_TO_UPK

from rlgym_bridge.server.config.bot_files import idle_player, read_bot, read_script
from rlgym_bridge.server.config.toml_lines import Source
from rlgym_bridge.server.game.roster import ONLY_BOTS
from rlgym_bridge.server.server_errors import ConfigError
from rlgym_bridge.user_input.arguments import shorten_text

_MATCH: Final = "Match Configuration"
_PARTICIPANTS: Final = "Participant Configuration"
_MUTATORS: Final = "Mutator Configuration"
_SCRIPTS: Final = "Scripts"

_MATCH_KEYS: Final = (
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


def read_cfg(source: Source, allow_idle: bool = False) -> flat.MatchConfiguration:
    """Read a v4 match file into v5's form; its rules are not checked yet."""
    parser = parse_cfg(source)
    for name in (_MATCH, _PARTICIPANTS):
        if not parser.has_section(name):
            raise ConfigError(f"{source.path}: no [{name}], expected an RLBot v4 match file")
    return _Cfg(source, parser, allow_idle).match()


class _Cfg:
    """Typed access to a v4 match file."""

    def __init__(self, source: Source, parser: configparser.ConfigParser, allow_idle: bool) -> None:
        self._source, self._allow_idle = source, allow_idle
        self._parser = parser

    def match(self) -> flat.MatchConfiguration:
        self._source.warn_unknown(_MATCH, self._parser[_MATCH], _MATCH_KEYS)
        game_map = self._text(_MATCH, "game_map", "DFHStadium")
        rendering = self._flag("enable_rendering")
        mode = self._choice(_MATCH, "game_mode", GAME_MODES, "soccer")
        return flat.MatchConfiguration(
            auto_start_agents=True,
            wait_for_agents=True,
            game_map_upk=GAME_MAP_TO_UPK.get(game_map, game_map),
            player_configurations=self._players(),
            script_configurations=self._scripts(),
            game_mode=getattr(flat.GameMode, mode),
            skip_replays=self._flag("skip_replays"),
            instant_start=self._flag("start_without_countdown"),
            mutators=self._mutators(),
            enable_rendering=flat.DebugRendering.OnByDefault
            if rendering
            else flat.DebugRendering.OffByDefault,
            enable_state_setting=self._flag("enable_state_setting"),
            auto_save_replay=self._flag("auto_save_replay"),
        )

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

    def _mutators(self) -> flat.MutatorSettings:
        if not self._parser.has_section(_MUTATORS):
            return flat.MutatorSettings()
        self._source.warn_unknown(_MUTATORS, self._parser[_MUTATORS], OPTIONS)
        settings = flat.MutatorSettings()
        for option, (name, choices) in OPTIONS.items():
            if self._parser.has_option(_MUTATORS, option):
                value = self._choice(_MUTATORS, option, choices, next(iter(choices)))
                setattr(settings, name, getattr(type(getattr(settings, name)), value))
        return settings

    def _players(self) -> list[flat.PlayerConfiguration]:
        if not self._parser.has_option(_MATCH, "num_participants"):
            raise self._source.error(_MATCH, "num_participants", "is missing, expected 1 to 8")
        count = self._whole(_MATCH, "num_participants", "0", 1, 8)
        return [self._player(number) for number in range(count)]

    def _player(self, number: int) -> flat.PlayerConfiguration:
        kind = self._text(_PARTICIPANTS, f"participant_type_{number}", "rlbot").lower()
        team = self._whole(_PARTICIPANTS, f"participant_team_{number}", "0", 0, 1)
        if kind in ("human", "psyonix") and self._allow_idle:
            return idle_player(kind, team)
        if kind != "rlbot":
            raise self._source.error(_PARTICIPANTS, f"participant_type_{number}", f"is {kind!r}, {ONLY_BOTS}")
        key = f"participant_config_{number}"
        path = self._text(_PARTICIPANTS, key, "")
        if not path:
            raise self._source.error(_PARTICIPANTS, key, "is missing, expected a bot.toml's path")
        loadout = self._text(_PARTICIPANTS, f"participant_loadout_config_{number}", "None")
        return read_bot(self._path(path), team, "", None if loadout == "None" else self._path(loadout))

    def _scripts(self) -> list[flat.ScriptConfiguration]:
        if not self._parser.has_section(_SCRIPTS):
            return []
        entries = self._parser[_SCRIPTS].items()
        return [
            read_script(self._path(path.strip()))
            for key, path in sorted(entries)
            if key.startswith("script_config_") and path.strip() not in ("", "None")
        ]

    def _path(self, text: str) -> Path:
        return self._source.path.parent.absolute() / text


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
