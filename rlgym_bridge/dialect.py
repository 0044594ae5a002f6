"""Name the points of the protocol that documents leave open or disagree on, and read a server's answers.

A server speaks one `Dialect`; the match server takes it from `--dialect NAME=VALUE`. A bot settles
each point from the packets themselves or reads it from a file, `dialect.toml`, which `rlgym-bridge probe
--out` writes: a point that is not settled is not in it.

    server = "other"       # where it was measured: a bot uses the file only with such a server

    [dialect]
    pad_timer = "elapsed"

    [timing]
    input_latency = 0      # ticks
    packets_per_second = 120.0
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from rlgym_bridge.user_input.arguments import nearest_key
from rlgym_bridge.user_input.checking import check_values, expecting
from rlgym_bridge.user_input.text_files import read_toml


class Point(NamedTuple):
    """One open point.

    Attributes:
        values: What it may be; the first is what the match server does when nothing is said.
        meaning: A description for people.
    """

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
        ("minus_one", "zero"),
        "dodge_timeout when the time is up, in the air: -1 or 0",
    ),
    "on_ground": Point(
        ("three_wheels", "four_wheels"),
        "wheels that must touch for AirState.OnGround",
    ),
    "ball_after_goal": Point(
        ("shown", "hidden"),
        "GamePacket.balls from a goal to the next countdown: the ball, or empty",
    ),
    "idle_frames": Point(
        ("counted", "repeated"),
        "frame_num in Replay, Paused and Ended: one more with every packet, or standing still",
    ),
    "demolished_place": Point(
        ("kept", "origin"),
        "place and speed of a demolished car: those of its demolition, or all zero",
    ),
    "kickoff_ends": Point(
        ("at_touch", "after_two_seconds"),
        "phase Kickoff turns Active at the first touch, or after 2 s at the latest; the clock waits for the "
        "touch either way",
    ),
    "clock": Point(
        ("fraction", "whole"),
        "game_time_remaining: exact, or whole seconds rounded up",
    ),
}
"""All open points. Schema docstrings, rlbot-rocketsim, RLBotSim and rlgym-compat disagree, or are silent."""

MOST_LATENCY: Final = 1200
"""Ticks by which an input may act late, 10 s; nobody could play with more than a few."""

OWN_SERVER: Final = "rlgym-bridge"
"""The name of this project's match server. A file that was measured there has it under `server`. The server's
PingResponse and MatchConfiguration end with it: readers of flatbuffers pass over what follows one."""

OTHER_SERVER: Final = "other"
"""Value of `server` in a file that was measured on any other server."""

_KEYS: Final = ("server", "dialect", "timing")


class _Timing:
    """The table [timing] of a dialect.toml; every key may be missing."""

    input_latency: Annotated[
        int,
        Meta(ge=0, le=MOST_LATENCY),
        expecting(f"ticks, a whole number from 0 to {MOST_LATENCY} (10 s)"),
    ]
    packets_per_second: Annotated[float, Meta(gt=0, le=1e30), expecting("a number above 0")]


class Dialect(dict[str, str]):
    """A value for some of `POINTS`, by name; `complete` has one for each.

    Raises:
        ValueError: A name or a value is not one of `POINTS`.
    """

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
    def parse(cls, words: Iterable[str]) -> "Dialect":
        """Return the dialect of `NAME=VALUE` words, as of a command line.

        Raises:
            ValueError: A word has no `=`, names a point twice, or see `Dialect`.
        """
        values: dict[str, str] = {}
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise ValueError(f"dialect {word!r} is not of the form NAME=VALUE, as in pad_timer=remaining")
            if name in values:
                raise ValueError(f"dialect point {name} is given twice, as {values[name]} and as {value}")
            values[name] = value
        return cls(values)

    @classmethod
    def read(cls, path: Path) -> "Dialect":
        """Return the `[dialect]` table of a `dialect.toml`.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is not TOML, has no such table or another one than `[timing]`, or see `Dialect`.
        """
        table = _load(path).get("dialect")
        if not isinstance(table, dict):
            raise ValueError(
                f"{path} has no table [dialect]; `rlgym-bridge probe --out FILE` writes such a file"
            )
        try:
            return cls(table)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def complete(self) -> "Dialect":
        """Return this with the first value for every point that it leaves open."""
        return Dialect({name: point.values[0] for name, point in POINTS.items()} | self)

    @property
    def open(self) -> tuple[str, ...]:
        """Names of the points that have no value."""
        return tuple(name for name in POINTS if name not in self)


@dataclass(frozen=True)
class DialectFile:
    """The content of a `dialect.toml`.

    Attributes:
        path: The file.
        dialect: The points that are settled.
        input_latency: Ticks from the packet that an input answers to the first one it drives; None where the
            file does not say it.
        server: `OWN_SERVER` or `OTHER_SERVER`, where it was measured; None where the file does not say it.
    """

    path: Path
    dialect: Dialect
    input_latency: int | None = None
    server: str | None = None

    @classmethod
    def read(cls, path: Path) -> "DialectFile":
        """Return what a file says.

        Raises:
            OSError: The file cannot be read.
            ValueError: See `Dialect.read`, the latency is no whole number from 0 to `MOST_LATENCY`, or the
                server is neither of the two.
        """
        dialect, content = Dialect.read(path), _load(path)
        return cls(path, dialect, content.get("timing", {}).get("input_latency"), content.get("server"))

    def fits(self, own_server: bool) -> bool:
        """Tell whether the file is for a server: this project's match server, or any other."""
        return self.server is None or (self.server == OWN_SERVER) is own_server


def _load(path: Path) -> dict[str, Any]:
    """Read a file and check its tables and `[timing]`; `Dialect` checks the points."""
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
