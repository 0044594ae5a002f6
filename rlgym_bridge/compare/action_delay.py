"""Estimate the action delay of a recording, as training's settings take it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.input_lag import SURE, LagFit, fit_lag
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.recording.mcap.agent_track import InputTrack
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording

_MOST: Final = 60  # ticks; what acts later is not told from what never acts
_WILD: Final = 8.0  # ticks: inputs that act so differently late are matched by chance
_SAME: Final = 1e-5  # controls closer than that are the same
_LEAST: Final = 8  # inputs of a segment of play that tell its latency


@dataclass(frozen=True)
class ActionDelay:
    """The action delay of a recording, in ticks."""

    # low, high: range over segments of play, for training's `action_delay`: the soonest that an action
    # can act after the state it was decided on, 1 at least. A bot whose own delay is longer waits
    # longer. Where rows leave ticks out, `high` is by so many more than was seen
    low: int
    high: int
    # standard deviation of single decisions within a segment, for training's `action_delay_noise`
    noise: float
    input_latency: int  # from the packet an input answers to the first tick it drives, of most inputs
    inputs: int  # how many told it


class _Segment(NamedTuple):
    """Input latencies, and waits of decisions for an input, of one car in a segment, `(n,)` ticks each."""

    late: np.ndarray
    waits: np.ndarray


def action_delay(recording: Recording, lag: LagFit | None = None) -> ActionDelay | None:
    """Return how late the actions of a recording act.

    A recording of ours has what bots sent and what the game applied: every change of an input tells, and
    decisions tell how long they wait for the next input where packets come in bursts. In other recordings the
    simulation is driven with each lag and the one that fits is taken; that tells of no noise, and of a range
    where the lag changes or rows leave ticks out.

    Returns:
        The delay; None where inputs do not tell: none recorded, applied ones alone, too few that change,
        half a second late or more, or no lag that fits clearly better than others.
    """
    if isinstance(recording, MatchRecording):
        return _together(_of_match(recording), _step(recording) - 1)
    if recording.inputs is not Inputs.SENT:
        return None
    scene = TimedRecording(recording, fit_timeline(recording))
    lag = lag or fit_lag(scene)
    if lag.sure < SURE:
        return None
    every = [max(1, piece.ticks) for piece in lag.pieces]
    unseen = 0 if lag.at_rows else scene.unseen
    return ActionDelay(min(every), max(every) + unseen, 0.0, max(0, lag.ticks), lag.windows)


def _together(segments: Sequence[_Segment], unseen: int) -> ActionDelay | None:
    """Return the delay that segments of play show; None where inputs are too few, or act at any time."""
    telling = [one for one in segments if len(one.late) >= _LEAST]
    if not telling:
        return None
    usual = [max(1, round(float(np.median(one.late) + _median(one.waits)))) for one in telling]
    spread = _spread([one.late for one in telling])
    if spread > _WILD:
        return None
    noise = np.hypot(spread, _spread([one.waits for one in telling]))
    every = np.concatenate([one.late for one in telling])
    latency = Counter(every.tolist()).most_common(1)[0][0]
    return ActionDelay(min(usual), max(usual) + unseen, float(noise), latency, len(every))


def latencies(recording: MatchRecording, sent: InputTrack, car: int) -> tuple[np.ndarray, np.ndarray]:
    """Return when a car's inputs changed, and how late each change acted.

    Returns:
        `(n,)` int64 frames that the changed inputs answered, and `(n,)` int64 ticks from there to the first
        tick driven: the least that it can be where packets leave out ticks. Where they leave out more than
        usually, nothing is said.
    """
    mine = sent.row == car
    frame_of, last = np.unique(sent.frame[mine][::-1], return_index=True)
    newest = sent.controls[mine][::-1][last]
    changed = np.flatnonzero(np.abs(np.diff(newest, axis=0)).max(1, initial=0.0) >= _SAME) + 1
    applied = recording.state.car_controls[:, car]
    follows = np.diff(recording.segment, prepend=-1) == 0
    follows &= np.diff(recording.tick, prepend=recording.tick[:1]) <= _step(recording)
    frames: list[int] = []
    found: list[np.ndarray] = []  # ticks after which the car began to do what each of them says
    for frame, wanted in zip(frame_of[changed].tolist(), newest[changed], strict=True):
        first = max(1, int(np.searchsorted(recording.tick, frame, side="right")))
        end = int(np.searchsorted(recording.tick, frame + _MOST, side="right"))
        broken = np.flatnonzero(~follows[first:end])  # what no packet shows may be when it first acted
        end = first + int(broken[0]) if len(broken) else end
        does = (np.abs(applied[first - 1 : end] - wanted) < _SAME).all(-1)
        begins = first - 1 + np.flatnonzero(does[1:] & ~does[:-1])
        if len(begins):
            frames.append(frame)
            found.append((recording.tick[begins] - frame).clip(0))
    return np.array(frames, np.int64), _one_of_each(found, _segment(recording, np.array(frames, np.int64)))


def _one_of_each(found: Sequence[np.ndarray], segments: np.ndarray) -> np.ndarray:
    """Return how late each input acted: of what it may be the nearest to the most common of its segment."""
    late = np.zeros(len(found), np.int64)
    for segment in np.unique(segments):
        places = np.flatnonzero(segments == segment)
        (usual, _), *_ = Counter(np.concatenate([found[place] for place in places]).tolist()).most_common(1)
        for place in places:
            late[place] = found[place][np.abs(found[place] - usual).argmin()]
    return late


def _of_match(recording: MatchRecording) -> list[_Segment]:
    """Return what each car shows in each segment."""
    tracks = [(track.inputs, [one.frame for one in track.decisions]) for track in recording.agents.values()]
    if not any(len(inputs.frame) for inputs, _ in tracks) and recording.inputs_taken is not None:
        tracks = [(recording.inputs_taken, [])]
    found = []
    for inputs, decisions in tracks:
        for car in sorted(set(inputs.row.tolist()) - {-1}):
            frames, late = latencies(recording, inputs, car)
            answers = np.unique(inputs.frame[inputs.row == car])
            decided = np.array(decisions, np.int64)
            decided = decided[decided <= answers[-1]]
            waits = answers[np.searchsorted(answers, decided)] - decided
            of_inputs, of_decisions = (_segment(recording, one) for one in (frames, decided))
            found += [
                _Segment(late[of_inputs == one], waits[of_decisions == one])
                for one in np.unique(of_inputs).tolist()
            ]
    return found


def _step(recording: MatchRecording) -> int:
    """Return the ticks from most packets to the next."""
    return max(1, int(np.median(np.diff(recording.tick)))) if len(recording.tick) > 1 else 1


def _segment(recording: MatchRecording, frames: np.ndarray) -> np.ndarray:
    rows = np.searchsorted(recording.tick, frames).clip(0, len(recording.tick) - 1)
    return np.asarray(recording.segment[rows])


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _spread(parts: Sequence[np.ndarray]) -> float:
    """Return the standard deviation around the parts' medians."""
    around = np.concatenate([one - _median(one) for one in parts])
    if not len(around):
        return 0.0
    around = around.clip(*np.percentile(around, (1, 99)))  # lost packets are no noise
    return float(np.sqrt((around**2).mean()))
