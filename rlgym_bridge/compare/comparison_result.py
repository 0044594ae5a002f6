"""The result of a comparison: what was fitted, measured and found."""

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.action_delay import ActionDelay
from rlgym_bridge.compare.clock_fit import ClockFit, OffsetFit
from rlgym_bridge.compare.input_lag import SURE, LagFit
from rlgym_bridge.user_input.arguments import count_of

SECOND: Final = 120
"""Ticks."""

_LEAST: Final = 0.01  # uu: less is not printed with its digits
_IN_TIME: Final = {
    "clock": "its clock", "input latency": "late inputs", "tick offset": "states older than their frames",
}  # fmt: skip
_NAMES: Final = {"rocketsim3": "RocketSim 3", "rocketsim2": "RocketSim 2.2.1"}


class GapVerdict(enum.Enum):
    """The kinds of differences."""

    AGREES = "agrees"
    PHYSICS = "physics gap"
    TIMING = "timing gap"
    WRONG = "wrong input"
    OFFSET = "offset"
    UNTRIED = "something that is not tried here"


@dataclass(frozen=True)
class Gap:
    """Something in which a recording differs from RocketSim, or from what it says of itself."""

    kind: GapVerdict  # what it is put down to
    name: str  # what it is in
    source: str  # the recording
    size: float  # how large, in `unit`
    low: float  # low, high: interval of the size
    high: float
    unit: str  # of the size
    text: str  # a sentence about it


@dataclass(frozen=True)
class NamedCause:
    """An alteration that a recording bears out."""

    name: str  # of the alteration, such as "gain of steer"
    phrase: str  # the alteration with its parameter
    kind: str  # "inputs", "time", "constant", "offset" or "physics"
    source: str  # the recording
    cars: list[int]  # cars whose inputs or states it changes; empty for the world
    value: float  # the parameter; nan where it has none
    low: float  # low, high: its interval: with it all windows stay within their bounds
    high: float
    unit: str  # of the parameter
    share: float  # of the windows beyond their bounds, those that it explains
    windows: int  # how many these are
    alike: list[str] = field(default_factory=list)  # phrases of alterations that are not told apart from it
    mutator: str = ""  # constant of the settings that it changes; "" for none

    @property
    def certain(self) -> bool:
        """True if no other alteration does as well."""
        return not self.alike


@dataclass(frozen=True)
class Untried:
    """A difference that no alteration explains: something that is not tried here."""

    source: str  # the recording
    situations: list[str]  # situations of the windows that stay beyond their bounds
    windows: int  # how many they are
    tried: int  # of how many windows
    worst: float  # position error of the worst, uu
    after_ticks: int  # after how many ticks
    nearest: str  # phrase of the alteration that explains most of them; "" for none
    share: float  # what share that is


@dataclass(frozen=True)
class Situation:
    """Errors of one recording in one situation at one horizon."""

    source: str  # the recording
    name: str  # the situation
    horizon_ticks: int  # ticks after the window's start
    windows: int  # how many
    beyond: int  # how many are beyond their bounds
    p50: float  # p50, p90, worst: position error, uu
    p90: float
    worst: float
    tolerance: float  # median of the bounds of positions, uu: how small a gap would have shown
    velocity: float  # median error, uu/s
    angle: float  # median error, rad
    spin: float  # median error of the angular velocity, rad/s
    rocketsim2: float  # median position error of RocketSim 2.2.1, on some of the windows, uu; nan where none
    verdict: GapVerdict  # what the error is put down to


@dataclass(frozen=True)
class Size:
    """The value of a parameter in a recording."""

    name: str  # of the alteration
    source: str  # the recording
    value: float  # the fitted one where a gap was found, else the one that changes nothing
    low: float  # low, high: the interval in which all windows stay within their bounds
    high: float
    unit: str  # of the value
    windows: int  # windows that tell
    gap: bool  # whether it differs
    mutator: str  # its name in `physics.CONSTANTS`; "" for none


@dataclass(frozen=True)
class WorstWindow:
    """A window that is far off."""

    source: str  # the recording
    body: str  # "ball", or the car's agent name
    row: int  # of the recording, where the window begins
    tick: int  # of that row, as the recording has it
    seconds: float  # of that row
    situation: str  # of the window
    after_ticks: int  # ticks after which it is measured
    error: float  # position error, uu
    tolerances: float  # the largest part of its error, in multiples of its bound


@dataclass
class Fit:
    """The fitted time of one recording, and what it leaves open."""

    source: str  # its name
    clock: ClockFit  # clock, offset: of its time
    offset: OffsetFit
    lag: LagFit  # how late its inputs act; if they are what the game applied, how much later than that
    delay: ActionDelay | None  # how late actions act; None if inputs do not tell
    applied: bool  # whether its inputs are what the game applied
    unseen: int  # ticks between its rows of which nothing is known; 0 where inputs change at rows alone
    driven: bool = True  # whether it has inputs that drive cars
    noise: str = ""  # digits and noise of its states and inputs, as a sentence
    windows: int = 0  # windows that were judged
    seconds: float = 0.0  # their lengths together, s
    own: bool = False  # whether a match server of this project recorded it
    lacking: tuple[str, ...] = ()  # controls that it does not record

    @property
    def late(self) -> ActionDelay | None:
        """The delay, if what was sent stands beside what was applied, and acts late."""
        return self.delay if self.applied and self.delay and self.delay.input_latency else None

    @property
    def input_latency_ticks(self) -> int:
        """Ticks by which what was sent acts late; what was applied, if nothing else is known."""
        return self.lag.ticks + (self.late.input_latency if self.late else 0)


@dataclass(frozen=True)
class RefusedFile:
    """A recording that could not be compared."""

    source: str  # its name, or its file if it could not be read
    reason: str  # a sentence: what came, what was expected, and what to do

    def describe(self) -> str:
        """Return the reason, with the name before it if it does not begin with that."""
        return self.reason if self.reason.startswith(self.source) else f"{self.source}: {self.reason}"


@dataclass
class Comparison:
    """The differences between a simulator and recordings."""

    simulator: str  # name of the simulator
    fits: list[Fit] = field(default_factory=list)  # the time and the noise of each recording
    situations: list[Situation] = field(default_factory=list)  # errors and verdicts of each recording
    gaps: list[Gap] = field(default_factory=list)  # what was found to differ, timing included
    causes: list[NamedCause] = field(default_factory=list)  # alterations that recordings bear out
    untried: list[Untried] = field(default_factory=list)  # differences that none explains
    # parameters with their intervals, whether they differ or not
    sizes: list[Size] = field(default_factory=list)
    # sentences on what could not be judged, and which data would tell
    unjudged: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what people should know besides
    worst: list[WorstWindow] = field(default_factory=list)  # where recording and simulator part most
    # recordings that could not be compared beside those that were
    refused: list[RefusedFile] = field(default_factory=list)

    @property
    def input_latency_ticks(self) -> int | None:
        """Ticks by which inputs act late, median of the recordings that tell; None if none does."""
        told = [fit.input_latency_ticks for fit in self.fits if fit.lag.sure >= SURE or fit.late]
        told = told or [fit.input_latency_ticks for fit in self.fits if fit.lag.fitted]
        return int(np.median(told)) if told else None

    @property
    def clock_scale(self) -> float:
        """Seconds of the game in a recorded second, median of the recordings."""
        told = [fit.clock.scale for fit in self.fits if np.isfinite(fit.clock.error)]
        return float(np.median(told)) if told else 1.0

    @property
    def tick_offset(self) -> int:
        """Ticks before the frame's time at which a shown state was, median of the recordings."""
        return int(np.median([fit.offset.ticks for fit in self.fits])) if self.fits else 0

    @property
    def agrees(self) -> bool:
        """True if nothing but timing differs."""
        return not self.untried and all(gap.kind is GapVerdict.TIMING for gap in self.gaps)

    @property
    def explanation(self) -> str:
        """The sentences that it begins with, as one text; see `begin_with`."""
        return " ".join(begin_with(self))

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types; see the docstrings of the parts for units."""
        return {
            "explanation": self.explanation,
            "simulator": self.simulator,
            "mechanisms": [plain(each) | {"certain": each.certain} for each in self.causes],
            "untried": [plain(each) for each in self.untried],
            "input_latency_ticks": self.input_latency_ticks,
            "clock_scale": round(self.clock_scale, 6),
            "tick_offset": self.tick_offset,
            "situations": [plain(row) for row in self.situations],
            "gaps": [plain(gap) for gap in self.gaps],
            "fits": [
                {
                    "source": fit.source, "clock": plain(fit.clock), "tick_offset": plain(fit.offset),
                    "input_lag": plain(fit.lag) | ({} if fit.lag.fitted else {"ticks": None}),
                    "action_delay": plain(fit.delay), "noise": fit.noise, "windows": fit.windows,
                    "seconds": round(fit.seconds, 1), "lacking": list(fit.lacking),
                }
                for fit in self.fits
            ],
            "sizes": [plain(size) for size in self.sizes],
            "unjudged": self.unjudged,
            "worst": [plain(one) for one in self.worst],
            "notes": self.notes,
            "refused": [plain(one) for one in self.refused],
            "agrees": self.agrees,
        }  # fmt: skip


def plain(part: Any) -> Any:
    """Return a dataclass, and what is in it, as JSON's types; what is not finite is null."""
    if isinstance(part, GapVerdict):
        return part.value
    if hasattr(part, "__dataclass_fields__"):
        return {name: plain(getattr(part, name)) for name in part.__dataclass_fields__}
    if isinstance(part, dict):
        return {str(key): plain(value) for key, value in part.items()}
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [plain(one) for one in part]
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    if isinstance(part, float):
        return round(part, 6) if np.isfinite(part) else None
    return part


# --- the sentences that it begins with --------------------------------------------------------------


def begin_with(found: Comparison) -> list[str]:
    """Return the sentences that a comparison begins with: what differs, what was measured, whose it is."""
    tellers = (_tell_difference, _tell_measured, _tell_recorder)
    return [sentence for sentence in (tell(found) for tell in tellers) if sentence]


def name_simulator(found: Comparison) -> str:
    """Return the name of the simulator that was compared."""
    return _NAMES[found.simulator]


def _tell_difference(found: Comparison) -> str:
    name = name_simulator(found)
    timing = [gap.name for gap in found.gaps if gap.kind is GapVerdict.TIMING]
    causes = [cause for cause in found.causes if not (cause.kind == "time" and cause.name in _IN_TIME)]
    sure = [
        f"the physics, which are those of {cause.phrase}" if cause.kind == "physics" else cause.phrase
        for cause in causes
        if cause.certain
    ]
    either = [f"one of these, which it does not tell apart: {' or '.join([c.phrase, *c.alike])}"
              for c in causes if not c.certain]  # fmt: skip
    parts = list(dict.fromkeys([*sure, *either]))
    if found.untried:
        places = list(dict.fromkeys(name for one in found.untried for name in one.situations))
        parts.append(f"something that is not tried here ({', '.join(places)})")
    late = list(dict.fromkeys(_IN_TIME.get(one, one) for one in timing))
    also = f" The recorded time differs as well: {', '.join(late)}." if late else ""
    if parts:
        return f"Recording and {name} differ by {'; '.join(parts)}.{also}"
    if late:
        return f"No gap of physics was found; the recorded time differs: {', '.join(late)}."
    return "No gap was found."


def _tell_measured(found: Comparison) -> str:
    windows = sum(fit.windows for fit in found.fits)
    seconds = sum(fit.seconds for fit in found.fits)
    small = smallest_gap(found)
    shown = f" A gap of {small} would have shown." if small and found.agrees else ""
    files = count_of(len(found.fits), "recording")
    return f"Measured: {count_of(windows, 'window')} of {seconds:,.0f} s together, in {files}.{shown}"


def smallest_gap(found: Comparison) -> str:
    """Return how small a gap of each body would have shown, in words; "" where nothing was judged."""
    told = []
    for body, who in (("ball", "the ball"), ("car", "a car")):
        rows = [row for row in found.situations if row.name.startswith(body) and row.horizon_ticks <= SECOND]
        if rows:
            last = max(row.horizon_ticks for row in rows)
            bound = min(row.tolerance for row in rows if row.horizon_ticks == last)
            told.append(f"{short(bound)} uu of {who} after {in_time(last)}")
    return listed(told)


def _tell_recorder(found: Comparison) -> str:
    own = [fit.source for fit in found.fits if fit.own]
    if not own:
        return ""
    which = (
        "The recording is" if len(found.fits) == 1 else f"{listed(own)} {'is' if len(own) == 1 else 'are'}"
    )
    return f"{which} of the match server, which plays in RocketSim: nothing here measures Rocket League."


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: `pitch, yaw and roll`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def short(error: float) -> str:
    """Return an error in uu with two decimals, fewer if it is large; less than 0.01 as such."""
    if math.isnan(error):
        return "-"
    return "<0.01" if error < _LEAST else f"{error:.2f}" if error < 10 else f"{error:.0f}"


def in_time(ticks: int) -> str:
    """Return a horizon in ticks as a time: `a second`, `60 ticks (0.5 s)`."""
    return "a second" if ticks == SECOND else f"{count_of(ticks, 'tick')} ({ticks / SECOND:.2g} s)"
