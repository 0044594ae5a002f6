"""Fit the time of each row of a recording, in ticks: the scale of its clock, or the ages of its states.

Positions tell the time: between two rows a body moves by its velocity times the time that went by. No
constant of the physics is in that, so a gap in the physics cannot be taken for one of the clock.

A table in metres agrees with itself, and a simulation that begins outside of the field says nothing about the
game; so `check_motion` refuses wrong columns and units before anything is fitted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.compare.tracks import (
    BALL,
    POSITION,
    ROTATION,
    SPIN,
    TRIAL,
    UP_Z,
    VELOCITY,
    body_values,
    knows_spin,
    moves,
    shown,
    stands,
    turning,
)
from rlgym_bridge.game import (
    BALL_RADIUS,
    CAR_MAX_ANGULAR_SPEED,
    CAR_MAX_SPEED,
    CEILING_Z,
    GOAL_BACK_Y,
    SIDE_WALL_X,
    STANDING_MOST_Z,
    TICK_SECONDS,
    TICKS_PER_SECOND,
)
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording, TimeBase

OLDEST: Final = 4
"""Ticks by which a frame of a replay shows a state late, at most [real replays]."""

_DOUBT: Final = 3.0  # uu, what one step can cost where nothing fits: it was a bounce
_AGEING: Final = 1e-4  # uu per tick: where nothing else tells, a state is as old as the one before
_KICK: Final = 40.0  # uu/s: a change of velocity beyond gravity's and boost's; something was hit
_ON_TICKS: Final = 0.2  # ticks: rows this near to whole ticks apart are whole ticks apart
_MOSTLY: Final = 0.9  # share of rows that has to be
_DRIFT: Final = 0.01  # ticks by which such rows may be apart more or less, most of them: they do not add up
_SAME_TIME: Final = 2e-5  # s: more than what float32 leaves of a time of minutes
_ROUNDING: Final = 1e-4  # s by which a segment's times may be rounded, together
_WAVERS: Final = 0.004  # of a step: a clock that was rounded to ms has 0.02 at 60 rows a second
_BOUNCE: Final = 0.1  # of a step, or of some: what is off further may have been a bounce
_TOGETHER: Final = 16  # steps of such a clock that are measured together
_SLOW: Final = 200.0  # uu/s: what is slower tells little of the time
_LONGEST_STEP: Final = 12.5  # ticks: over longer ones a path bends too much
_FAR_APART: Final = 0.5  # s between rows, over which nobody knows what a car did
_STEPS: Final = 10  # of a body, from which on its motion can be judged
_UNLIKE: Final = 0.2  # of a step: what a body may move otherwise than its velocity says, mostly
_TURNS_UNLIKE: Final = 0.5  # the same of a turn; real recordings have 0.01 to 0.12 in the median [measured]
_TURNS: Final = 0.5  # rad/s from which on a car counts as turning
_ROLLS: Final = 500.0  # uu/s: who drives so fast on four wheels mostly goes along the nose, slides apart
_ALONG: Final = 0.8  # cosine; in real recordings it is above 0.99 in the median [measured]
_UPRIGHT: Final = 0.5  # z of the up axis of a car as low as on its wheels; on its roof it is 39 uu high
_NEARLY_ALL: Final = 0.9  # of the steps in which a body moves, without a velocity in any of them
_FASTEST_SPIN: Final = 1.2 * CAR_MAX_ANGULAR_SPEED  # rad/s; a ball has 6 at most [RS]
_FIELD: Final = 1.5 * np.array([SIDE_WALL_X, GOAL_BACK_Y, CEILING_Z])  # uu, with room for other maps
_CORNER: Final = 0.02 * np.array([SIDE_WALL_X, GOAL_BACK_Y, CEILING_Z])  # uu: a field in metres, twice


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
    times = recording.tick.astype(float)
    if recording.clock is TimeBase.FRAMES:
        late, offset = _fit_ages(recording, bodies, times)
        return Timeline(times[:, None] - late, times, ClockFit(1.0, np.inf, 0), offset)
    if recording.clock is TimeBase.SECONDS:
        clock, times = _fit_seconds(recording, bodies)
    else:
        clock = replace(_measure(recording, bodies, times * TICK_SECONDS)[0], wavers=False)  # it counts
    return Timeline(np.repeat(times[:, None], len(bodies), 1), times, clock, OffsetFit())


def _fit_seconds(recording: Recording, bodies: list[int]) -> tuple[ClockFit, np.ndarray]:
    """Return the fit and `(rows,)` ticks, each segment from a whole tick on."""
    fit, scales = _measure(recording, bodies, recording.seconds)
    times = np.empty(len(recording.seconds))
    steps = [
        (segment, _steady(recording, bodies, segment, scale) * TICKS_PER_SECOND)
        for segment, scale in zip(recording.segments(), scales, strict=True)
    ]
    together = np.concatenate([*(step for _, step in steps), np.empty(0)])
    beside = together - np.round(together)
    on_ticks = len(together) > 0 and bool(
        (np.abs(beside) < _ON_TICKS).mean() > _MOSTLY and abs(np.median(beside)) < _DRIFT
    )
    shown_seconds = passed = 0.0
    for segment, step in steps:
        whole = np.maximum(np.round(step), 1) if on_ticks else step
        times[segment] = recording.tick[segment.start] + np.concatenate([[0.0], np.cumsum(whole)])
        shown_seconds += np.ptp(recording.seconds[segment])
        passed += np.ptp(times[segment]) * TICK_SECONDS
    if on_ticks:  # then ticks tell the scale better than speeds do
        error = _ROUNDING / max(shown_seconds, TICK_SECONDS)
        error = max(error, _rounding(recording.seconds) * len(steps) / max(shown_seconds, TICK_SECONDS))
        fit = replace(fit, scale=float(passed / shown_seconds), error=error)
    return replace(fit, on_ticks=on_ticks), times


def _rounding(seconds: np.ndarray) -> float:
    """Return the standard error of a segment's length, s, of times that are rounded to ms; else 0.

    Segments of equal lengths are rounded alike, so that more of them do not make it smaller.
    """
    in_ms = (np.abs(seconds - np.round(seconds, 3)) < _SAME_TIME).all()
    return float(in_ms * 0.001 / np.sqrt(6))  # of the difference of two evenly rounded numbers


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
    known = np.isfinite(ratios)
    if known.sum() >= _TOGETHER and _wavers(ratios[known]):
        steps[known] *= ratios[known]
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
    good = (speed > _SLOW) & (len(rows) > TRIAL) & smooth & (apart < _LONGEST_STEP * TICK_SECONDS)
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
        long = np.diff(frames[rows]) > _LONGEST_STEP + OLDEST
        cost = np.minimum(off, _DOUBT) + _AGEING * np.abs(ages[:, None] - ages[None, :])
        cost[long] = 0.0
        cost[apart < 1] = np.inf
        middle = np.abs(ages - OLDEST // 2) * 1e-9  # of equal ones the middle: only differences count
        path = cheapest(cost, middle)
        late[rows] = path
        steps = np.arange(len(cost))
        telling = (speed > _SLOW) & ~long
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


# --- whether velocities are those of the positions ----------------------------------------------------


def check_motion(recording: Recording, timeline: Timeline) -> None:
    """Make sure that bodies are on the field, and move and turn about as their velocities say.

    No clock of a game is wrong by a fifth: then a column, a scale or a unit is another than was thought. The
    recording's own times count; of a replay, whose frames say no ticks, those of the timeline.

    Raises:
        ValueError: Rows are too far apart; a body is where none can be, moves or turns otherwise, or has no
            velocity.
    """
    frames = recording.clock is TimeBase.FRAMES
    apart = float(np.median(np.diff(recording.seconds))) if len(recording.seconds) > _STEPS else 0.0
    if recording.clock is TimeBase.SECONDS and (apart > _FAR_APART or apart < 0):
        raise ValueError(
            f"{recording.source}: rows are {apart:.3g} s apart in the median, expected more than 0 and "
            f"{_FAR_APART} at most; milliseconds need scale = 0.001 in the map's [time], rows rising times"
        )
    # Units and axes of matches and replays are known: there a puck is low, and a car may drift all along.
    mapped = not frames and not isinstance(recording, MatchRecording)
    in_seconds = recording.clock is TimeBase.SECONDS
    own = recording.seconds * TICKS_PER_SECOND if in_seconds else recording.tick.astype(float)
    for body in (*range(recording.state.layout.cars), BALL):
        name = f"{recording.source}: " + ("the ball" if body == BALL else f"car {body}")
        values = body_values(recording, body, np.flatnonzero(shown(recording, body)))
        if mapped:
            _check_range(values, body, name)
        times = timeline.times[:, body] if frames else own
        _check_steps(recording, body, name, times)
        if mapped and body != BALL:
            _check_turns(recording, body, name, times)
            _check_roof(values, name)
            _check_nose(values, name)


def _check_range(values: np.ndarray, body: int, name: str) -> None:
    """Refuse places outside of any field, a ball in the floor, cars on a field of metres, too fast spins."""
    if len(values) <= _STEPS:
        return
    middle = np.median(np.abs(values[:, POSITION]), axis=0)
    moved = np.ptp(values[:, POSITION], axis=0).any()
    small = (np.abs(values[:, POSITION]) < np.maximum(_CORNER, 1.2 * STANDING_MOST_Z)).all() and moved
    if body == BALL:
        small = np.median(values[:, 2]) < 0.8 * BALL_RADIUS
    if small or (middle > _FIELD).any():
        places = ", ".join(f"{place:.4g}" for place in middle)
        raise ValueError(
            f"{name} is at ({places}) in the median, signs left out, where no field is; expected uu: up to "
            f"{SIDE_WALL_X:.0f}, {GOAL_BACK_Y:.0f} and {CEILING_Z:.0f}, a ball's height {BALL_RADIUS:.0f} or "
            f"more. {_height_advice(body, middle)}"
        )
    speeds = np.linalg.norm(values[:, SPIN], axis=1)
    speed = np.median(speeds[speeds > 0]) if speeds.any() else 0.0
    if speed > _FASTEST_SPIN:
        raise ValueError(
            f"{name} turns at {speed:.3g} rad/s in the median, and nothing turns "
            f"faster than {CAR_MAX_ANGULAR_SPEED} (6 for a ball). Degrees need scale = 0.0174533 in the "
            "map's angular_velocity"
        )


def _height_advice(body: int, middle: np.ndarray) -> str:
    """Return what may be wrong with places whose medians, `(3,)` uu, no field has."""
    if body == BALL and middle[2] < BALL_RADIUS and (middle[:2] > _CORNER[:2]).any():
        return "Is its height measured from where it lies? Then it needs add = 93.15 in the map"
    return "Metres need scale = 100 in the map, for positions and velocities"


def _runs(recording: Recording, body: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield segments with the rows that show a body, trials left out."""
    for segment in recording.segments():
        rows = np.flatnonzero(shown(recording, body, segment)) + segment.start
        if len(rows) > TRIAL:
            yield segment, rows


def _check_steps(recording: Recording, body: int, name: str, times: np.ndarray) -> None:
    """Refuse a body whose positions move otherwise than its velocity says."""
    off, moved, still = [], 0, 0
    for segment, rows in _runs(recording, body):
        said, found, _ = steps_of(recording, body, segment, times * TICK_SECONDS)
        off.append(np.linalg.norm(found - said, axis=1) / np.linalg.norm(said, axis=1))
        off.append(_steps_slow_by_velocity(recording, body, rows, times[rows] * TICK_SECONDS))
        values = body_values(recording, body, rows)
        goes = np.diff(values[:, POSITION], axis=0).any(1)
        moved += int(goes.sum())
        still += int((goes & ~values[1:, VELOCITY].any(1)).sum())
    if moved > _STEPS and still > _NEARLY_ALL * moved:
        raise ValueError(
            f"{name} moves and its velocity is 0, expected velocities in uu/s: the simulation begins with "
            "them; does the map name their columns?"
        )
    together = np.concatenate([*off, np.empty(0)])
    if len(together) > _STEPS and np.median(together) > _UNLIKE:
        raise ValueError(
            f"{name} moves otherwise than its velocity says, by {100 * np.median(together):.0f} % in most "
            f"steps, expected {100 * _UNLIKE:.0f} % at most; is a column, a scale or a unit of time, "
            "position or velocity another than the map says?"
        )


def _steps_slow_by_velocity(
    recording: Recording, body: int, rows: np.ndarray, seconds: np.ndarray
) -> np.ndarray:
    """Return by which share steps differ in which positions are fast and velocities slow, `(steps,)`."""
    apart = np.diff(seconds)
    mean, moved, _ = moves(recording, body, rows)
    went = np.linalg.norm(moved, axis=1)
    chosen = (went > _SLOW * apart) & (np.linalg.norm(mean, axis=1) <= _SLOW)
    chosen &= (apart > 0) & (apart < _LONGEST_STEP * TICK_SECONDS) & (went < CAR_MAX_SPEED * apart)
    said = mean[chosen] * apart[chosen, None]
    return np.asarray(np.linalg.norm(moved[chosen] - said, axis=1) / went[chosen])


def _check_turns(recording: Recording, car: int, name: str, times: np.ndarray) -> None:
    """Refuse a car whose orientation turns otherwise than its angular velocity says."""
    if not knows_spin(recording, car):
        return
    off = []
    for _, rows in _runs(recording, car):
        rows = rows[np.diff(np.maximum.accumulate(times[rows]), prepend=-np.inf) > 0]
        values = body_values(recording, car, rows)
        said = (values[1:, SPIN] + values[:-1, SPIN]) / 2
        found = turning(values[:, ROTATION], times[rows])[1:]
        speed = np.maximum(np.linalg.norm(said, axis=1), np.linalg.norm(found, axis=1))
        turns = speed > _TURNS
        off.append(np.linalg.norm(found - said, axis=1)[turns] / speed[turns])
    together = np.concatenate([*off, np.empty(0)])
    if len(together) > _STEPS and np.median(together) > _TURNS_UNLIKE:
        raise ValueError(
            f"{name} turns otherwise than its angular velocity says, by {100 * np.median(together):.0f} % in "
            f"most steps, expected {100 * _TURNS_UNLIKE:.0f} % at most; is an angle in degrees "
            "(half_turn = 180 in the map), another order of pitch, yaw and roll, or the angular velocity in "
            "axes of the car?"
        )


def _check_roof(values: np.ndarray, name: str) -> None:
    """Refuse a car that is as low as on its wheels, and whose roof is not above it."""
    low = values[:, 2] < STANDING_MOST_Z
    up = values[low][:, UP_Z]
    if len(up) > _STEPS and values[:, ROTATION].any() and np.median(up) < _UPRIGHT:
        off = np.degrees(np.arccos(np.median(up).clip(-1, 1)))
        raise ValueError(
            f"{name} is as low as on its wheels, {np.median(values[low, 2]):.1f} uu, with its roof {off:.0f} "
            "degrees off from above in the median; is the quaternion in another order than w, x, y, z, or "
            "are pitch, yaw and roll in another order?"
        )


def _check_nose(values: np.ndarray, name: str) -> None:
    """Refuse a car on its wheels that mostly drives otherwise than along its nose."""
    speed = np.linalg.norm(values[:, VELOCITY], axis=1)
    rolls = stands(values) & (speed > _ROLLS)
    if rolls.sum() <= _STEPS:
        return
    along = np.abs((values[:, ROTATION][:, [0, 3, 6]] * values[:, VELOCITY]).sum(1)[rolls]) / speed[rolls]
    if np.median(along) < _ALONG:
        off = np.degrees(np.arccos(np.median(along)))
        raise ValueError(
            f"{name} drives {off:.0f} degrees off its nose in the median, on its wheels; is an axis of "
            "positions or angles turned around (scale = -1), or does yaw begin elsewhere than at +x, or turn "
            "the other way than from +x towards +y?"
        )
