"""Compare recordings with RocketSim: fit the time, then the lag, then measure, then judge.

Recording -> timeline -> lag -> errors, noise floor -> sizes, missing inputs -> verdicts
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlgym_bridge.compare.delay import ActionDelay, action_delay
from rlgym_bridge.compare.drift import WINDOWS, measure, measure_floor
from rlgym_bridge.compare.gaps import Gap, input_gaps, latency_gap, lost_packets, physics_gaps, timing_gaps
from rlgym_bridge.compare.input_lag import LagFit, fit_lag
from rlgym_bridge.compare.missing import Missing, Worth, find_missing
from rlgym_bridge.compare.motion_check import check_motion
from rlgym_bridge.compare.sizes import Size, fit_sizes
from rlgym_bridge.compare.state_age import OffsetFit
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.timeline import ClockFit, fit_timeline
from rlgym_bridge.compare.tolerances import SURE
from rlgym_bridge.compare.tracks import BALL, knows_spin
from rlgym_bridge.compare.verdict import Doubts, GapVerdict, Situation, judge
from rlgym_bridge.compare.window_errors import Errors
from rlgym_bridge.compare.worst import WorstWindow, worst_windows
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Inputs, Recording

_BODIES = ("ball", "car")  # rows of all situations of a body together


@dataclass
class Fit:
    """The fitted clock, tick offset and input lag of one recording.

    Attributes:
        source: Its name.
        clock, offset: Of its time.
        lag: How late its inputs act; where they are what the game applied, how much later than that.
        delay: How late actions act; None where it is not told.
        applied: Whether its inputs are what the game applied.
        unseen: Ticks between its rows of which nothing is known.
    """

    source: str
    clock: ClockFit
    offset: OffsetFit
    lag: LagFit
    delay: ActionDelay | None
    applied: bool
    unseen: int

    @property
    def late(self) -> ActionDelay | None:
        """The delay, where what was sent stands beside what was applied, and acts late."""
        return self.delay if self.applied and self.delay and self.delay.input_latency else None

    @property
    def input_lag_ticks(self) -> int:
        """Ticks by which what was sent acts late; what was applied, where nothing else is known."""
        return self.lag.ticks + (self.late.input_latency if self.late else 0)


@dataclass
class Comparison:
    """The differences between RocketSim and recordings.

    Attributes:
        fits: The time and the lag of each recording.
        situations: Errors and verdicts.
        gaps: What was found to differ.
        sizes: The constants of the physics that could be fitted, whether they differ or not.
        missing: Controls that are absent throughout.
        worth: What the other controls explain.
        notes: What people should know besides.
        worst: Where recording and simulator part most.
    """

    fits: list[Fit]
    situations: list[Situation]
    gaps: list[Gap]
    sizes: list[Size]
    missing: list[Missing]
    worth: list[Worth]
    notes: list[str] = field(default_factory=list)
    worst: list[WorstWindow] = field(default_factory=list)

    @property
    def input_lag_ticks(self) -> int:
        """Ticks by which inputs act late, median of the recordings that tell; 0 where none does."""
        told = [fit.input_lag_ticks for fit in self.fits if fit.lag.sure >= SURE or fit.late]
        told = told or [fit.input_lag_ticks for fit in self.fits if fit.lag.windows]
        return int(np.median(told)) if told else 0

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
    def lag_is_unsure(self) -> bool:
        """True if an input lag was fitted and is not certain."""
        return any(fit.lag.windows and fit.lag.sure < SURE for fit in self.fits)

    @property
    def inputs_are_off(self) -> bool:
        """True if inputs are missing, wrong or of uncertain latency: no constants are fitted to cars then."""
        lacking = any(one.shown or one.said for one in self.missing)
        return self.lag_is_unsure or lacking or any(one.wrong for one in self.worth)

    @property
    def agrees(self) -> bool:
        """True if nothing but timing differs: no physics gap, and no input missing."""
        kinds = {gap.kind for gap in self.gaps} | {row.verdict for row in self.situations}
        return not kinds & {GapVerdict.PHYSICS, GapVerdict.MISSING}

    @property
    def unexplained(self) -> list[Situation]:
        """Situations that differ though nothing was found that does: the shortest horizon of each."""
        if {gap.kind for gap in self.gaps} & {GapVerdict.PHYSICS, GapVerdict.MISSING}:
            return []
        bad = [row for row in self.situations if row.verdict in (GapVerdict.PHYSICS, GapVerdict.MISSING)]
        first: dict[str, Situation] = {}
        for row in bad:
            if row.name not in _BODIES:
                first.setdefault(row.name, row)
        return list(first.values())

    @property
    def tells_nothing(self) -> bool:
        """True if no situation has enough windows to judge."""
        return all(row.verdict is GapVerdict.FEW for row in self.situations)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types; see the docstrings of the parts for units."""
        return {
            "input_lag_ticks": self.input_lag_ticks,
            "clock_scale": round(self.clock_scale, 6),
            "tick_offset": self.tick_offset,
            "situations": [_plain(row) for row in self.situations],
            "gaps": [_plain(gap) for gap in self.gaps],
            "fits": [
                {
                    "source": fit.source, "clock": _plain(fit.clock), "tick_offset": _plain(fit.offset),
                    "input_lag": _plain(fit.lag), "action_delay": _plain(fit.delay),
                }
                for fit in self.fits
            ],
            "sizes": [_plain(size) for size in self.sizes],
            "missing": [_plain(one) | {"shown": one.shown} for one in self.missing],
            "controls": [_plain(one) for one in self.worth],
            "worst": [_plain(one) for one in self.worst],
            "notes": self.notes,
            "agrees": self.agrees,
        }  # fmt: skip


def compare_recordings(*recordings: Recording, windows: int = WINDOWS) -> Comparison:
    """Measure how simulation error grows from recorded states, and judge what differs.

    Every recording gets its own clock and lag; the errors of all are put together.

    Args:
        recordings: One or more.
        windows: Most windows of each body; fewer are quicker and say less. What is fitted takes a part of it.

    Returns:
        The fitted clock, tick offset and input latency of each recording; the errors of position (uu) by
        situation and horizon with their verdicts; the gaps, fitted constants and missing inputs.

    Raises:
        ValueError: None was given, nothing in them can be compared, or bodies do not move as their velocities
            say.
        FileNotFoundError: The collision meshes are not installed.
    """
    if not recordings:
        raise ValueError("got no recording, expected one or more to compare")
    for number, one in enumerate(recordings):
        if any(np.array_equal(one.state.buffer, other.state.buffer) for other in recordings[:number]):
            raise ValueError(
                f"{one.source} was given twice, expected each recording once: it would count double"
            )
    scenes, fits, notes = [], [], []
    for number, recording in enumerate(recordings):
        timeline = fit_timeline(recording)
        check_motion(recording, timeline)
        scene = TimedRecording(recording, timeline, number=number)
        lag = fit_lag(scene, windows // 2)
        scene.lag = lag.of_rows(len(recording.tick))
        scenes.append(scene)
        time, delay = scene.timeline, action_delay(recording, lag)
        applied = recording.inputs is Inputs.APPLIED
        fits.append(Fit(recording.source, time.clock, time.offset, lag, delay, applied, scene.unseen))
        notes += _notes(scene, lag)
    share = len(scenes)
    together = Errors.join([measure(scene, max(windows // share, 40)) for scene in scenes])
    if not (together.names != "").any():
        sources = ", ".join(recording.source for recording in recordings)
        raise ValueError(f"{sources}: nothing is shown for long enough to compare, expected a second or more")
    floor = Errors.join([measure_floor(scene, max(windows // 4 // share, 12)) for scene in scenes])
    sparse = any(scene.driven and scene.unseen for scene in scenes)
    sizes = fit_sizes(scenes, together, sparse)
    missing: list[Missing] = []
    worth: list[Worth] = []
    gaps = timing_gaps(scenes, [fit.lag for fit in fits])
    gaps += [latency_gap(fit.source, fit.late) for fit in fits if fit.late]
    gaps += [gap for recording in recordings for gap in lost_packets(recording)]
    for scene, fit in zip(scenes, fits, strict=True):
        absent, present = find_missing(scene, 2 * windows)
        missing += absent
        worth += present
        gaps += input_gaps(fit.source, absent, present)
    found = Comparison(fits, [], gaps, sizes, missing, worth, notes, worst_windows(together, scenes))
    if found.inputs_are_off:  # what inputs did would be taken for the physics
        found.sizes = [replace(size, gap=False) if size.body == "car" else size for size in sizes]
    gaps += physics_gaps(found.sizes)
    doubts = Doubts(
        lag=found.lag_is_unsure,
        lag_unknown=any(fit.lag.windows and fit.lag.curve and not fit.lag.sure for fit in fits),
        clock=any(fit.clock.wavers and not fit.clock.on_ticks for fit in fits),
        spin=any(map(_spinless, scenes)),
        inputs=sparse,
    )
    found.situations = judge(together, floor, found.sizes, missing, worth, doubts)
    return found


def _notes(scene: TimedRecording, lag: LagFit) -> list[str]:
    """Return sentences on what a recording does not tell."""
    recording = scene.recording
    notes = list(recording.notes)
    cars = [body for body in scene.bodies if body != BALL]
    if scene.timeline.clock.wavers:
        notes.append(
            f"the clock of {recording.source} wavers from row to row: what moves fast tells the time"
        )
    if _spinless(scene):
        notes.append(f"{recording.source} does not tell how the ball spins: bounces may differ")
    if cars and not scene.driven:
        notes.append(f"{recording.source} has no inputs: only its ball is compared")
    elif cars:
        if not lag.windows:
            notes.append(f"too few inputs of {recording.source} change to tell how late they act: taken as 0")
        elif lag.sure < SURE:
            notes.append(
                f"the input lag of {recording.source} is {lag.ticks} ticks in {100 * lag.sure:.0f} % of "
                f"resampled windows only: not sure"
            )
        if not recording.state.car_boost_amount[:, cars].any():
            notes.append(f"{recording.source} does not tell how much boost there is: taken as enough")
    if recording.inputs is not Inputs.NONE:
        for car in cars:
            names = _not_recorded(recording, car)
            if names and len(names) < recording.inputs_recorded.shape[1]:
                notes.append(
                    f"{recording.source} does not record {', '.join(names)} of car {car}: taken as 0"
                )
    return notes


def _spinless(scene: TimedRecording) -> bool:
    """Tell whether nothing says how the ball spins: neither its spin nor its orientation."""
    if BALL not in scene.bodies or knows_spin(scene.recording, BALL):
        return False
    turns = scene.recording.state.ball_rotation[scene.recording.ball_shown]
    return not np.ptp(turns, axis=0).any()


def _not_recorded(recording: Recording, car: int) -> list[str]:
    told = zip(CONTROL_NAMES, recording.inputs_recorded[car], strict=True)
    return [name for name, there in told if not there]


def _plain(part: Any) -> Any:
    """Return a dataclass, and what is in it, as JSON's types; what is not finite is null."""
    if isinstance(part, GapVerdict):
        return part.value
    if hasattr(part, "__dataclass_fields__"):
        return {name: _plain(getattr(part, name)) for name in part.__dataclass_fields__}
    if isinstance(part, dict):
        return {str(key): _plain(value) for key, value in part.items()}
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [_plain(one) for one in part]
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    if isinstance(part, float):
        return round(part, 6) if np.isfinite(part) else None
    return part
