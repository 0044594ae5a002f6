"""Describe the gaps of a comparison, with sizes and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import add, sub

import numpy as np

from rlgym_bridge.compare.findings.drift import measure_alone
from rlgym_bridge.compare.findings.fitted_constants import Size
from rlgym_bridge.compare.findings.missing_inputs import Missing, Worth
from rlgym_bridge.compare.findings.phrases import listed, short
from rlgym_bridge.compare.findings.sentences import told_changes
from rlgym_bridge.compare.findings.tolerances import CLOCK_SCALE, LEAST_WINDOWS
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.action_delay import ActionDelay
from rlgym_bridge.compare.fit.clock_fit import raw_timeline
from rlgym_bridge.compare.fit.input_lag import SURE, LagFit
from rlgym_bridge.compare.fit.state_age import OLDEST
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import BALL, POSITION, body_motion
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import HORIZONS
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.user_input.arguments import count_of

_RAW_WINDOWS = 60  # of each body, to show what a wrong time would cost
_CLOCKS_RUN = 0.02  # beyond which a clock is a poor explanation; real ones were within 0.0022
_SECOND = HORIZONS.index(120)
_WAVERS = 0.01  # share of rows nearer than usual from which on a frame rate wavers
_NOTHING = "no body comes nearer by it"  # what a time that was fitted is worth
_LOST_LEAST = 3  # rows; one or two may be a recorder's beginning


@dataclass(frozen=True)
class Gap:
    """Something in which the recording differs from RocketSim, or from what it says of itself.

    Attributes:
        kind: What it is put down to.
        name: What it is in.
        size: How large, in `unit`.
        low, high: Interval of the size.
        unit: Of the size.
        text: A sentence about it.
    """

    kind: GapVerdict
    name: str
    size: float
    low: float
    high: float
    unit: str
    text: str


def timing_gaps(scenes: Sequence[TimedRecording], lags: Sequence[LagFit]) -> list[Gap]:
    """Return what is wrong with the time of recordings, with what believing it would cost.

    Args:
        scenes: The recordings, with their fitted time and lag.
        lags: The fits of their inputs' lag.
    """
    gaps = []
    off = [scene for scene in scenes if _clock_is_wrong(scene)]
    for slow in (True, False):
        wrong = [scene for scene in off if (scene.timeline.clock.scale > 1) is slow]
        if not wrong:
            continue
        scales = [scene.timeline.clock.scale for scene in wrong]
        errors = [2 * scene.timeline.clock.error for scene in wrong]
        scale = float(np.median(scales))
        pace = f"{100 * abs(scale - 1):.2f} % {'slow' if slow else 'fast'}"
        cost = _cost(wrong, [replace(scene, timeline=raw_timeline(scene.recording)) for scene in wrong])
        if cost == _NOTHING:  # then it is noise, or a step that the table's map rounds
            continue
        doubt = "; or its velocities are in another unit" if abs(scale - 1) > _CLOCKS_RUN else ""
        gaps.append(Gap(
            GapVerdict.TIMING, "clock", scale,
            min(map(sub, scales, errors)), max(map(add, scales, errors)),
            "seconds of the game in a second of the recording",
            f"the clock of {_named(wrong)} runs {pace}{doubt}: {cost}; this is not a physics gap",
        ))  # fmt: skip
    old = [scene for scene in scenes if any(scene.timeline.offset.ages[1:])]
    if old:
        cost = _cost(old, [replace(scene, timeline=raw_timeline(scene.recording)) for scene in old])
        middle = float(np.median([scene.timeline.offset.ticks for scene in old]))
        gaps.append(Gap(
            GapVerdict.TIMING, "tick offset", middle, 0, OLDEST, "ticks",
            f"frames of {_named(old)} show states of up to {OLDEST} ticks before, {middle:.0f} in the "
            f"median: {cost}; this is not a physics gap",
        ))  # fmt: skip
    sure = [any(one.ticks for one in lag.pieces) and lag.sure >= SURE for lag in lags]
    for usual in sorted({lag.ticks for lag in compress(lags, sure)}):
        late, of_late = zip(
            *((scene, lag) for scene, lag, one in zip(scenes, lags, sure, strict=True)
              if one and lag.ticks == usual), strict=True,
        )  # fmt: skip
        cost = _cost(late, [replace(scene, lag=0.0) for scene in late], bodies=("car",))
        ticks = [piece.ticks for lag in of_late for piece in lag.pieces]
        applied = any(scene.recording.inputs is Inputs.APPLIED for scene in late)
        said = ", although they are called applied" if applied else ""
        changes = told_changes(of_late[0]) if len(late) == 1 else ""
        unseen = max(scene.unseen for scene in late)
        more = f", or up to {unseen} more, as rows leave ticks out" if unseen else ""
        gaps.append(Gap(
            GapVerdict.TIMING, "input latency", usual, min(ticks), max(ticks) + unseen, "ticks",
            f"inputs of {_named(late)} act {_late(usual, changes)}{more}{said}{changes}: {cost}"
            f"{suggest_convention(usual)}",
        ))  # fmt: skip
    for scene in scenes:
        lost, rows = lost_rows(scene)
        if lost >= _LOST_LEAST:
            gaps.append(Gap(
                GapVerdict.TIMING, "lost rows", lost, lost, lost, "rows",
                f"{scene.recording.source} lacks {lost} of {rows + lost} rows between others: packets were "
                "lost, or not written down",
            ))  # fmt: skip
    return gaps


def latency_gap(source: str, delay: ActionDelay) -> Gap:
    """Return that bots' inputs act late, told by what was sent and what was applied."""
    late = delay.input_latency
    return Gap(
        GapVerdict.TIMING, "input latency", late, late, late, "ticks",
        f"what bots sent in {source} was applied {count_of(late, 'tick')} late ({delay.inputs:,} inputs): an "
        f"action acts {_range(delay.low, delay.high)} after the state it was decided on at the soonest; "
        f"train with that delay (--fit). What was applied drives the simulation, so this is no physics gap",
    )  # fmt: skip


def lost_packets(recording: Recording) -> list[Gap]:
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
        GapVerdict.TIMING, "lost packets", most, min(count for _, count in missed), most, "packets",
        f"packets of {recording.source} were lost on their way to bots, {told}: a decision waits for the "
        "next one, and the game holds the last input until then. What was applied drives the simulation, so "
        "this is no physics gap; training loses none, rlgym-bridge match --drop does",
    )]  # fmt: skip


def _range(low: int, high: int) -> str:
    return count_of(low, "tick") if low == high else f"{low} to {high} ticks"


def _late(ticks: int, changes: str) -> str:
    early = ticks < 0 and not changes
    return f"{count_of(abs(ticks) if early else ticks, 'tick')} {'early' if early else 'late'}"


def suggest_convention(ticks: int) -> str:
    """Return what a negative lag in ticks suggests; nothing for others."""
    if ticks >= 0:
        return ""
    return (
        '; no input acts before it is there: is this what the game applied (inputs = "applied" in the map), '
        f"or are rows of inputs {count_of(-ticks, 'tick')} late in the table?"
    )


def _clock_is_wrong(scene: TimedRecording) -> bool:
    clock = scene.timeline.clock
    return abs(clock.scale - 1) > max(CLOCK_SCALE, 4 * clock.error)


def _named(scenes: Sequence[TimedRecording]) -> str:
    return scenes[0].recording.source if len(scenes) == 1 else f"{len(scenes)} recordings"


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


def physics_gaps(sizes: Sequence[Size]) -> list[Gap]:
    """Return the constants that differ."""
    return [
        Gap(
            GapVerdict.PHYSICS, f"{size.name} ({size.body})" if size.name == "gravity" else size.name,
            size.value, size.low, size.high, "of RocketSim's",
            f"{size.name}, as the {size.body} shows it, is {100 * (size.value - 1):+.2f} % off RocketSim's "
            f"({100 * (size.low - 1):+.2f} to {100 * (size.high - 1):+.2f} %, {size.windows} windows)",
        )
        for size in sizes
        if size.gap
    ]  # fmt: skip


def input_gaps(source: str, missing: Sequence[Missing], worth: Sequence[Worth]) -> list[Gap]:
    """Return the controls that a recording seems to lack, or that explain nothing."""
    gaps = []
    for one in missing:
        if one.shown and one.rivals:
            others = f"{listed(one.rivals)} {'explains' if len(one.rivals) == 1 else 'explain'}"
            gaps.append(Gap(
                GapVerdict.WRONG, f"{' or '.join(one.rivals)} or a missing {one.control}", one.explained,
                one.explained, one.far_off, "windows far off",
                f"the inputs of car {one.car} in {source} do not explain its motion, and the data do not "
                f"tell why: {others} at least as many of the {one.far_off} windows that are far off as the "
                f"{one.control} does when it is held ({one.explained}), which is always 0",
            ))  # fmt: skip
        elif one.shown:
            whose = f"the {one.control} of car {one.car} in {source}"
            asked = f"{whose} was not recorded" if one.said else f"{whose} is always 0: was it recorded?"
            most = 2 * one.explained > one.far_off
            others = "" if most else "; the others have another cause: a car that is left out bumps as well"
            gaps.append(Gap(
                GapVerdict.MISSING, one.control, one.explained, one.explained, one.far_off, "windows",
                f"{asked}; held, it explains {one.explained} of {one.far_off} windows that are far "
                f"off{others}",
            ))  # fmt: skip
    lacking = {one.car for one in missing if one.shown}  # without what is missing, what is there may hurt
    for each in worth:
        if each.wrong and each.car not in lacking:
            gaps.append(Gap(
                GapVerdict.MISSING, each.control, each.helps, each.helps, each.helps, "share of windows",
                f"the {each.control} column of {source} explains nothing: without it car {each.car} is "
                f"nearer to the recording in {100 * (1 - each.helps):.0f} % of the windows in which it acts "
                f"({count_of(each.blocks, 'block')} of time; chance {each.chance:.2g})",
            ))  # fmt: skip
    return gaps


def _cost(
    fitted: Sequence[TimedRecording], wrong: Sequence[TimedRecording], bodies: Sequence[str] = ("ball", "car")
) -> str:
    """Say what errors after a second are with another time, against those with the fitted one."""
    windows = max(_RAW_WINDOWS // len(wrong), 10)
    parts, tried = [], False
    for body in bodies:
        found, other = (
            Errors.join([
                measure_alone(one, _named_bodies(one, body), windows, HORIZONS[_SECOND]) for one in every
            ])
            for every in (fitted, wrong)
        )  # fmt: skip
        ours, theirs = (each.names[:, _SECOND] != "" for each in (found, other))
        if min(ours.sum(), theirs.sum()) >= LEAST_WINDOWS:
            tried = True
            before = float(np.median(other.position[theirs, _SECOND]))
            after = float(np.median(found.position[ours, _SECOND]))
            if short(after) != short(before) and after < before:
                parts.append(
                    f"as recorded, the {body} is {short(before)} uu off after 1 s; fitted, {short(after)}"
                )
    return "; ".join(parts) or (_NOTHING if tried else "too few windows to say what that costs")


def _named_bodies(scene: TimedRecording, name: str) -> list[int]:
    return [body for body in scene.bodies if (body == BALL) == (name == "ball")]
