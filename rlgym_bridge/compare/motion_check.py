"""Check that bodies are on the field and move as their velocities say, to find wrong columns or units.

A table in metres agrees with itself, and a simulation that begins outside of the field says nothing about the
game; so what cannot be is refused before anything is fitted.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from rlgym_bridge.compare.clock_fit import Timeline, raw_timeline, steps_of
from rlgym_bridge.compare.tracks import (
    BALL,
    LONGEST_STEP,
    POSITION,
    ROTATION,
    SLOW,
    SPIN,
    TRIAL,
    VELOCITY,
    body_values,
    knows_spin,
    moves,
    shown,
    turning,
)
from rlgym_bridge.game import (
    BALL_RADIUS,
    CAR_MAX_ANGULAR_SPEED,
    CAR_MAX_SPEED,
    CEILING_Z,
    GOAL_BACK_Y,
    SIDE_WALL_X,
    STANDING_LEAST_UP,
    STANDING_MOST_Z,
    TICK_SECONDS,
)
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording, TimeBase

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


def check_motion(recording: Recording, timeline: Timeline) -> None:
    """Make sure that bodies are on the field, and move and turn about as their velocities say.

    No clock of a game is wrong by a fifth: then a column, a scale or a unit is another than was thought. Of
    the timeline only that of a replay counts, whose frames say no ticks.

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
    times = (timeline if frames else raw_timeline(recording)).times
    for column in range(recording.state.layout.cars + 1):
        body = column if column < recording.state.layout.cars else BALL
        name = f"{recording.source}: " + ("the ball" if body == BALL else f"car {body}")
        if mapped:
            _check_range(recording, body, name)
        _check_steps(recording, body, name, times[:, column])
        if mapped and body != BALL:
            _check_turns(recording, body, name, times[:, column])
            _check_roof(recording, body, name)
            _check_nose(recording, body, name)


def _check_range(recording: Recording, body: int, name: str) -> None:
    """Refuse places outside of any field, a ball in the floor, cars on a field of metres, too fast spins."""
    values = body_values(recording, body, np.flatnonzero(shown(recording, body)))
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
    if (speeds > 0).any() and np.median(speeds[speeds > 0]) > _FASTEST_SPIN:
        raise ValueError(
            f"{name} turns at {np.median(speeds[speeds > 0]):.3g} rad/s in the median, and nothing turns "
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
    chosen = (went > SLOW * apart) & (np.linalg.norm(mean, axis=1) <= SLOW)
    chosen &= (apart > 0) & (apart < LONGEST_STEP * TICK_SECONDS) & (went < CAR_MAX_SPEED * apart)
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


def _check_roof(recording: Recording, car: int, name: str) -> None:
    """Refuse a car that is as low as on its wheels, and whose roof is not above it."""
    values = body_values(recording, car, np.flatnonzero(shown(recording, car)))
    low = values[:, 2] < STANDING_MOST_Z
    up = values[low][:, ROTATION][:, 8]
    if len(up) > _STEPS and values[:, ROTATION].any() and np.median(up) < _UPRIGHT:
        off = np.degrees(np.arccos(np.median(up).clip(-1, 1)))
        raise ValueError(
            f"{name} is as low as on its wheels, {np.median(values[low, 2]):.1f} uu, with its roof {off:.0f} "
            "degrees off from above in the median; is the quaternion in another order than w, x, y, z, or "
            "are pitch, yaw and roll in another order?"
        )


def _check_nose(recording: Recording, car: int, name: str) -> None:
    """Refuse a car on its wheels that mostly drives otherwise than along its nose."""
    values = body_values(recording, car, np.flatnonzero(shown(recording, car)))
    speed = np.linalg.norm(values[:, VELOCITY], axis=1)
    rolls = (values[:, 2] < STANDING_MOST_Z) & (values[:, ROTATION][:, 8] > STANDING_LEAST_UP)
    rolls &= speed > _ROLLS
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
