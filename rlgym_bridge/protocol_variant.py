"""Name the points of the protocol that documents leave open or disagree on, and read a server's answers.

A server speaks one `ProtocolVariant`; the match server takes it from `--dialect NAME=VALUE`. A bot settles
each point from the packets themselves or reads it from a file, `dialect.toml`, which `rlgym-bridge probe
--out` writes: a point that is not settled is not in it.

    server = "other"       # where it was measured: a bot uses the file only with such a server

    [dialect]
    pad_timer = "elapsed"

    [timing]
    input_latency = 0      # ticks
    packets_per_second = 120.0
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from rlgym_bridge.user_input.arguments import nearest_key
from rlgym_bridge.user_input.checking import check_values, expecting
from rlgym_bridge.user_input.text_files import read_toml


class Point(NamedTuple):
    """One open point: the values that it may have, the match server's usual one first, and a description."""

    values: tuple[str, ...]
    meaning: str


POINTS: Final[Mapping[str, Point]] = {
    "pad_timer": Point(
        ("elapsed", "remaining"),
        "BoostPadState.timer of a pad that is away: seconds since its pickup, or until it is back",
    ),
    "dodge_timeout": Point(
        ("after_jump", "plus_hold"),
        "PlayerInfo.dodge_timeout: 1.25 s less the time since the jump ended, or that plus the time the jump "
        "was held",
    ),
    "dodge_timeout_jumping": Point(
        ("minus_one", "full"),
        "dodge_timeout while the jump still pushes: -1, or what it starts from when the jump ends",
    ),
    "dodge_timeout_used": Point(
        ("minus_one", "counting"),
        "dodge_timeout after a dodge or double jump, in the air: -1, or counting on",
    ),
    "dodge_timeout_expired": Point(
        ("minus_one", "zero"), "dodge_timeout when the time is up, in the air: -1 or 0"
    ),
    "on_ground": Point(("three_wheels", "four_wheels"), "wheels that must touch for AirState.OnGround"),
    "ball_after_goal": Point(
        ("shown", "hidden"), "GamePacket.balls from a goal to the next countdown: the ball, or empty"
    ),
    "idle_frames": Point(
        ("counted", "repeated"),
        "frame_num in Replay, Paused and Ended: one more with every packet, or standing still",
    ),
    "demolished_place": Point(
        ("kept", "origin"), "place and speed of a demolished car: those of its demolition, or all zero"
    ),
    "kickoff_ends": Point(
        ("at_touch", "after_two_seconds"),
        "phase Kickoff turns Active at the first touch, or after 2 s at the latest; the clock waits for the "
        "touch either way",
    ),
    "clock": Point(("fraction", "whole"), "game_time_remaining: exact, or whole seconds rounded up"),
}
"""All open points. Schema docstrings, rlbot-rocketsim, RLBotSim and rlgym-compat disagree, or are silent."""

MOST_LATENCY: Final = 1200
"""Ticks by which an input may act late, 10 s; nobody could play with more than a few."""

OWN_SERVER: Final = "rlgym-bridge"
"""The name of this project's match server. A file that was measured there has it under `server`. The server's
PingResponse and MatchConfiguration end with it: readers of flatbuffers pass over what follows one."""

OTHER_SERVER: Final = "other"  # value of `server` in a file that was measured on any other server

_KEYS: Final = ("server", "dialect", "timing")
_LOG = logging.getLogger(__name__)


class _Timing:
    """The table [timing] of a dialect.toml; every key may be missing."""

    input_latency: Annotated[
        int, Meta(ge=0, le=MOST_LATENCY), expecting(f"ticks, a whole number from 0 to {MOST_LATENCY} (10 s)")
    ]
    packets_per_second: Annotated[float, Meta(gt=0, le=1e30), expecting("a number above 0")]


class ProtocolVariant(dict[str, str]):
    """A value for some of `POINTS`, by name; raises ValueError for any other name or value."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        for name, value in self.items():
            if name not in POINTS:
                raise ValueError(
                    f"dialect has no point {name!r}; there are {', '.join(POINTS)}. "
                    f"The nearest is {nearest_key(name, POINTS)}"
                )
            if value not in POINTS[name].values:
                raise ValueError(
                    f"dialect point {name} is {value!r}, expected one of {', '.join(POINTS[name].values)}"
                )

    @classmethod
    def parse(cls, words: Iterable[str]) -> "ProtocolVariant":
        """Return the variant of `NAME=VALUE` words; raises ValueError for a wrong or repeated one."""
        values: dict[str, str] = {}
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise ValueError(f"dialect {word!r} is not of the form NAME=VALUE, as in pad_timer=remaining")
            if name in values:
                raise ValueError(f"dialect point {name} is given twice, as {values[name]} and as {value}")
            values[name] = value
        return cls(values)

    def complete(self) -> "ProtocolVariant":
        """Return this with the first value for every point that it leaves open."""
        return ProtocolVariant({name: point.values[0] for name, point in POINTS.items()} | self)


@dataclass(frozen=True)
class VariantFile:
    """The content of a `dialect.toml`."""

    path: Path  # the file
    dialect: ProtocolVariant  # the points that are settled
    input_latency: int | None = None  # ticks from the packet answered to the first one driven; None: not told
    server: str | None = None  # `OWN_SERVER` or `OTHER_SERVER`, where it was measured; None: not told

    @classmethod
    def read(cls, path: Path) -> "VariantFile":
        """Read a `dialect.toml`; raises OSError, or ValueError if it is none, or has no value of `POINTS`."""
        content = _load(path)
        if not isinstance(table := content.get("dialect"), dict):
            raise ValueError(
                f"{path} has no table [dialect]; `rlgym-bridge probe --out FILE` writes such a file"
            )
        try:
            dialect = ProtocolVariant(table)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return cls(path, dialect, content.get("timing", {}).get("input_latency"), content.get("server"))

    def fits(self, own_server: bool) -> bool:
        """Tell whether the file is for a server: this project's match server, or any other."""
        return self.server is None or (self.server == OWN_SERVER) is own_server


def _load(path: Path) -> dict[str, Any]:
    """Read a file and check its tables and `[timing]`; `ProtocolVariant` checks the points."""
    content = read_toml(path)
    try:
        for name in content:
            if name in POINTS:
                raise ValueError(f"{name} stands outside the table [dialect], expected below that line")
            if name not in _KEYS:
                raise ValueError(f"{name!r} is unknown, expected {nearest_key(name, _KEYS)}")
        if content.get("server") not in (None, OWN_SERVER, OTHER_SERVER):
            raise ValueError(f"server is {content['server']!r}, expected {OWN_SERVER!r} or {OTHER_SERVER!r}")
        timing = content.get("timing", {})
        if not isinstance(timing, dict):
            raise ValueError(f"timing is {timing!r}, expected a table [timing]")
        for name in timing:
            if name not in _Timing.__annotations__:
                raise ValueError(
                    f"{name!r} in [timing] is unknown, expected {nearest_key(name, _Timing.__annotations__)}"
                )
        check_values(timing, _Timing, lambda name, problem: ValueError(f"{name} {problem}"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return content


_CHANGED_FIELDS = {
    "pad_timer": ("pad_timer",),
    "dodge_timeout": ("air_time_since_jump", "has_flip", "can_flip"),
    "demolished_place": ("position", "rotation", "linear_velocity", "angular_velocity"),
}
"""The points of the dialect that packets show by themselves, and the fields of `MatchState` they change.

`on_ground`, `kickoff_ends` and `clock` count only where a file says them. In play the others change nothing:
packets are decoded in the same way whatever their values.
"""

_OBSERVED = {
    "elapsed": ("pad_timer", "elapsed", "remaining"),
    "adds_hold": ("dodge_timeout", "plus_hold", "after_jump"),
    "at_origin": ("demolished_place", "origin", "kept"),
}
"""By attribute of `VariantDetector`: the point, and its values for True and for False."""


class VariantDetector:
    """The server's protocol variant as far as it is known, shared by the readers of a connection.

    Packets do not overrule a given dialect: a contradiction is logged once. None is unknown: whether pad
    timers count up from the pickup (`elapsed`), `dodge_timeout` includes the time that jump was held
    (`adds_hold`), and a demolished car is shown at the origin (`at_origin`). `wheels_on_ground` touch at
    least where a packet says `OnGround`; with `waits_for_touch` phase Kickoff may end before the first touch;
    with `whole_seconds` the clock is rounded up. Packets may still decide, or contradict, what is
    `undecided`.
    """

    def __init__(self, dialect: ProtocolVariant | None = None) -> None:
        given = dialect or ProtocolVariant()
        self.elapsed = _is(given.get("pad_timer"), "elapsed")
        self.adds_hold = _is(given.get("dodge_timeout"), "plus_hold")
        self.at_origin = _is(given.get("demolished_place"), "origin")
        self.wheels_on_ground = 4 if given.get("on_ground") == "four_wheels" else 3
        self.waits_for_touch = given.get("kickoff_ends") == "after_two_seconds"
        self.whole_seconds = given.get("clock") == "whole"
        self.undecided = set(_OBSERVED)
        self._given = {name for name, (point, _, _) in _OBSERVED.items() if point in given}

    def observe(self, name: str, value: bool) -> None:
        """Note what a packet shows about one of the attributes."""
        if name not in self._given:
            setattr(self, name, value)
            self.undecided.discard(name)
        elif value is not getattr(self, name) and name in self.undecided:
            self.undecided.discard(name)
            point, *values = _OBSERVED[name]
            shown, given = values if value else reversed(values)
            _LOG.warning(
                "packets show %s=%s, but the given dialect says %s=%s, which is used: these may be wrong: %s",
                point, shown, point, given, ", ".join(_CHANGED_FIELDS[point]),
            )  # fmt: skip

    @property
    def dialect(self) -> ProtocolVariant:
        """Return the values that are known."""
        values = ((point, getattr(self, name), yes, no) for name, (point, yes, no) in _OBSERVED.items())
        return ProtocolVariant(
            {point: yes if is_yes else no for point, is_yes, yes, no in values if is_yes is not None}
        )

    @property
    def in_doubt(self) -> dict[str, tuple[str, ...]]:
        """Return the points that are still unknown, with the fields of `MatchState` that may be wrong."""
        known = self.dialect
        return {point: fields for point, fields in _CHANGED_FIELDS.items() if point not in known}


def _is(value: str | None, meant: str) -> bool | None:
    return None if value is None else value == meant
