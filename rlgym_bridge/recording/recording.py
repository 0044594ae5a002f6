"""A recording of any source as arrays: a match, a table of numbers, or a replay."""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from rlgym_bridge.game import PLAYING_PHASES
from rlgym_bridge.state import MatchState


class TimeBase(enum.Enum):
    """The source of a recording's times, which says how exact they are."""

    TICKS = "ticks"  # `tick` is the game's own count: exact
    SECONDS = "seconds"
    """Times in the recorder's seconds, which may run fast or slow: `tick` is a rounded guess."""
    FRAMES = "frames"
    """Exact states of the server, shown some ticks late: a state's tick is up to 4 before `tick`."""


class Inputs(enum.Enum):
    """The meaning of the controls in a recording's states."""

    APPLIED = "applied"  # row k holds what drove the tick that ended in row k
    SENT = "sent"  # row k holds what was commanded when row k was seen; it acts later, nobody said how much
    NONE = "none"  # there are none


@dataclass
class Recording:
    """Ticks of a match, or of a part of one.

    A row is a moment; rows with the same number in `segment` follow each other without a break: no kickoff,
    no car put elsewhere, no hole that cannot be bridged. Within a segment `tick` and `seconds` rise. Rows may
    lie further apart than a tick, and a row may hold controls alone (`ball_shown` and `car_shown` False).
    """

    source: str  # name of the file, for people
    # `MatchState` with a row for each moment, `(rows, size)`. What was not recorded is 0, and `hitbox` an
    # Octane's; `car_known` and `ball_known` say what packets told
    state: MatchState
    tick: np.ndarray  # `(rows,)` int64, in game ticks, 120 a second; see `clock`
    seconds: np.ndarray  # `(rows,)` float64, on the source's own clock
    segment: np.ndarray  # `(rows,)` int32, rising
    ball_shown: np.ndarray  # `(rows,)` bool, whether the row has a ball of its own moment
    car_shown: np.ndarray  # `(rows, cars)` bool, the same for each car
    clock: TimeBase = TimeBase.TICKS  # what `tick` and `seconds` are worth
    inputs: Inputs = Inputs.APPLIED  # what `state.car_controls` is
    # `(cars, 8)` bool, which controls were recorded, in the order of `game.CONTROL_NAMES`; the others are 0
    # in the states, whatever they were in the game
    inputs_recorded: np.ndarray = field(default_factory=lambda: np.empty((0, 8), bool))
    notes: list[str] = field(default_factory=list)  # what reading it brought up: sentences for people
    # `(rows, cars)` bool, whether a car is in the match, shown or not: in replays players come and go
    car_present: np.ndarray = field(default_factory=lambda: np.empty((0, 0), bool))
    mode: str = "Soccar"  # the game mode, as `flat.GameMode` names it
    # what differs from the mode's rules and RocketSim cannot be told, for people
    mutators: list[str] = field(default_factory=list)
    # name of the simulator that a match server of this project played in; empty for others
    simulator: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError where an array has the wrong shape, or times or segments fall."""
        rows, cars = self.state.matches, self.state.layout.cars
        if not self.inputs_recorded.size:
            self.inputs_recorded = np.full((cars, 8), self.inputs is not Inputs.NONE)
        if not self.car_present.size:
            self.car_present = np.ones((rows, cars), bool)
        for name, shape in (
            ("tick", (rows,)), ("seconds", (rows,)), ("segment", (rows,)), ("ball_shown", (rows,)),
            ("car_shown", (rows, cars)), ("inputs_recorded", (cars, 8)),
            ("car_present", (rows, cars)),
        ):  # fmt: skip
            found = getattr(self, name).shape
            if found != shape:
                raise ValueError(f"{name} of {self.source} has shape {found}, expected {shape}")
        steps = np.diff(self.segment)
        if (steps < 0).any():
            raise ValueError(f"segment of {self.source} falls, expected it to rise")
        together = steps == 0
        if (np.diff(self.tick)[together] <= 0).any() or (np.diff(self.seconds)[together] <= 0).any():
            raise ValueError(f"times of {self.source} do not rise within a segment, expected that they do")

    def segments(self) -> Iterator[slice]:
        """Yield the rows of each segment."""
        if not len(self.segment):
            return
        bounds = [0, *(np.flatnonzero(np.diff(self.segment)) + 1), len(self.segment)]
        for start, stop in pairwise(bounds):
            yield slice(int(start), int(stop))

    def ages(self, shown: np.ndarray) -> np.ndarray:
        """Return how many ticks ago a body was shown last in its segment, `(rows,)`; vast where never."""
        if not len(shown):
            return np.zeros(0, np.int64)
        last = latest_rows(shown)
        same = (last >= 0) & (self.segment[last] == self.segment)
        return np.where(same, self.tick - self.tick[last], 2**31)


_HOLE_SECONDS: Final = 0.1
_HOLE_STEPS: Final = 4.0  # times the usual step: a slow recorder has no holes
_JUMP_SHARE: Final = 1.1  # of the way that a body's speed explains
_JUMP_LEAST: Final = 50.0  # uu: a car that is hit, or set down by the game, moves less


class BodyMotion(NamedTuple):
    """A body over all rows: `(rows, 3)` uu, `(rows, 3)` uu/s, and `(rows,)` whether the row has it."""

    position: np.ndarray
    velocity: np.ndarray
    shown: np.ndarray


def motions_of(state: MatchState, ball_shown: np.ndarray, car_shown: np.ndarray) -> list[BodyMotion]:
    """Return the motions of ball and cars, `(rows,)` and `(rows, cars)` bool saying where they are shown."""
    cars = (
        BodyMotion(state.car_position[:, car], state.car_linear_velocity[:, car], car_shown[:, car])
        for car in range(state.layout.cars)
    )
    return [BodyMotion(state.ball_position, state.ball_linear_velocity, ball_shown), *cars]


def latest_rows(shown: np.ndarray) -> np.ndarray:
    """Return for each row the latest one up to it that is `shown`, `(rows,)` bool; -1 where none is."""
    return np.maximum.accumulate(np.where(shown, np.arange(len(shown)), -1))


def set_bodies(state: MatchState, who: str, where: Any, vectors: Mapping[str, np.ndarray]) -> None:
    """Write position, rotation and velocities of the "ball", or of a "car", into places of a state."""
    for name, given in vectors.items():
        getattr(state, f"{who}_{'linear_velocity' if name == 'velocity' else name}")[where] = given


def in_play(state: MatchState) -> np.ndarray:
    """Tell in which rows the game is in play, `(rows,)` bool."""
    return np.isin(state.phase, list(PLAYING_PHASES))


def holes(seconds: np.ndarray) -> np.ndarray:
    """Return which rows follow on a hole, `(rows,)` bool."""
    steps = np.diff(seconds, prepend=seconds[:1])
    rising = steps[steps > 0]
    usual = float(np.median(rising)) if rising.size else 0.0
    return steps > max(_HOLE_SECONDS, _HOLE_STEPS * usual)


def jumps(seconds: np.ndarray, tracks: Sequence[BodyMotion], slack: float = 0.0) -> np.ndarray:
    """Return in which rows a body is where its speed could not have brought it, `(rows,)` bool.

    Each body is compared with the last row before that has it. The time between two rows, of `seconds`
    `(rows,)`, may be wrong by `slack`.
    """
    found = np.zeros(len(seconds), bool)
    for position, velocity, shown in tracks:
        rows = np.flatnonzero(shown)
        speed = np.linalg.norm(velocity[rows], axis=-1)
        way = np.linalg.norm(np.diff(position[rows], axis=0), axis=-1)
        time = np.abs(np.diff(seconds[rows])) + slack
        reach = np.maximum(speed[1:], speed[:-1]) * time * _JUMP_SHARE + _JUMP_LEAST
        found[rows[1:][way > reach]] = True
    return found
