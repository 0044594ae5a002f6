"""Noise limits: how far off a median error may be by the noise of a recording and of the simulation alone.

Where a recording shows the exact state of every tick, RocketSim has to follow it as well as it follows
itself. So its errors are held against that, and not against the tolerances, which come from rounded
recordings of 2018.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.block_bootstrap import blocks_of, median_interval
from rlgym_bridge.compare.findings.tolerances import LEAST_WINDOWS, SHOWS, tolerance
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import BALL, TRIAL, VELOCITY, body_values, moves, shown
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import BALL_TOUCHED, CAR_CONTACT, HORIZONS
from rlgym_bridge.game import CAR_MAX_SPEED, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import TimeBase

_EXACT: Final = 0.01
"""uu: three of four steps of a tick are as near to what velocities say, in all eight captures of the game of
2026, 0.006 at most; in a table of 2018 at 120 rows a second they are not, 0.034."""

_STEPS: Final = 40  # of a body that tell
_MOVES: Final = 10.0  # uu/s: what is slower tells nothing
_CAPPED: Final = 0.99 * CAR_MAX_SPEED  # uu/s: from there on the game moves a car by more than its speed
_NOISES: Final = 3.0  # of a step, that a median error may have from them alone


def measure_noise(scenes: Sequence[TimedRecording]) -> float | None:
    """Return by how much positions differ from velocities from tick to tick, in uu, the most of recordings.

    None where one leaves ticks out, has an uncertain clock, or shows no exact states.
    """
    noises = [_noise(scene) for scene in scenes]
    known = [noise for noise in noises if noise is not None]
    return max(known) if known and len(known) == len(noises) else None


def limit_median(name: str, column: int, floor: Errors, noise: float | None) -> float:
    """Return the largest median position error that is no gap, in uu.

    It is the tolerance where states are not exact, where the floor has too few windows to say more, and where
    bodies meet: a hit a little off goes elsewhere.

    Args:
        name: One of `windows.SITUATIONS`.
        column: Which horizon.
        floor: Errors of RocketSim against itself.
        noise: From `measure_noise`.
    """
    here = floor.names[:, column] == name
    if noise is None or name in (BALL_TOUCHED, CAR_CONTACT) or here.sum() < LEAST_WINDOWS:
        return tolerance(name, HORIZONS[column])
    _, high = median_interval(floor.position[here, column], blocks_of(floor, column, here))
    grown = _NOISES * noise * float(np.sqrt(1 + HORIZONS[column] / TICKS_PER_SECOND))
    return max(SHOWS, grown, high)


def _noise(scene: TimedRecording) -> float | None:
    clock = scene.timeline.clock
    if scene.recording.clock is TimeBase.FRAMES or scene.unseen or clock.wavers or not clock.on_ticks:
        return None
    medians = []
    for body in scene.bodies:
        there = scene.recording.segment[shown(scene.recording, body)]
        if len(there) and np.median(np.unique(there, return_counts=True)[1]) <= TRIAL:
            return None  # its last speeds are not measured in all directions, its place is rounded
        off = _steps_off(scene, body)
        if len(off) >= _STEPS:
            if np.percentile(off, 75) > _EXACT:
                return None
            medians.append(float(np.median(off)))
    return max(medians, default=None)


def _steps_off(scene: TimedRecording, body: int) -> np.ndarray:
    """Return how far a body is from where its velocity moves it in a tick, `(steps,)` uu."""
    recording, column = scene.recording, body if body != BALL else -1
    mean, moved, _ = moves(recording, body, np.arange(len(recording.tick)))
    ticks = np.diff(scene.timeline.times[:, column])
    there = shown(recording, body)
    speed = np.linalg.norm(body_values(recording, body, np.arange(len(ticks)))[:, VELOCITY], axis=1)
    tells = there[1:] & there[:-1] & (np.diff(recording.segment) == 0) & (np.abs(ticks - 1) < _EXACT)
    tells &= (speed > _MOVES) & ((speed < _CAPPED) | (body == BALL))
    return np.asarray(np.linalg.norm(moved - mean * (ticks * TICK_SECONDS)[:, None], axis=1)[tells])
