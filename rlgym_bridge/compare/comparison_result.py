"""The result of a comparison: what was fitted, measured and found, and sentences about it."""

import enum
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.clock_fit import ClockFit, OffsetFit
from rlgym_bridge.compare.input_lag import SURE, ActionDelay, LagFit
from rlgym_bridge.physics import CONSTANTS, Spread, physics_as_toml
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.text_files import toml_line, toml_value

SECOND: Final = 120
"""Ticks."""

_LEAST: Final = 0.01  # uu: less is not printed with its digits
_WIDEST: Final = 0.1  # half of an interval beyond which a fit tells nothing worth training over
_SHOWN: Final = 4  # recordings that are shown whether they agree or not
_CLOCK_STEP: Final = 0.001  # %: the least that is printed of a clock that is right
_IN_TIME: Final = {
    "clock": "its clock", "input latency": "late inputs", "tick offset": "states older than their frames",
}  # fmt: skip
_NAMES: Final = {"rocketsim3": "RocketSim 3", "rocketsim2": "RocketSim 2.2.1"}
_IN_JSON: Final = (
    "explanation", "simulator", "untried", "input_latency_ticks", "clock_scale", "tick_offset", "situations",
    "gaps", "sizes", "unjudged", "worst", "notes", "refused", "agrees",
)  # fmt: skip


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
        sure = [fit for fit in self.fits if fit.lag.sure >= SURE or fit.late]
        fits = sure or [fit for fit in self.fits if fit.lag.fitted]
        return int(np.median([fit.input_latency_ticks for fit in fits])) if fits else None

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
        return {name: plain(getattr(self, name)) for name in _IN_JSON} | {
            "mechanisms": [plain(each) | {"certain": each.certain} for each in self.causes],
            "fits": [
                {
                    "source": fit.source, "clock": plain(fit.clock), "tick_offset": plain(fit.offset),
                    "input_lag": plain(fit.lag) | ({} if fit.lag.fitted else {"ticks": None}),
                    "action_delay": plain(fit.delay), "noise": fit.noise, "windows": fit.windows,
                    "seconds": round(fit.seconds, 1), "lacking": list(fit.lacking),
                }
                for fit in self.fits
            ],
        }  # fmt: skip


def plain(part: Any) -> Any:
    """Return a dataclass, and what is in it, as JSON's types; what is not finite is null."""
    if isinstance(part, GapVerdict):
        return part.value
    if hasattr(part, "__dataclass_fields__"):
        return {name: plain(getattr(part, name)) for name in part.__dataclass_fields__}
    if isinstance(part, dict):
        return {str(key): plain(value) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [plain(one) for one in part]
    if isinstance(part, np.bool_):
        return bool(part)
    if isinstance(part, float):
        return round(part, 6) if np.isfinite(part) else None
    return part


# --- the sentences that it begins with --------------------------------------------------------------


def begin_with(found: Comparison) -> list[str]:
    """Return the sentences that a comparison begins with: what differs, what was measured, whose it is."""
    return [*filter(None, (_tell_difference(found), _tell_measured(found), _tell_recorder(found)))]


def name_simulator(found: Comparison) -> str:
    """Return the name of the simulator that was compared."""
    return _NAMES[found.simulator]


def _tell_difference(found: Comparison) -> str:
    timing = [gap.name for gap in found.gaps if gap.kind is GapVerdict.TIMING]
    causes = [cause for cause in found.causes if not (cause.kind == "time" and cause.name in _IN_TIME)]
    sure = [
        ("the physics, which are those of " if cause.kind == "physics" else "") + cause.phrase
        for cause in causes if cause.certain
    ]  # fmt: skip
    either = [f"one of these, which it does not tell apart: {' or '.join([c.phrase, *c.alike])}"
              for c in causes if not c.certain]  # fmt: skip
    parts = list(dict.fromkeys([*sure, *either]))
    if found.untried:
        places = list(dict.fromkeys(name for one in found.untried for name in one.situations))
        parts.append(f"something that is not tried here ({', '.join(places)})")
    late = list(dict.fromkeys(_IN_TIME.get(one, one) for one in timing))
    also = f" The recorded time differs as well: {', '.join(late)}." if late else ""
    if parts:
        return f"Recording and {name_simulator(found)} differ by {'; '.join(parts)}.{also}"
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
    who = "The recording" if len(found.fits) == 1 else listed(own)
    who += " is" if len(own) == 1 else " are"
    return f"{who} of the match server, which plays in RocketSim: nothing here measures Rocket League."


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


# --- sentences about its parts -----------------------------------------------------------------------


def told_untried(one: Untried) -> str:
    """Return a difference that nothing explains, as a sentence."""
    share = f"{100 * one.share:.0f} %"
    nearest = f"; {one.nearest} comes nearest, and explains {share} of them" if one.nearest else ""
    return (
        f"{count_of(one.windows, 'window')} of {one.source} ({', '.join(one.situations)}) stay beyond their "
        f"bounds, up to {short(one.worst)} uu after {in_time(one.after_ticks)}, and no alteration that is "
        f"tried here explains them{nearest}"
    )


def told_fit(fit: Fit) -> str:
    """Return clock, age of states, input latency and noise of a recording, each with how sure it is."""
    parts = [_tell_clock(fit)]
    if any(fit.offset.ages[1:]):
        oldest = max(age for age, count in enumerate(fit.offset.ages) if count)
        parts.append(
            f"its states are up to {count_of(oldest, 'tick')} old, {fit.offset.ticks} in the median (which "
            f"explains {100 * fit.offset.share:.0f} % of steps)"
        )
    if fit.lag.curve:
        late = count_of(abs(fit.lag.ticks), "tick") + (" early" if fit.lag.ticks < 0 else " late")
        late = late if fit.lag.ticks else "when the recording says" if fit.applied else "without delay"
        doubt = "" if fit.lag.sure >= SURE else ", which is not sure"
        more = f", or up to {count_of(fit.unseen, 'tick')} later" if fit.unseen else ""
        parts.append(
            f"inputs act {late}{doubt}{more} (in {100 * fit.lag.sure:.0f} % of resampled sets of "
            f"{count_of(fit.lag.windows, 'window')})"
        )
    if fit.applied and fit.delay is not None:
        delay = fit.delay
        after = f"{count_of(delay.input_latency, 'tick')} late" if delay.input_latency else "without delay"
        parts.append(f"what bots sent was applied {after} ({delay.inputs:,} inputs)")
    if fit.noise:
        parts.append(f"open are {fit.noise}")
    return "; ".join(parts)


def _tell_clock(fit: Fit) -> str:
    percent, doubt = 100 * (fit.clock.scale - 1), 200 * fit.clock.error
    if fit.offset.ages:
        return "time is that of the replay's frames"
    if not math.isfinite(doubt):
        return "whether its clock is right is not known, as nothing moves enough"
    if abs(percent) <= max(doubt, _CLOCK_STEP):
        return f"its clock is right to {max(doubt, _CLOCK_STEP):.1g} %"
    return f"its clock runs {abs(percent):.3g} % {'slow' if percent > 0 else 'fast'} (± {doubt:.1g} %)"


def short_verdict(verdict: GapVerdict) -> str:
    """Return a verdict in two words at most, for tables."""
    return "untried" if verdict is GapVerdict.UNTRIED else verdict.value


def row_to_tell(rows: dict[int, Situation]) -> Situation:
    """Return the row of a situation with most windows beyond bounds, else that after a second."""
    most = max(row.beyond for row in rows.values())
    if most:
        return next(row for _, row in sorted(rows.items()) if row.beyond == most)
    return rows[max((at for at in rows if at <= SECOND), default=max(rows))]


def sources_to_show(found: Comparison) -> list[str]:
    """Return the recordings whose errors are shown one by one: of many, those that differ."""
    sources = [fit.source for fit in found.fits]
    if len(sources) <= _SHOWN:
        return sources
    differ = {gap.source for gap in found.gaps} | {one.source for one in found.untried}
    differ |= {row.source for row in found.situations if row.beyond}
    return [source for source in sources if source in differ]


def said_once(texts: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return sentences about recordings, `sources`; of many alike those of the first, with a count.

    Alike are those that differ in their recording and in numbers alone.
    """
    if len(sources) <= _SHOWN:
        return list(texts)
    name = re.compile("|".join(re.escape(one) for one in sorted(sources, key=len, reverse=True)))
    kinds: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for text in texts:
        found = name.search(text)
        kinds[re.sub(r"[\d.,]+", "", name.sub("", text))][found.group() if found else ""].append(text)
    said = []
    for own in kinds.values():
        first, *others = own.values()
        also = f" (and {count_of(len(others), 'other recording')} alike)" if others else ""
        said += [f"{text}{also}" for text in first]
    return said


# --- what training and matches are to change: `compare --fit` ---------------------------------------


def fitted_constants(found: Comparison) -> dict[str, Spread]:
    """Return RocketSim's constants as recordings show them, to 10 % or better, by the names of `CONSTANTS`.

    The value is RocketSim's own unless a gap is found that is told apart from all others. The range is what
    the recordings allow together; if they contradict each other, from the lowest to the highest.
    """
    every: dict[str, list[Size]] = {}
    for size in found.sizes:
        if size.mutator in CONSTANTS and size.high - size.low <= 2 * _WIDEST:
            every.setdefault(size.mutator, []).append(size)
    return {name: _together(sizes) for name, sizes in every.items()}


def _together(sizes: list[Size]) -> Spread:
    """Return what the intervals of one constant in several recordings allow."""
    low, high = max(size.low for size in sizes), min(size.high for size in sizes)
    if low > high:
        low, high = min(size.low for size in sizes), max(size.high for size in sizes)
    gaps = [size for size in sizes if size.gap]
    if not gaps:
        return Spread(1.0, min(low, 1.0), max(high, 1.0))
    best = min(gaps, key=lambda size: size.high - size.low)
    return Spread(min(max(best.value, low), high), low, high)


def fit_as_toml(found: Comparison) -> str:
    """Return the file: settings of `python -m training`, whose table [physics] matches read too."""
    delays = [fit.delay for fit in found.fits if fit.delay is not None]
    sources = ", ".join(toml_value(fit.source) for fit in found.fits)
    lines = [f"# what recordings show, made by rlgym-bridge compare --fit of {sources}", ""]
    if delays:
        low, high = min(one.low for one in delays), max(one.high for one in delays)
        noise = float(f"{max(one.noise for one in delays):.3g}")
        latency = max(delays, key=lambda one: one.inputs).input_latency
        lines += [
            toml_line("action_delay", [low, high], "ticks, lowest and highest of a segment of play"),
            toml_line("action_delay_noise", noise, "ticks, of single decisions within a segment"),
            toml_line("input_latency", latency, "ticks, of most inputs; rows are sent that much earlier"),
        ]
        if len({one.input_latency for one in delays}) > 1:
            known = [(fit.source, fit.delay) for fit in found.fits if fit.delay is not None]
            told = ", ".join(f"{toml_value(source)} {delay.input_latency}" for source, delay in known)
            lines.append(f"# inputs of these recordings act late by different ticks ({told}): fit them apart")
    else:
        lines += ["# how late actions act is not told: no input that was sent stands beside what it did"]
    lines += [
        "",
        "# multiples of RocketSim's own: matches are played with value, training draws from low to",
        "# high, which is what these recordings allow; widen it by hand for a bot that is to bear more",
    ]
    return "\n".join(lines) + "\n" + physics_as_toml(fitted_constants(found))
