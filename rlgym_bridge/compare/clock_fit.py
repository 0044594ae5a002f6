"""Fit the time of each row of a recording, in ticks: the scale of its clock, or the ages of its states.

Positions tell the time: between two rows a body moves by its velocity times the time that went by. No
constant of the physics is in that, so a gap in the physics cannot be taken for one of the clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.compare.tracks import BALL, LONGEST_STEP, SLOW, TRIAL, moves, shown
from rlgym_bridge.game import TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording, TimeBase

OLDEST: Final = 4
"""Ticks by which a frame of a replay shows a state late, at most [real replays]."""

_DOUBT: Final = 3.0  # uu, what one step can cost where nothing fits: it was a bounce
_AGEING: Final = 1e-4  # uu per tick: where nothing else tells, a state is as old as the one before
_KICK: Final = 40.0  # uu/s: a change of velocity beyond gravity's and boost's; something was hit
_ON_TICKS: Final = 0.2  # ticks: rows this near to whole ticks apart are whole ticks apart
_MOSTLY: Final = 0.9  # share of rows that has to be
_DRIFT: Final = 0.01  # ticks by which such rows may be apart more or less, most of them: they do not add up
_ROUNDING: Final = 1e-4  # s by which a segment's times may be rounded, together
_WAVERS: Final = 0.004  # of a step: a clock that was rounded to ms has 0.02 at 60 rows a second
_BOUNCE: Final = 0.1  # of a step, or of some: what is off further may have been a bounce
_TOGETHER: Final = 16  # steps of such a clock that are measured together


@dataclass(frozen=True)
class ClockFit:
    """The fitted scale of the recording's clock."""

    scale: float  # seconds of the game in a second of the recording, median over segments
    error: float  # standard error of `scale`; infinite where nothing moves enough to tell
    samples: int  # steps of a body that it rests on
    spread: float = 0.0  # largest difference between the scales of two segments
    on_ticks: bool = True  # whether rows turned out to be whole ticks apart
    wavers: bool = False  # whether it is off from row to row, as one that was rounded is


@dataclass(frozen=True)
class OffsetFit:
    """The ages of the states in a replay's frames."""

    ticks: int = 0  # ticks before the frame's time, median over all bodies shown; 0 where rows say their tick
    share: float = 1.0  # of the steps, how many are explained to a tenth of a tick
    ages: tuple[int, ...] = ()  # how many states were 0, 1, ... 4 ticks old


@dataclass(frozen=True)
class Timeline:
    """The times of the rows, in ticks."""

    times: np.ndarray  # `(rows, cars + 1)` float64 ticks, of each car and last of the ball
    inputs: np.ndarray  # `(rows,)` float64 ticks, when the controls of each row were there
    clock: ClockFit  # the fit of the clock
    offset: OffsetFit  # the fit of the ages


def fit_timeline(recording: Recording) -> Timeline:
    """Find out when the rows of a recording were."""
    bodies = [*range(recording.state.layout.cars), BALL]
    if recording.clock is TimeBase.SECONDS:
        clock, times = _fit_seconds(recording, bodies)
        return Timeline(np.repeat(times[:, None], len(bodies), 1), times, clock, OffsetFit())
    times = recording.tick.astype(float)
    if recording.clock is TimeBase.TICKS:
        clock = replace(_measure(recording, bodies, times * TICK_SECONDS)[0], wavers=False)  # it counts
        return Timeline(np.repeat(times[:, None], len(bodies), 1), times, clock, OffsetFit())
    late, offset = _fit_ages(recording, bodies, times)
    return Timeline(times[:, None] - late, times, ClockFit(1.0, np.inf, 0), offset)


def raw_timeline(recording: Recording) -> Timeline:
    """Return what the recording itself says of the time, to see what believing it would cost."""
    ticks = recording.tick.astype(float)
    if recording.clock is TimeBase.SECONDS:
        ticks = recording.seconds * TICKS_PER_SECOND
    times = np.repeat(ticks[:, None], recording.state.layout.cars + 1, 1)
    return Timeline(times, ticks, ClockFit(1.0, 0.0, 0), OffsetFit())


def _fit_seconds(recording: Recording, bodies: list[int]) -> tuple[ClockFit, np.ndarray]:
    """Return the fit and `(rows,)` ticks, each segment from a whole tick on."""
    fit, scales = _measure(recording, bodies, recording.seconds)
    times = np.empty(len(recording.seconds))
    segments = list(recording.segments())
    steps = [
        _steady(recording, bodies, segment, scale) * TICKS_PER_SECOND
        for segment, scale in zip(segments, scales, strict=True)
    ]
    together = np.concatenate([*steps, np.empty(0)])
    beside = together - np.round(together)
    on_ticks = bool(len(together)) and bool(
        (np.abs(beside) < _ON_TICKS).mean() > _MOSTLY and abs(np.median(beside)) < _DRIFT
    )
    for segment, step in zip(segments, steps, strict=True):
        whole = np.maximum(np.round(step), 1) if on_ticks else step
        times[segment] = recording.tick[segment.start] + np.concatenate([[0.0], np.cumsum(whole)])
    if on_ticks:  # then ticks tell the scale better than speeds do
        told = [np.ptp(recording.seconds[segment]) for segment in segments]
        passed = [np.ptp(times[segment]) * TICK_SECONDS for segment in segments]
        error = _ROUNDING / max(sum(told), TICK_SECONDS)
        fit = replace(fit, scale=float(sum(passed) / sum(told)), error=error)
    return replace(fit, on_ticks=on_ticks), times


def _steady(recording: Recording, bodies: list[int], segment: slice, scale: float) -> np.ndarray:
    """Return the seconds of the game between rows: if the clock wavers, by what moves fast, if anything."""
    steps = np.diff(recording.seconds[segment]) * scale
    ratios = np.full(len(steps), np.nan)
    fastest = np.zeros(len(steps))
    for body in (body for body in bodies if shown(recording, body, segment).all()):
        said, found, at = steps_of(recording, body, segment, recording.seconds)
        length = np.linalg.norm(said, axis=1)
        faster = length > fastest[at]
        ratios[at[faster]] = ((found * said).sum(1)[faster] / length[faster] ** 2) / scale
        fastest[at[faster]] = length[faster]
    told = np.isfinite(ratios)
    if told.sum() < _TOGETHER or not _wavers(ratios[told]):
        return np.asarray(steps)
    steps[told] *= ratios[told]
    return np.asarray(steps)


def _measure(recording: Recording, bodies: list[int], seconds: np.ndarray) -> tuple[ClockFit, list[float]]:
    """Return the fit, and the scale of each segment: its own, of all where it tells little, else 1."""
    parts = [
        _joined([_along(*steps_of(recording, body, segment, seconds)[:2]) for body in bodies])
        for segment in recording.segments()
    ]
    if not parts or not sum(len(part.said) for part in parts):
        return ClockFit(1.0, np.inf, 0), [1.0] * len(parts)
    overall, error = _slope(_joined(parts))
    own = [_slope(part) for part in parts]
    scales = [
        scale if np.isfinite(mistake) and abs(scale - overall) > 4 * mistake else overall
        for scale, mistake in own
    ]
    spread = max(scales) - min(scales)
    samples, wavers = sum(len(part.said) for part in parts), any(part.wavers for part in parts)
    return ClockFit(float(np.median(scales)), error, samples, spread, wavers=wavers), scales


def _wavers(ratios: np.ndarray) -> bool:
    """Tell whether steps, as multiples of what they should be, are off on the average, bounces left out."""
    return bool(np.abs(ratios - 1).clip(max=_BOUNCE).mean() > _WAVERS)


class _Ways(NamedTuple):
    """Expected and recorded distances of bodies, `(n,)` uu each, and whether the clock wavers."""

    said: np.ndarray
    found: np.ndarray
    wavers: bool


def _joined(parts: Sequence[_Ways]) -> _Ways:
    said, found = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    return _Ways(said, found, any(part.wavers for part in parts))


def _along(said: np.ndarray, found: np.ndarray) -> _Ways:
    """Return the ways of a body: of single steps, or of some together where the clock wavers."""
    lengths = np.linalg.norm(said, axis=1)
    said, found, lengths = said[lengths > 0], found[lengths > 0], lengths[lengths > 0]
    along = (found * said).sum(1) / lengths
    ratios = along / lengths
    middle = float(np.median(ratios)) if len(ratios) >= 2 * _TOGETHER else 0.0
    if middle <= 0 or not _wavers(ratios / middle):  # 0 where most stand still while velocities say otherwise
        return _Ways(lengths, along, False)
    count = min(_TOGETHER, len(lengths) // 12)
    starts = np.arange(0, len(lengths) - count + 1, count)
    return _Ways(np.add.reduceat(lengths, starts), np.add.reduceat(along, starts), True)


def steps_of(
    recording: Recording, body: int, segment: slice, seconds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how a body's velocity says that it moved from row to row, and how it did: `(steps, 3)` uu each.

    And `(steps,)` after which rows of the segment.
    """
    rows = np.flatnonzero(shown(recording, body, segment)) + segment.start
    apart = np.diff(seconds[rows])
    mean, moved, change = moves(recording, body, rows)
    speed = np.linalg.norm(mean, axis=1)
    smooth = np.linalg.norm(change, axis=1) < _KICK * np.maximum(1, apart * TICKS_PER_SECOND)
    # Between the two moments of a trial inputs change the speed as they like.
    good = (speed > SLOW) & (len(rows) > TRIAL) & smooth & (apart < LONGEST_STEP * TICK_SECONDS)
    return (mean * apart[:, None])[good], moved[good], (rows[:-1] - segment.start)[good]


def _slope(ways: _Ways) -> tuple[float, float]:
    """Return `found` over `said` by least squares on the middle of the ratios, and its standard error."""
    expected, found, wavers = ways
    if len(expected) < 10:
        return 1.0, np.inf
    kept = np.ones(len(expected), bool)
    slope = float(np.median(found / expected))
    for _ in range(3):
        off = np.abs(found - slope * expected)
        # A rounded clock is off by one of two amounts: cutting would take the more frequent for true.
        kept = off <= (_BOUNCE * slope * expected if wavers else max(3 * float(np.median(off)), 1e-9))
        kept = kept if kept.any() else np.ones(len(expected), bool)
        slope = float((found[kept] @ expected[kept]) / (expected[kept] @ expected[kept]))
    off = found[kept] - slope * expected[kept]
    error = np.sqrt((off @ off) / max(kept.sum() - 1, 1) / (expected[kept] @ expected[kept]))
    return slope, float(error)


def _fit_ages(
    recording: Recording, bodies: Sequence[int], frames: np.ndarray
) -> tuple[np.ndarray, OffsetFit]:
    """Return how old a replay's states are, `(rows, bodies)` ticks, 0 where none is shown; and the fit."""
    every = [_ages(recording, body, frames) for body in bodies]
    there = [late[shown(recording, body)] for body, (late, _) in zip(bodies, every, strict=True)]
    counts = np.bincount(np.concatenate(there).astype(int), minlength=OLDEST + 1)
    share = np.concatenate([explained for _, explained in every])
    return np.stack([late for late, _ in every], 1), OffsetFit(
        int(np.median(np.repeat(np.arange(len(counts)), counts))) if counts.sum() else 0,
        float(share.mean()) if len(share) else 0.0,
        tuple(counts.tolist()),
    )


def _ages(recording: Recording, body: int, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest ages of a body, `(rows,)` ticks, and which steps they explain to 0.1 ticks."""
    late, explained = np.zeros(len(frames)), []
    ages = np.arange(OLDEST + 1)
    for segment in recording.segments():
        rows = np.flatnonzero(shown(recording, body, segment)) + segment.start
        if len(rows) < 2:
            continue
        mean, moved, _ = moves(recording, body, rows)
        # (steps, age before, age after): ticks that went by.
        apart = np.diff(frames[rows])[:, None, None] + ages[:, None] - ages[None, :]
        off = np.linalg.norm(
            moved[:, None, None] - apart[..., None] * TICK_SECONDS * mean[:, None, None], axis=-1
        )
        speed = np.linalg.norm(mean, axis=1)
        long = np.diff(frames[rows]) > LONGEST_STEP + OLDEST
        cost = np.minimum(off, _DOUBT) + _AGEING * np.abs(ages[:, None] - ages[None, :])
        cost[long] = 0.0
        cost[apart < 1] = np.inf
        middle = np.abs(ages - OLDEST // 2) * 1e-9  # of equal ones the middle: only differences count
        path = cheapest(cost, middle)
        late[rows] = path
        steps = np.arange(len(cost))
        telling = (speed > SLOW) & ~long
        chosen = off[steps, path[:-1], path[1:]]
        explained.append((chosen < 0.1 * speed * TICK_SECONDS)[telling])
    return late, np.concatenate([*explained, np.empty(0)])


def cheapest(cost: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the cheapest way through `(steps, before, after)` costs, `(steps + 1,)` indices.

    To begin costs `first`, `(before,)`.
    """
    total, back = first, []
    for step in cost:
        ways = total[:, None] + step
        back.append(ways.argmin(0))
        total = ways.min(0)
    path = [int(np.argmin(total))]
    for way in reversed(back):
        path.append(int(way[path[-1]]))
    return np.array(path[::-1])
