"""Describe a comparison in sentences: what differs, what a recording leaves open, how it was fitted."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rlgym_bridge.compare.action_delay import ActionDelay
from rlgym_bridge.compare.clock_fit import OLDEST
from rlgym_bridge.compare.comparison_result import (
    SECOND,
    Comparison,
    Fit,
    Gap,
    GapVerdict,
    NamedCause,
    Situation,
    Untried,
    in_time,
    listed,
    short,
)
from rlgym_bridge.compare.detection import Judged
from rlgym_bridge.compare.input_lag import SURE
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL, POSITION, TRIAL, body_motion
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.user_input.arguments import count_of

_SHOWN: Final = 4  # recordings that are shown whether they agree or not
_CLOCK_STEP: Final = 0.001  # %: the least that is printed of a clock that is right
_CLOCK_SCALE: Final = 0.0002  # a clock's error that is worth a sentence: 2 uu in 10,000
_CLOCKS_RUN: Final = 0.02  # beyond which a clock explains poorly; real ones were within 0.0022 [measured]
_WAVERS: Final = 0.01  # share of rows nearer than usual from which on a frame rate wavers
_LOST_LEAST: Final = 3  # rows; one or two may be a recorder's beginning
_BOOST: Final = CONTROL_NAMES.index("boost")
_WIDE: Final = 10.0  # uu: a bound after half a second by which a situation shows next to nothing
_HALF_SECOND: Final = 3  # index of 60 ticks in `HORIZONS`


def told_untried(one: Untried) -> str:
    """Return a difference that nothing explains, as a sentence."""
    nearest = (
        f"; {one.nearest} comes nearest, and explains {100 * one.share:.0f} % of them" if one.nearest else ""
    )
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
    clock, doubt = fit.clock, 200 * fit.clock.error
    if fit.offset.ages:
        return "time is that of the replay's frames"
    if not math.isfinite(doubt):
        return "whether its clock is right is not known, as nothing moves enough"
    percent = 100 * (clock.scale - 1)
    if abs(percent) <= max(doubt, _CLOCK_STEP):
        return f"its clock is right to {max(doubt, _CLOCK_STEP):.1g} %"
    return f"its clock runs {abs(percent):.3g} % {'slow' if percent > 0 else 'fast'} (± {doubt:.1g} %)"


def short_verdict(verdict: GapVerdict) -> str:
    """Return a verdict in two words at most, for tables."""
    return "untried" if verdict is GapVerdict.UNTRIED else verdict.value


def row_to_tell(rows: dict[int, Situation]) -> Situation:
    """Return the row with most windows beyond bounds, else that of a second or of the longest before it.

    Args:
        rows: The rows of one situation, by their horizons in ticks.
    """
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
    """Return sentences about recordings; of many alike those of the first recording, with a count.

    Args:
        texts: The sentences. Alike are those that differ in their recording and in numbers alone.
        sources: Names of all recordings.
    """
    if len(sources) <= _SHOWN:
        return list(texts)
    name = re.compile("|".join(re.escape(one) for one in sorted(sources, key=len, reverse=True)))
    kinds: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        found = name.search(text)
        own = kinds.setdefault(re.sub(r"[\d.,]+", "", name.sub("", text)), {})
        own.setdefault(found.group() if found else "", []).append(text)
    said = []
    for own in kinds.values():
        first, *others = own.values()
        also = f" (and {count_of(len(others), 'other recording')} alike)" if others else ""
        said += [f"{text}{also}" for text in first]
    return said


# --- what differs ---------------------------------------------------------------------------------


def timing_gaps(fit: Fit, scene: TimedRecording) -> list[Gap]:
    """Return what is wrong with the time of a recording."""
    gaps = [*_clock_gap(fit), *_age_gap(fit), *_lag_gap(fit, scene), *_packet_gap(scene.recording)]
    lost, rows = lost_rows(scene)
    if lost >= _LOST_LEAST:
        gaps.append(Gap(
            GapVerdict.TIMING, "lost rows", fit.source, lost, lost, lost, "rows",
            f"{fit.source} lacks {lost} of {rows + lost} rows between others: packets were lost, or not "
            "written down",
        ))  # fmt: skip
    return gaps


def _clock_gap(fit: Fit) -> list[Gap]:
    clock = fit.clock
    if abs(clock.scale - 1) <= max(_CLOCK_SCALE, 4 * clock.error):
        return []
    pace = f"{100 * abs(clock.scale - 1):.2f} % {'slow' if clock.scale > 1 else 'fast'}"
    doubt = "; or its velocities are in another unit" if abs(clock.scale - 1) > _CLOCKS_RUN else ""
    return [Gap(
        GapVerdict.TIMING, "clock", fit.source, clock.scale, clock.scale - 2 * clock.error,
        clock.scale + 2 * clock.error, "seconds of the game in a second of the recording",
        f"the clock of {fit.source} runs {pace}{doubt}; the fitted one is used, so this is no physics gap",
    )]  # fmt: skip


def _age_gap(fit: Fit) -> list[Gap]:
    if not any(fit.offset.ages[1:]):
        return []
    return [Gap(
        GapVerdict.TIMING, "tick offset", fit.source, fit.offset.ticks, 0, OLDEST, "ticks",
        f"frames of {fit.source} show states of up to {OLDEST} ticks before, {fit.offset.ticks} in the "
        "median; the fitted ages are used, so this is no physics gap",
    )]  # fmt: skip


def _lag_gap(fit: Fit, scene: TimedRecording) -> list[Gap]:
    gaps = [_latency_gap(fit.source, fit.late)] if fit.late else []
    lag = fit.lag
    if not any(piece.ticks for piece in lag.pieces) or lag.sure < SURE:
        return gaps
    ticks = [piece.ticks for piece in lag.pieces]
    applied = scene.recording.inputs is Inputs.APPLIED
    said = ", although they are called applied" if applied else ""
    more = f", or up to {fit.unseen} more, as rows leave ticks out" if fit.unseen else ""
    changes = "".join(f", {piece.ticks} from {piece.seconds:.1f} s on" for piece in lag.pieces[1:])
    late = f"{count_of(abs(lag.ticks), 'tick')} {'early' if lag.ticks < 0 else 'late'}"
    if lag.ticks < 0:
        said += (
            '; no input acts before it is there: is this what the game applied (inputs = "applied" in the '
            f"map), or are rows of inputs {count_of(-lag.ticks, 'tick')} late in the table?"
        )
    gaps.append(Gap(
        GapVerdict.TIMING, "input latency", fit.source, lag.ticks, min(ticks),
        max(ticks) + fit.unseen, "ticks",
        f"inputs of {fit.source} act {late}{changes}{more}{said}",
    ))  # fmt: skip
    return gaps


def _latency_gap(source: str, delay: ActionDelay) -> Gap:
    """Return that bots' inputs act late, told by what was sent and what was applied."""
    late = delay.input_latency
    spread = count_of(delay.low, "tick") if delay.low == delay.high else f"{delay.low} to {delay.high} ticks"
    return Gap(
        GapVerdict.TIMING, "input latency", source, late, late, late, "ticks",
        f"what bots sent in {source} was applied {count_of(late, 'tick')} late ({delay.inputs:,} inputs): an "
        f"action acts {spread} after the state it was decided on at the soonest; train with that delay "
        "(--fit). What was applied drives the simulation, so this is no physics gap",
    )  # fmt: skip


def _packet_gap(recording: Recording) -> list[Gap]:
    """Return that packets did not reach bots."""
    if not isinstance(recording, MatchRecording):
        return []
    missed = [(track, recording.missed(track)) for track in recording.agents.values()]
    most = max((count for _, count in missed), default=0)
    if most < _LOST_LEAST:
        return []
    told = ", ".join(
        f"{track.agent_id} lacks {count:,} of {count + len(track.frame):,} "
        f"({100 * count / (count + len(track.frame)):.1f} %)"
        for track, count in missed
        if count
    )
    return [Gap(
        GapVerdict.TIMING, "lost packets", recording.source, most, min(count for _, count in missed), most,
        "packets",
        f"packets of {recording.source} were lost on their way to bots, {told}: a decision waits for the "
        "next one, and the game holds the last input until then. What was applied drives the simulation, so "
        "this is no physics gap; training loses none, rlgym-bridge match --drop does",
    )]  # fmt: skip


def lost_rows(scene: TimedRecording) -> tuple[int, int]:
    """Return how many rows are missing between others, and how many there are.

    Frames that a renderer leaves out are not lost: rows have to be a whole number of their usual step apart,
    and most of them one.
    """
    recording, times = scene.recording, scene.timeline.inputs
    rows = len(recording.tick)
    together = np.diff(recording.segment) == 0
    steps = np.diff(times)[together]
    if recording.clock is TimeBase.FRAMES or not scene.timeline.clock.on_ticks or not len(steps):
        return 0, rows
    usual = float(np.median(steps))
    if (steps < usual).mean() > _WAVERS:
        return 0, rows
    # While nothing moves, rows that repeat the one before may have been left out.
    places = np.stack([body_motion(recording, body, np.arange(rows))[:, POSITION] for body in scene.bodies])
    moved = (np.abs(np.diff(places, axis=1)) > 0).any((0, 2))[together]
    return int((np.round(steps / usual) - 1).clip(0)[moved].sum()), rows


def gaps_of(causes: Sequence[NamedCause], verdicts: Mapping[str, GapVerdict]) -> list[Gap]:
    """Return the causes as gaps."""
    gaps = []
    for one in causes:
        whose = f" of car {one.cars[0]}" if one.kind == "inputs" and len(one.cars) == 1 else ""
        span = (
            "" if not np.isfinite(one.low) or one.low == one.high else f" ({one.low:.5g} to {one.high:.5g})"
        )
        others = f"; the data do not tell it apart from {listed(one.alike)}" if one.alike else ""
        gaps.append(Gap(
            verdicts[one.kind], one.name, one.source, one.value, one.low, one.high, one.unit,
            f"{one.phrase}{whose} in {one.source}{span}: with it {100 * one.share:.0f} % of the windows "
            f"beyond their bounds are within them ({count_of(one.windows, 'window')}){others}",
        ))  # fmt: skip
    return gaps


# --- what is left open ----------------------------------------------------------------------------


def note_recording(scene: TimedRecording) -> list[str]:
    """Return sentences on what a recording does not hold."""
    recording = scene.recording
    notes = [f"{recording.source}: {note}" for note in recording.notes]
    cars = [body for body in scene.bodies if body != BALL]
    if scene.timeline.clock.wavers:
        notes.append(f"the clock of {recording.source} wavers from row to row: fast bodies tell the time")
    if scene.spinless:
        notes.append(f"{recording.source} does not hold how the ball spins: bounces may differ")
    if scene.driven:
        burning = recording.state.car_controls[:, cars, _BOOST].any()
        if burning and not recording.state.car_boost_amount[:, cars].any():
            notes.append(f"{recording.source} does not hold how much boost there is: taken as enough")
    notes += [_mixed_up(scene, car) for car in cars]
    return [note for note in notes if note]


def unjudged(scene: TimedRecording, fit: Fit, judged: Judged) -> list[str]:
    """Return sentences on what could not be judged in a recording, and which data would tell."""
    source, found, recording = fit.source, [], scene.recording
    cars = [body for body in scene.bodies if body != BALL]
    if cars and not scene.driven:
        found.append(f"cars of {source}: it has no inputs; a recording of inputs and states would tell")
    elif cars and recording.clock is TimeBase.FRAMES:
        found.append(
            f"cars of {source}: a replay's inputs come with its frames, some ticks off, and lack pitch, "
            "yaw and roll; a recording of the inputs of every tick would tell"
        )
    elif fit.lacking:
        share = np.mean([scene.unknown_inputs(car).mean() for car in cars])
        found.append(
            f"cars of {source} in {100 * share:.0f} % of the rows: {listed(list(fit.lacking))} could act "
            "there and are not recorded; a recording of all eight controls would tell"
        )
    if fit.driven and not fit.lag.curve and fit.delay is None:
        found.append(
            f"how late inputs act in {source}: {count_of(fit.lag.windows, 'window')} could tell, 6 are "
            "needed; none is assumed. More changes of inputs would tell"
        )
    wide, after_half = [], judged.horizons == _HALF_SECOND
    for name in dict.fromkeys(judged.names.ravel().tolist()):
        here = (judged.names == name) & after_half
        bound = float(np.median(judged.bounds[here][:, 0])) if here.any() else 0.0
        if name and bound > _WIDE:
            wide.append(f"{name} ({bound:.0f} uu)")
    if wide:
        found.append(
            f"small gaps in {source} after half a second: its digits, noise and inputs leave open "
            f"{listed(wide)}; states and inputs of every tick would show more"
        )
    return found


def _mixed_up(scene: TimedRecording, car: int) -> str:
    """Return which columns of a table's controls a map could mix up unseen: never used, or always equal."""
    recording = scene.recording
    if isinstance(recording, MatchRecording) or recording.clock is TimeBase.FRAMES or not scene.driven:
        return ""
    if all(len(track.times) <= TRIAL for track in scene.tracks((car,))):
        return ""  # what is held in trials is named by the map
    groups = _groups(recording, car)
    if not groups:
        return ""
    return (
        f"if the map of {recording.source} mixed up {' or '.join(groups)} of car {car}, nothing would show it"
    )


def _groups(recording: Recording, car: int) -> list[str]:
    columns = np.flatnonzero(recording.inputs_recorded[car]).tolist()
    controls = recording.state.car_controls[:, car]
    equal: dict[bytes, list[str]] = {}
    for column in columns:
        equal.setdefault(controls[:, column].tobytes(), []).append(CONTROL_NAMES[column])
    zero = np.zeros(len(controls), controls.dtype).tobytes()
    return [
        f"{listed(names)} ({'0' if values == zero else 'equal'} in every row)"
        for values, names in equal.items()
        if len(names) > 1
    ]
