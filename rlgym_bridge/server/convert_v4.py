"""Translate RLBot v4's `.cfg` files into v5's `.toml`: matches, bots and loadouts."""

import configparser
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final

from rlbot.utils.maps import GAME_MAP_TO_UPK

from rlgym_bridge.server.bot_files import LOADOUT_KEYS, PAINT_KEYS, Source
from rlgym_bridge.server.match_file import GAME_MODES, KINDS, OPTIONS, parse_cfg
from rlgym_bridge.server.result import ConfigError
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.text_files import toml_line

SKILLS: Final = ((0.25, "Rookie"), (0.75, "Pro"), (1.0, "AllStar"))
"""Upper ends of `participant_bot_skill`. 0 is rookie, 0.5 pro and 1 all-star [v4's agent_config_parser.py];
values between go to the nearest. v5's Beginner has no counterpart."""

LAUNCHERS: Final = {"steam": "Steam", "epic": "Epic"}

LOADOUT_SECTIONS: Final = {
    "Bot Loadout": ("blue_loadout", LOADOUT_KEYS), "Bot Loadout Orange": ("orange_loadout", LOADOUT_KEYS),
    "Bot Paint Blue": ("blue_loadout.paint", PAINT_KEYS),
    "Bot Paint Orange": ("orange_loadout.paint", PAINT_KEYS),
}  # fmt: skip
WHY_NOT: Final = {
    "enable_lockstep": "v5 has no lockstep; --pace lockstep of rlgym-bridge match is one",
    "python_file": "became run_command; code for v4's BaseAgent has to be written anew for v5's Bot",
    "maximum_tick_rate_preference": "v5 sends every packet, 120 a second",
    "use_virtual_environment": "run_command names the Python",
    "requirements_file": "installing is not RLBot v5's affair",
    "num_participants": "v5 counts [[cars]]",
}


_MOST_PLAYERS: Final = 64


@dataclass
class Converted:
    """A translated file, of the kind "match", "bot" or "loadout", in TOML.

    `translated` has keys with what they became, `left_out` keys with the reason why they have no counterpart.
    """

    kind: str
    text: str
    translated: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def convert(source: Source) -> Converted:
    """Translate a v4 file; a ConfigError says that it is none, or which value v4 does not know."""
    parser = parse_cfg(source)
    kinds: dict[str, Callable[[_Translation], str]] = {
        "Participant Configuration": _match,
        "Locations": _bot,
        "Bot Loadout": _loadout,
    }
    for section, translate in kinds.items():
        if parser.has_section(section):
            translation = _Translation(source, parser)
            kind = translate.__name__.strip("_")
            text = translate(translation)
            return Converted(kind, text, translation.translated, translation.rest())
    raise ConfigError(
        f"{source.path}: has none of the sections {', '.join(kinds)}, expected a match, bot or loadout file "
        "of RLBot v4"
    )


class _Translation:
    """The keys of a v4 file, each of which is taken once."""

    def __init__(self, source: Source, parser: configparser.ConfigParser) -> None:
        self.source, self._parser = source, parser
        self.translated: list[tuple[str, str]] = []
        self._left = {(section, key) for section in parser.sections() for key in parser[section]}
        self._empty: set[tuple[str, str]] = set()
        self.cars = 0

    def take(self, section: str, key: str) -> str | None:
        """Return a value, None where there is none; "None" stands for none in v4."""
        if (section, key) not in self._left:
            return None
        text = self._parser.get(section, key).strip()
        if text in ("", "None"):
            self._empty.add((section, key))
            return None
        self._left.discard((section, key))
        return text

    def note(self, key: str, line: str) -> str:
        """Keep what a key became; return the line."""
        self.translated.append((key, line))
        return line

    def line(
        self, section: str, key: str, name: str, value_of: Callable[[str], Any] = str,
        choices: Iterable[str] = (),
    ) -> list[str]:  # fmt: skip
        """Return the line that a key becomes, none where it is not there; an error names the choices."""
        text = self.take(section, key)
        if text is None:
            return []
        try:
            value = value_of(text)
        except (ValueError, KeyError):
            problem = f"is {show_value(text)}, which RLBot v4 does not know"
            if choices:
                problem += f"; expected one of {', '.join(choices)}"
            raise self.source.error(section, key, problem) from None
        return [self.note(key, toml_line(name, value))]

    def rest(self) -> list[tuple[str, str]]:
        return [
            (key, "it is empty" if (section, key) in self._empty else self._why_not(key))
            for section in self._parser.sections()
            for key in self._parser[section]
            if (section, key) in self._left
        ]

    def _why_not(self, key: str) -> str:
        number = re.fullmatch(r"participant_[a-z_]+_(\d{1,9})", key)
        if number is None:
            return WHY_NOT.get(key, "v5 has no such key")
        if int(number[1]) >= self.cars:
            return f"num_participants is {self.cars}"
        return "v5 needs none for a car of this type"


def _flag(text: str) -> bool:
    return configparser.ConfigParser.BOOLEAN_STATES[text.lower()]


def _slashes(text: str) -> str:
    return PureWindowsPath(text).as_posix()


def _toml_path(text: str, ending: str) -> str:
    """Return the path of the file that a v4 file is translated to; TOML stays."""
    path = PurePosixPath(_slashes(text))
    if path.suffix != ".cfg":
        return str(path)
    return str(path.with_name(path.stem + ending))


def toml_name(kind: str, stem: str) -> str:
    """Return the name of a translated file: v5 wants bots to be `bot.toml` or `*.bot.toml`."""
    if kind == "bot":
        return "bot.toml" if stem == "bot" else f"{stem}.bot.toml"
    return f"{stem}.toml"


def _rendering(of: _Translation, section: str) -> list[str]:
    """Leave v4's false out: v5's default is off, too, and v5's false is off whatever a client asks for."""
    lines = of.line(section, "enable_rendering", "enable_rendering", _flag)
    if lines and not of.translated[-1][1].endswith("true"):
        of.translated[-1] = ("enable_rendering", "v5's default")
        return []
    return lines


def _match(of: _Translation) -> str:
    section = "Match Configuration"
    launcher = of.line("RLBot Configuration", "launcher_preference", "launcher", partial(_choice, LAUNCHERS))
    lines = ["[rlbot]", *launcher, "", "[match]"] if launcher else ["[match]"]
    lines += of.line(section, "game_mode", "game_mode", partial(_choice, GAME_MODES), GAME_MODES)
    lines += of.line(section, "game_map", "game_map_upk", lambda text: GAME_MAP_TO_UPK.get(text, text))
    for key, name in (
        ("skip_replays", "skip_replays"), ("start_without_countdown", "start_without_countdown"),
        ("enable_state_setting", "enable_state_setting"), ("auto_save_replay", "auto_save_replays"),
    ):  # fmt: skip
        lines += of.line(section, key, name, _flag)
    lines += _rendering(of, section)
    # RLBot's core reads the one name, rlbot's Python package the other.
    lines += [
        line.replace("start_without_countdown", "instant_start") for line in lines if "countdown" in line
    ]
    behaviours = {
        "restart": "Restart", "continue and spawn": "ContinueAndSpawn",
        "restart if different": "RestartIfDifferent",
    }  # fmt: skip
    lines += of.line(
        section, "existing_match_behavior", "existing_match_behavior",
        lambda text: behaviours[text.lower().replace("_", " ")], behaviours,
    )  # fmt: skip
    mutators = []
    for option, (name, choices) in OPTIONS.items():
        mutators += of.line("Mutator Configuration", option, name, partial(_choice, choices), choices)
    if mutators:
        lines += ["", "[mutators]", *mutators]
    count = of.take(section, "num_participants") or "0"
    if not re.fullmatch(r"[0-9]{1,2}", count) or int(count) > _MOST_PLAYERS:
        problem = f"is {show_value(count)}, expected a whole number from 0 to {_MOST_PLAYERS}"
        raise of.source.error(section, "num_participants", problem)
    of.cars = int(count)
    for number in range(of.cars):
        lines += ["", "[[cars]]", *_car(of, number)]
    of.translated.append(("num_participants", f"{count} [[cars]]"))
    for key in _scripts(of):
        named = of.line("Scripts", key, "config_file", lambda text: _toml_path(text, ".toml"))
        lines += ["", "[[scripts]]", *named]
    return "\n".join(lines) + "\n"


def _scripts(of: _Translation) -> list[str]:
    keys = {key for name, key in of._left if name == "Scripts" and re.fullmatch(r"script_config_\d+", key)}
    return sorted(key for key in keys if of._parser.get("Scripts", key).strip() not in ("", "None"))


def _car(of: _Translation, number: int) -> list[str]:
    section = "Participant Configuration"
    given = of.take(section, f"participant_type_{number}")
    kind = KINDS.get(old := (given or "rlbot").lower())
    if kind is None:
        problem = f"is {old!r}, expected one of {', '.join(KINDS)}"
        raise of.source.error(section, f"participant_type_{number}", problem)
    lines = [toml_line("type", kind)]
    if given is not None:
        of.note(f"participant_type_{number}", lines[0])
    lines += of.line(section, f"participant_team_{number}", "team", lambda text: {"0": 0, "1": 1}[text])
    bot = kind == "rlbot"
    if bot:
        lines += of.line(
            section, f"participant_config_{number}", "config_file", lambda text: _toml_path(text, ".bot.toml")
        )
        lines += of.line(
            section, f"participant_loadout_config_{number}", "loadout_file",
            lambda text: _toml_path(text, ".toml"),
        )  # fmt: skip
    if kind == "psyonix":
        lines += of.line(section, f"participant_bot_skill_{number}", "skill", _skill)
    return lines


def _choice(choices: Mapping[str, str], text: str) -> str:
    return choices[text.lower()]


def _skill(text: str) -> str:
    value = float(text)
    if math.isnan(value):
        raise ValueError
    return next((name for most, name in SKILLS if value <= most), "AllStar")


def _number(text: str) -> int:
    """Return a number of an item: v5 has 32 bits for it."""
    value = int(text)
    if not 0 <= value < 1 << 32:
        raise ValueError
    return value


def _bot(of: _Translation) -> str:
    lines = ["[settings]"]
    name = of.take("Locations", "name") or of.source.path.stem
    developer = of.take("Details", "developer") or ""
    agent_id = "/".join(
        re.sub(r"[^a-z0-9]+", "-", one.lower()).strip("-") or "bot" for one in (developer, name)
    )
    lines += [toml_line("agent_id", agent_id), of.note("name", toml_line("name", name))]
    lines += of.line("Locations", "looks_config", "loadout_file", lambda text: _toml_path(text, ".toml"))
    lines += of.line("Locations", "logo_file", "logo_file", _slashes)
    file = of.take("Locations", "python_file")
    if file is not None:
        command = f"python {_slashes(file)}"
        lines.append(of.note("python_file", toml_line("run_command", command)))
        lines.append(toml_line("run_command_linux", command.replace("python", "python3", 1)))
    details = []
    if developer:
        details.append(of.note("developer", toml_line("developer", developer)))
    for key, ours in (
        ("description", "description"), ("fun_fact", "fun_fact"), ("github", "source_link"),
        ("language", "language"),
    ):  # fmt: skip
        details += of.line("Details", key, ours)
    details += of.line(
        "Details", "tags", "tags", lambda text: [one.strip() for one in text.split(",") if one.strip()]
    )
    return "\n".join([*lines, "", "[details]", *details]) + "\n"


def _loadout(of: _Translation) -> str:
    lines: list[str] = []
    for section, (table, keys) in LOADOUT_SECTIONS.items():
        found = [line for key in keys for line in of.line(section, key, key, _number)]
        if found:
            lines += ["", f"[{table}]", *found]
    return "\n".join(lines[1:]) + "\n"
