"""Measure how late inputs act: fit the lag with which a simulation comes nearest; compare sent and applied.

A game that hiccups may take inputs a tick sooner or later from there on [seen in a real recording]: then
the recording has pieces, each with a lag of its own.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.compare.alterations import TIME, Alteration
from rlgym_bridge.compare.clock_fit import cheapest
from rlgym_bridge.compare.detection import sizes_of
from rlgym_bridge.compare.noise import Draw, measure_noise
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import TRIAL
from rlgym_bridge.compare.window_simulation import Bench, recorded, residuals, simulate
from rlgym_bridge.compare.windows import Window, thinned
from rlgym_bridge.recording.mcap.agent_track import InputTrack
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs

_MOST: Final = 8  # ticks scanned at first; further off where the best is near an end
WINDOWS: Final = 120
"""Windows of each car: enough that the best lag of real flights wins by far, and a change of it too."""

_AFTER: Final = 30  # ticks of a window: a tick of lag shows, chance does not yet
_LEAD: Final = 60.0  # ticks followed before
_ARM: Final = 100.0  # uu: what a spin error of 1 rad/s moves at a car's nose, to add it to speeds
_SMALL: Final = 0.5  # uu/s: differences below it are noise
_DRAWS: Final = 400  # of the bootstrap
_TELLING: Final = 0.3  # of the log of the error: windows that vary less with the lag do not count
_LEAST: Final = 6  # telling windows needed
_CHANGE: Final = 8.0  # of the log of errors: what a change of the lag has to save over all windows
_DOUBT: Final = 1.5  # of the same: what one window can weigh, which may have been a contact
_AT_ROWS: Final = np.log(3.0)  # by how much better windows fit whose inputs change at rows alone [measured]
_DRAWN: Final = 3  # draws of changes between rows, to compare with
_CLEARLY: Final = 0.67  # of the error without a lag: what an unsure lag has to fit better by
_CERTAIN: Final = 0.95  # share of resampled windows, of a piece that has another lag than the one before
_LATEST: Final = 60  # ticks; an input that acts later is not told from one that never acts
_WILD: Final = 8.0  # ticks: inputs that act so differently late are matched by chance
_SAME: Final = 1e-5  # controls closer than that are the same
_FEWEST: Final = 8  # inputs of a segment of play that tell its latency

SURE: Final = 0.9
"""Share of resampled windows that has to give the same lag: one in ten may be chance."""


class Piece(NamedTuple):
    """A part of a recording in which inputs act equally late."""

    row: int  # where it begins; it lasts to the next
    seconds: float  # when that is, on the recording's clock
    ticks: int  # the lag


@dataclass(frozen=True)
class LagFit:
    """The fitted input latency, in ticks."""

    # with lag L the controls of a row drive the tick that begins L ticks after it; where a recording
    # holds applied inputs, L is how much later than that they act. Where it changes, that of most
    # windows
    ticks: int
    # share of resampled sets of windows that give the same lag, in the least sure piece; 0 where
    # nothing tells
    sure: float
    windows: int  # windows that tell lags apart
    # typical error in uu/s for each lag scanned, with `_ARM` for turning; of the pieces that have the
    # lag `ticks`
    curve: dict[int, float]
    pieces: tuple[Piece, ...] = ()  # more than one where the lag changes for good; empty where nothing tells
    early: int = 0  # ticks from when inputs change to the row that shows it, where that is always as long
    at_rows: bool = False  # whether it is: then nothing is open between rows

    @property
    def fitted(self) -> bool:
        """True if enough windows tell lags apart; else `ticks` is 0 because nobody knows."""
        return bool(self.curve)

    def of_rows(self, rows: int) -> np.ndarray:
        """Return the lag of each of so many rows less `early`, `(rows,)` float64 ticks."""
        if not self.pieces:
            return np.full(rows, float(self.ticks))
        piece = np.searchsorted([one.row for one in self.pieces], np.arange(rows), side="right") - 1
        return np.asarray(np.array([one.ticks for one in self.pieces], float)[piece.clip(0)] - self.early)


def fit_lag(scene: TimedRecording, windows: int = WINDOWS, *, bench: Bench) -> LagFit:
    """Find the lag of a recording's inputs by so many windows of each car, or of two in larger matches."""
    return _fit(scene, _Errors(scene, windows, bench))


def _fit(scene: TimedRecording, errors_of: "_Errors", car: int | None = None) -> LagFit:
    """Return the lag of a car's inputs, or of all cars'."""
    lags = [*range(-1 if scene.recording.inputs is Inputs.SENT else 0, _MOST + 1)]
    rows, errors = errors_of.of(lags, car)
    if len(errors):
        seems = lags[int(errors.sum(0).argmin())]
        if seems >= _MOST - 1:
            lags += range(_MOST + 1, 2 * _MOST + 1)
        elif seems < 0:  # rows written before what they were decided on
            lags = [*range(-_MOST, -1), *lags]
        rows, errors = errors_of.of(lags, car)
    fit = _best(scene, rows, lags, errors)
    doubtful = fit.sure < SURE or fit.ticks + scene.unseen >= 0  # changes come before their rows
    if fit.ticks < 0 and doubtful:  # nobody sees what comes
        later = lags.index(0)
        fit = replace(_best(scene, rows, lags[later:], errors[:, later:]), sure=fit.sure)
    return fit


def fit_common_lag(scene: TimedRecording, bench: Bench) -> LagFit:
    """Find the lag of a recording's inputs; if cars surely differ, that of the car that acts soonest."""
    own_match = isinstance(scene.recording, MatchRecording)  # of what was applied, to all cars alike
    errors = _Errors(scene, WINDOWS // 3 if own_match else WINDOWS, bench)
    fit = _fit(scene, errors)
    soonest = scene.cars
    if scene.driven and len(scene.cars) > 1 and not own_match:
        own = {car: found for car in scene.cars if (found := _fit(scene, errors, car=car)).sure >= SURE}
        if len({found.ticks for found in own.values()}) > 1:
            fit = min(own.values(), key=lambda fit: abs(fit.ticks))
            soonest = [car for car in scene.cars if own.get(car, fit).ticks == fit.ticks]
    if fit.fitted and fit.sure < SURE and fit.curve[fit.ticks] + _SMALL > _CLEARLY * (fit.curve[0] + _SMALL):
        begins = tuple(piece._replace(ticks=0) for piece in fit.pieces[:1])
        return replace(fit, ticks=0, pieces=begins)  # none fits: something else is wrong with the inputs
    return _aligned(scene, errors, fit, soonest) if fit.fitted and 0 < scene.unseen <= _MOST else fit


def _aligned(scene: TimedRecording, errors: "_Errors", fit: LagFit, cars: Sequence[int]) -> LagFit:
    """Find out whether inputs change equally long before their rows: then that fits far better than draws.

    It looks at cars of this lag, and at windows in which some control changes.
    """
    early, noise = range(scene.unseen + 1), measure_noise(scene)
    each = np.concatenate([errors.of([fit.ticks - one for one in early], car)[1] for car in cars])
    best = int(np.median(each, axis=0).argmin())
    drawn = [
        np.concatenate([errors.of([fit.ticks], car, Draw(noise, seed))[1][:, 0] for car in cars])
        for seed in range(_DRAWN)
    ]
    telling = np.ptp(each, axis=1) > _TELLING
    if not telling.any() or np.median((np.mean(drawn, axis=0) - each[:, best])[telling]) < _AT_ROWS:
        return fit
    return replace(fit, early=early[best], at_rows=True)


def _best(scene: TimedRecording, rows: np.ndarray, lags: list[int], errors: np.ndarray) -> LagFit:
    """Return the lags that fit, by the errors of windows, `(windows, lags)`, that begin in rows."""
    telling = np.ptp(errors, axis=1) > _TELLING if len(errors) else np.zeros(0, bool)
    rows, errors = rows[telling], errors[telling]
    if len(errors) < _LEAST:
        return LagFit(0, 0.0, len(errors), {})
    order = np.argsort(rows, kind="stable")
    rows, errors = rows[order], errors[order]
    # Of inputs that the game applied only a mistake of the recorder could be late, and that stays.
    sent = scene.recording.inputs is Inputs.SENT
    parts = _parts(errors) if sent else [slice(0, len(errors))]
    best = [int(errors[part].sum(0).argmin()) for part in parts]
    counts = np.bincount(best, [part.stop - part.start for part in parts])
    usual = int(counts.argmax())
    sure = min(_sure(errors[part]) for part in parts)
    if {lags[one] for one in best} & {-_MOST, 2 * _MOST}:  # it may be further off still
        sure = 0.0
    of_usual = np.concatenate([errors[part] for part, one in zip(parts, best, strict=True) if one == usual])
    typical = np.exp(np.median(of_usual, axis=0)) - _SMALL
    begins = [0, *(int(rows[part.start]) for part in parts[1:])]
    return LagFit(
        lags[usual], sure, len(errors),
        {lag: float(value) for lag, value in zip(lags, typical, strict=True)},
        tuple(
            Piece(row, float(scene.recording.seconds[row]), lags[one])
            for row, one in zip(begins, best, strict=True)
        ),
    )  # fmt: skip


def _sure(errors: np.ndarray) -> float:
    """Return the share of resampled windows that give the same lag as all of them."""
    draws = np.random.default_rng(0).integers(len(errors), size=(_DRAWS, len(errors)))
    return float((errors[draws].sum(1).argmin(1) == errors.sum(0).argmin()).mean())


def _parts(errors: np.ndarray) -> list[slice]:
    """Cut windows in the order of time, `(windows, lags)`, where the lag changes for good."""
    cost = (errors - errors.min(1, keepdims=True)).clip(max=_DOUBT)
    change = _CHANGE
    while True:  # the cheapest way through lags; a change is dearer until every part is long and sure
        changes = change * (1 - np.eye(cost.shape[1]))
        path = cheapest(changes + cost[1:, None], cost[0])
        ends = [*(np.flatnonzero(np.diff(path)) + 1).tolist(), len(path)]
        parts = [slice(start, end) for start, end in pairwise([0, *ends])]
        if len(parts) == 1:
            return parts
        own = [int(errors[part].sum(0).argmin()) for part in parts]
        if all(one != other for one, other in pairwise(own)) and all(
            part.stop - part.start >= _LEAST and _sure(errors[part]) >= _CERTAIN for part in parts
        ):
            return parts
        change *= 2


class _Errors:
    """The errors of a recording's windows with each lag, each of which is simulated once."""

    def __init__(self, scene: TimedRecording, windows: int, bench: Bench) -> None:
        each = max(min(windows, 2 * windows // max(len(scene.cars), 1)), _LEAST)
        cars = scene.cars if scene.driven else []
        self._windows, self._bench = [window for car in cars for window in _choose(scene, car, each)], bench
        self._known: dict[tuple[int, int | None], np.ndarray] = {}

    def of(
        self, lags: Sequence[int], car: int | None, draw: Draw | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return where windows of a car, or of all, begin, and the logs of their errors `(windows, lags)`."""
        if not self._windows:
            return np.zeros(0, int), np.zeros((0, len(lags)))
        keys = [(lag, None if draw is None else draw.seed) for lag in lags]
        late = Alteration("input latency", TIME, values=(0.0,), unit="ticks", lagged=8)
        for key in (key for key in keys if key not in self._known):
            ours = simulate(self._windows, [(late, float(key[0]))], bench=self._bench, draw=draw).values
            off = residuals(recorded(self._windows), ours)[:, 0, 0]
            self._known[key] = _error(self._windows, off)
        own = [place for place, one in enumerate(self._windows) if car is None or one.bodies[0] == car]
        rows = np.array([self._windows[place].row for place in own], int)
        return rows, np.stack([self._known[key][own] for key in keys], axis=1)


def _error(windows: Sequence[Window], off: np.ndarray) -> np.ndarray:
    """Return the log of the size of residuals `(windows, 12)`, all as speeds."""
    sizes = sizes_of(off)
    seconds = np.array([window.seconds(0) for window in windows])
    moved = sizes[:, 0] + _ARM * sizes[:, 2]
    # Where something was not recorded, it is equally far off with every lag, or nearly so.
    speed = sizes[:, 1] + _ARM * sizes[:, 3]
    # The last speeds of a trial are not measured in all directions, and its place is rounded.
    trial = np.array([len(window.track.times) == TRIAL for window in windows])
    total = np.where(trial, _ARM * sizes[:, 2] / seconds, speed + moved / seconds)
    return np.asarray(np.log(total + _SMALL))


def _choose(scene: TimedRecording, body: int, windows: int) -> list[Window]:
    """Return windows in which inputs change and nothing is touched."""
    controls = scene.recording.state.car_controls[:, body]
    changes = np.concatenate([[False], (controls[1:] != controls[:-1]).any(1)])
    total = np.concatenate([[0], np.cumsum(changes)])
    blocked = scene.blocked(body)
    found = []
    for track in scene.tracks((body,)):
        ends = track.nearest(track.times + _AFTER)
        trial = len(track.times) == TRIAL  # it begins where inputs do
        middle = ends if trial else track.nearest(track.times + _AFTER / 2)
        fits = np.abs(track.times[ends] - track.times - _AFTER) < _AFTER / 5
        fits &= trial | (np.arange(len(ends)) > 0)
        # What is pressed late in a window shows little of when it acts.
        fits &= total[track.rows[middle]] > total[track.rows]
        fits &= blocked[track.rows[ends]] == blocked[track.rows]
        last = -np.inf
        for start in np.flatnonzero(fits).tolist():
            if track.times[start] >= last + _AFTER / 2:
                last = track.times[start]
                found.append(Window(scene, track, start, (int(ends[start]),), (2,), _LEAD))
    return thinned(found, windows)


# --- the delay of actions ---------------------------------------------------------------------------


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


def action_delay(scene: TimedRecording, lag: LagFit) -> ActionDelay | None:
    """Return how late the actions of a recording act; `lag` is the fit of its inputs.

    A recording of ours has what bots sent and what the game applied: every change of an input tells, and
    decisions tell how long they wait for the next input where packets come in bursts. Of other recordings the
    fitted lag tells; it has no noise, and a range where the lag changes or rows leave ticks out.

    Returns:
        The delay; None where inputs do not tell: none recorded, applied ones alone, too few that change,
        half a second late or more, or no lag that fits clearly better than others.
    """
    recording = scene.recording
    if isinstance(recording, MatchRecording):
        return _together(_of_match(recording), _step(recording) - 1)
    if recording.inputs is not Inputs.SENT or lag.sure < SURE:
        return None
    every = [max(1, piece.ticks) for piece in lag.pieces]
    unseen = 0 if lag.at_rows else scene.unseen
    return ActionDelay(min(every), max(every) + unseen, 0.0, max(0, lag.ticks), lag.windows)


def _together(segments: Sequence[_Segment], unseen: int) -> ActionDelay | None:
    """Return the delay that segments of play show; None where inputs are too few, or act at any time."""
    telling = [one for one in segments if len(one.late) >= _FEWEST]
    spread = _spread([one.late for one in telling])
    if not telling or spread > _WILD:
        return None
    usual = [max(1, round(float(np.median(one.late) + _median(one.waits)))) for one in telling]
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
        end = int(np.searchsorted(recording.tick, frame + _LATEST, side="right"))
        broken = np.flatnonzero(~follows[first:end])  # what no packet shows may be when it first acted
        end = first + int(broken[0]) if len(broken) else end
        does = (np.abs(applied[first - 1 : end] - wanted) < _SAME).all(-1)
        begins = first - 1 + np.flatnonzero(does[1:] & ~does[:-1])
        if len(begins):
            frames.append(frame)
            found.append((recording.tick[begins] - frame).clip(0))
    answered, late = np.array(frames, np.int64), np.zeros(len(frames), np.int64)
    segments = _segment(recording, answered)
    for segment in np.unique(segments):  # of several the nearest to the most common of its segment
        places = np.flatnonzero(segments == segment)
        (usual, _), *_ = Counter(np.concatenate([found[place] for place in places]).tolist()).most_common(1)
        late[places] = [found[place][np.abs(found[place] - usual).argmin()] for place in places]
    return answered, late


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
            acted, chosen = _segment(recording, frames), _segment(recording, decided)
            found += [_Segment(late[acted == one], waits[chosen == one]) for one in np.unique(acted)]
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
    around = np.concatenate([*(one - _median(one) for one in parts), np.empty(0)])
    if not len(around):
        return 0.0
    around = around.clip(*np.percentile(around, (1, 99)))  # lost packets are no noise
    return float(np.sqrt((around**2).mean()))
