"""Choose the windows of a comparison, and name the situation of each."""

from typing import Final, TypeVar

import numpy as np

from rlgym_bridge.compare.simulate.rollout import Path
from rlgym_bridge.compare.simulate.tracks import (
    BALL,
    POSITION,
    ROTATION,
    TRIAL,
    VELOCITY,
    Track,
    body_motion,
    shown,
    stands,
)
from rlgym_bridge.game import (
    BALL_RADIUS,
    GRAVITY,
    STANDING_LEAST_UP,
    STANDING_MOST_Z,
    TICK_SECONDS,
    TICKS_PER_SECOND,
)
from rlgym_bridge.recording.recording import Recording

T = TypeVar("T")

HORIZONS: Final = (1, 12, 30, 60, 120, 240)
"""Ticks after the start at which errors are measured."""

BALL_AIR: Final = "ball in the air"
BALL_BOUNCED: Final = "ball after bounces"
BALL_GROUND: Final = "ball on the ground"
BALL_TOUCHED: Final = "ball touched by a car"
CAR_GROUND: Final = "car on the ground"
CAR_WALL: Final = "car on a wall"
CAR_AIR: Final = "car in the air"
CAR_LEAVES: Final = "car jumping or landing"
CAR_JUMPED: Final = "car after a jump"
CAR_CONTACT: Final = "car in contact"
SITUATIONS: Final = (
    BALL_AIR, BALL_BOUNCED, BALL_GROUND, BALL_TOUCHED,
    CAR_GROUND, CAR_WALL, CAR_AIR, CAR_LEAVES, CAR_JUMPED, CAR_CONTACT,
)  # fmt: skip
"""A window belongs to one of these for each horizon: what happens later does not count.

`CAR_JUMPED` are windows that start within 1.25 s of a jump or dodge, while its hidden timers count.
"""

_TIMER_TICKS: Final = 1.25 * TICKS_PER_SECOND  # the longest hidden timer: until the dodge is gone [RocketSim]
_GROUND_LEAD, _AIR_LEAD = 60.0, 180.0  # ticks followed before: the handbrake's 0.5 s; jump and dodge timers
_BOUNCE: Final = 20.0  # uu/s in a tick beyond gravity
_LOW: Final = 100.0  # uu, height of a ball that lies or rolls
_CAR_REACH: Final = 100.0  # uu from a car's origin to its farthest corner and a little, an Octane's 93
_NEXT_TO: Final = 0.1  # of a horizon, how far a row may be beside it
_BESIDE: Final = 0.5  # ticks, the same for short ones


def starts(track: Track, every: float) -> np.ndarray:
    """Return the moments of a track at which windows start; each has a moment before and after it.

    Args:
        track: The track. One of two moments is a trial: its first moment is the only start.
        every: Ticks from one start to the next.

    Returns:
        Indices of moments, `(starts,)` int64.
    """
    if len(track.times) <= TRIAL:
        return np.zeros(1, int)
    wanted = np.arange(track.times[1], track.times[-2] + 1e-6, every)
    found: np.ndarray = np.unique(np.clip(track.nearest(wanted), 1, len(track.times) - 2))
    return found


def spaced(times: np.ndarray, fits: np.ndarray, gap: float) -> list[int]:
    """Return the moments that fit, each some time after the one before.

    Args:
        times: `(n,)` ticks, rising.
        fits: `(n,)` bool, at which moments a window may begin.
        gap: Least ticks between two windows' beginnings.
    """
    found, last = [], -np.inf
    for start in np.flatnonzero(fits).tolist():
        if times[start] >= last + gap:
            found.append(start)
            last = times[start]
    return found


def thinned(found: list[T], most: int) -> list[T]:
    """Return at most so many of some windows, evenly."""
    kept = np.linspace(0, len(found) - 1, min(len(found), most)).astype(int)
    return [found[index] for index in kept.tolist()]


def targets(track: Track, start: int) -> np.ndarray:
    """Return the moments at which a window ends, `(horizons,)`; -1 where none lies near the horizon.

    The end of a trial, a track of two moments, counts for the first horizon that is not before it.
    """
    if len(track.times) == TRIAL:
        ends = np.full(len(HORIZONS), -1)
        column = int(np.searchsorted(HORIZONS, track.times[1] - track.times[0] - _BESIDE))
        if column < len(HORIZONS):
            ends[column] = 1
        return ends
    wanted = track.times[start] + np.array(HORIZONS)
    found = track.nearest(wanted)
    beside = np.abs(track.times[found] - wanted)
    fits = (beside <= np.maximum(_BESIDE, _NEXT_TO * np.array(HORIZONS))) & (found > start)
    return np.asarray(np.where(fits, found, -1))


def lead_ticks(track: Track, start: int, place: int) -> float:
    """Return how long the simulation follows a body before a window, in ticks."""
    if track.bodies[place] == BALL:
        return 1.0
    return _GROUND_LEAD if stands(track.values[start, place]) else _AIR_LEAD


def near_others(recording: Recording) -> np.ndarray:
    """Return `(rows, cars + 1)` bool: where a body is so near to a car (or the ball) that they may touch."""
    cars = recording.state.layout.cars
    rows = np.arange(len(recording.tick))
    near = np.zeros((len(rows), cars + 1), bool)
    ever = [_ever_shown(recording, column, cars) for column in range(cars + 1)]
    if sum(ever) < 2:  # nobody is there to be near to
        return near
    last = [_last_shown(shown(recording, body)) for body in (*range(cars), BALL)]
    motion = [body_motion(recording, body, at) for body, at in zip((*range(cars), BALL), last, strict=True)]
    gap = np.minimum(np.diff(recording.tick, append=recording.tick[-1:] + 1).clip(1), TICKS_PER_SECOND)
    there = np.ones((len(rows), cars + 1), bool)
    there[:, :cars] = recording.car_present & ~(recording.state.car_is_demoed > 0)
    for one in range(cars):
        for other in range(one + 1, cars + 1):
            if not (ever[one] and ever[other]):
                continue
            apart = np.linalg.norm(motion[one][:, POSITION] - motion[other][:, POSITION], axis=1)
            closing = np.linalg.norm(motion[one][:, VELOCITY] - motion[other][:, VELOCITY], axis=1)
            stale = np.abs(last[one] - last[other]) * gap
            reach = _CAR_REACH + (BALL_RADIUS if other == cars else _CAR_REACH)
            close = apart < reach + closing * TICK_SECONDS * (gap + stale)
            close &= there[:, one] & there[:, other]
            near[:, one] |= close
            near[:, other] |= close
    return near


def _ever_shown(recording: Recording, column: int, cars: int) -> bool:
    """Tell whether a recording ever shows a body, named by its column: cars, then the ball."""
    return bool(shown(recording, BALL if column == cars else column).any())


def situation(
    track: Track, place: int, path: Path, start: int, target: int, near: np.ndarray, since_jump: float
) -> str:
    """Name the situation of a window up to one of its ends.

    Args:
        track: The track.
        place: Which of its bodies.
        path: What the simulation did from the start.
        start: First moment of the window.
        target: Last moment of it.
        near: `near_others` of this body, `(rows,)` bool.
        since_jump: Ticks since the car's last jump or dodge was pressed.
    """
    body = track.bodies[place]
    ticks = min(int(np.ceil(track.times[target] - track.times[start])), len(path.values) - 1)
    touched = near[track.rows[start] : track.rows[target] + 1].any()
    if body == BALL:
        if touched:
            return BALL_TOUCHED
        if track.values[start, place, 2] < _LOW:
            return BALL_GROUND
        recorded = track.values[start : target + 1, place]
        hit = _hits(recorded, np.diff(track.times[start : target + 1])) or _hits(
            path.values[: ticks + 1, place], np.ones(ticks)
        )
        return BALL_BOUNCED if hit else BALL_AIR
    if touched:
        return CAR_CONTACT
    wheels = path.wheels[: ticks + 1, place]
    if wheels[0] < 3 and (path.jumped[place] or since_jump < _TIMER_TICKS) and since_jump < 2 * _TIMER_TICKS:
        return CAR_JUMPED
    recorded = track.values[start : target + 1, place]
    if (wheels == 0).all():
        hit = _hits(recorded, np.diff(track.times[start : target + 1]), _CAR_KICK)
        return CAR_LEAVES if hit else CAR_AIR
    if (wheels >= 3).all():
        upright = (recorded[:, ROTATION][:, 8] > STANDING_LEAST_UP).all()
        return CAR_GROUND if upright and (recorded[:, 2] < STANDING_MOST_Z).all() else CAR_WALL
    return CAR_LEAVES


_CAR_KICK: Final = 60.0  # uu/s in a tick: boost adds 9, a jump's push 12, a dodge up to 500


def _hits(values: np.ndarray, apart: np.ndarray, kick: float = _BOUNCE) -> bool:
    """Tell whether a path of `(n, 18)` has a kink; `apart` is `(n - 1,)` ticks."""
    change = np.diff(values[:, VELOCITY], axis=0)
    change[:, 2] += GRAVITY * TICK_SECONDS * apart
    return bool((np.linalg.norm(change, axis=1) > kick * np.maximum(apart / 2, 1)).any())


def _last_shown(there: np.ndarray) -> np.ndarray:
    """Return for each row the latest that shows something, the first that does before that."""
    rows = np.where(there, np.arange(len(there)), -1)
    latest = np.maximum.accumulate(rows) if len(rows) else rows
    first = int(np.argmax(there)) if there.any() else 0
    return np.where(latest < 0, first, latest)
