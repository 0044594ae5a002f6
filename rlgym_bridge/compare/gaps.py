"""Put what differs into sentences: of time, and of the alterations that a recording bears out."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rlgym_bridge.compare.action_delay import ActionDelay
from rlgym_bridge.compare.comparison_result import Fit, Gap, GapVerdict, NamedCause
from rlgym_bridge.compare.input_lag import SURE
from rlgym_bridge.compare.state_age import OLDEST
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import POSITION, body_motion
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.user_input.arguments import count_of

_CLOCK_SCALE: Final = 0.0002  # a clock's error that is worth a sentence: 2 uu in 10,000
_CLOCKS_RUN: Final = (
    0.02  # beyond which a clock is a poor explanation; real ones were within 0.0022 [measured]
)
_WAVERS: Final = 0.01  # share of rows nearer than usual from which on a frame rate wavers
_LOST_LEAST: Final = 3  # rows; one or two may be a recorder's beginning


def timing_gaps(fit: Fit, scene: TimedRecording) -> list[Gap]:
    """Return what is wrong with the time of a recording.

    Args:
        fit: Its fitted time.
        scene: The recording.
    """
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
    more = f", or up to {scene.unseen} more, as rows leave ticks out" if scene.unseen else ""
    changes = "".join(f", {piece.ticks} from {piece.seconds:.1f} s on" for piece in lag.pieces[1:])
    early = lag.ticks < 0
    late = f"{count_of(abs(lag.ticks), 'tick')} {'early' if early else 'late'}"
    gaps.append(Gap(
        GapVerdict.TIMING, "input latency", fit.source, lag.ticks, min(ticks),
        max(ticks) + scene.unseen, "ticks",
        f"inputs of {fit.source} act {late}{changes}{more}{said}{suggest_convention(lag.ticks)}",
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


def suggest_convention(ticks: int) -> str:
    """Return what a negative lag in ticks suggests; nothing for others."""
    if ticks >= 0:
        return ""
    return (
        '; no input acts before it is there: is this what the game applied (inputs = "applied" in the map), '
        f"or are rows of inputs {count_of(-ticks, 'tick')} late in the table?"
    )


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
    """Return the causes as gaps.

    Args:
        causes: Of a recording.
        verdicts: What each kind is put down to.
    """
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


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: `pitch, yaw and roll`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
