"""The moments of a recording as arrays: where each body was, when, and which inputs drove it.

Recording -> timeline (when each row was, in ticks) -> Track (bodies at their times) -> rollouts, errors
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, STANDING_LEAST_UP, STANDING_MOST_Z, TICK_SECONDS
from rlgym_bridge.recording.recording import Inputs, Recording

BALL: Final = -1
"""Stands for the ball where a body is named by the row of its car."""

TRIAL: Final = 2
"""Moments of a track that is a trial: its beginning and its end, and nothing between."""

POSITION: Final = slice(0, 3)  # uu
VELOCITY: Final = slice(3, 6)  # uu/s
SPIN: Final = slice(6, 9)  # rad/s, world axes
ROTATION: Final = slice(9, 18)  # columns forward, right, up, in C order
UP_Z: Final = 17  # z of a car's up axis
BODY_SIZE: Final = 18
"""Numbers of a body: position, velocity, angular velocity, rotation matrix."""
FROM_STATE: Final = np.r_[0:3, 12:18, 3:12]
"""The places of these in a body's numbers of a state."""

_BOOST: Final = CONTROL_NAMES.index("boost")
_ALL_ALIKE: Final = 0.25  # share of the draws in which all inputs change equally soon after rows
_JUST_BEFORE: Final = 1e-6  # ticks: a row that is due counts as seen


@dataclass(frozen=True)
class Track:
    """Some bodies through one segment, at moments that show all of them."""

    bodies: tuple[int, ...]  # rows of the cars, and `BALL`
    rows: np.ndarray  # `(n,)` rows of the recording
    times: np.ndarray  # `(n,)` float64 ticks, rising; whole numbers where the clock allows it
    values: np.ndarray  # `(n, bodies, 18)` float64, see `BODY_SIZE`

    def nearest(self, time: np.ndarray) -> np.ndarray:
        """Return which moments lie nearest to times `(n,)`, as indices `(n,)`."""
        after = np.clip(np.searchsorted(self.times, time), 1, len(self.times) - 1)
        closer = np.abs(self.times[after] - time) < np.abs(self.times[after - 1] - time)
        return np.where(closer, after, after - 1)


def body_values(recording: Recording, body: int, rows: np.ndarray) -> np.ndarray:
    """Return `(rows, 18)` float64 of one body at some rows of a recording."""
    layout = recording.state.layout
    first = layout.column("ball_position") if body == BALL else layout.column("position", car=body)
    values: np.ndarray = recording.state.buffer[np.ix_(rows, first + FROM_STATE)].astype(float)
    if not values[:, ROTATION].any():  # not recorded: any will do for a ball
        values[:, ROTATION] = np.eye(3).ravel()
    return values


def moves(recording: Recording, body: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how a body moves from row to row.

    RocketSim and the game move a body by the velocity that it has after the tick; so a step of several ticks
    goes by the mean of the two velocities and half a tick more of what changed.

    Returns:
        `(rows - 1, 3)` float64 each: the velocity between two rows; how far the body went, without that half
        tick; and the change of velocity.
    """
    values = body_values(recording, body, rows)
    change = np.diff(values[:, VELOCITY], axis=0)
    mean = (values[1:, VELOCITY] + values[:-1, VELOCITY]) / 2
    moved = np.diff(values[:, POSITION], axis=0) - change * TICK_SECONDS / 2
    if body != BALL:  # a car on the floor shows a vertical speed that moves it nowhere
        floor = stands(values[1:])
        mean[floor, 2] = moved[floor, 2] = 0.0
    return mean, moved, change


def knows_spin(recording: Recording, body: int) -> bool:
    """Tell whether angular velocities of a body were recorded: somebody turns at some time."""
    state = recording.state
    spin = state.ball_angular_velocity if body == BALL else state.car_angular_velocity[:, body]
    return bool(spin[shown(recording, body)].any())


def turning(rotation: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return `(n, 3)` rad/s from orientations `(n, 9)`: how a body turned since the moment before."""
    turn = rotation.reshape(-1, 3, 3)
    step = turn[1:] @ turn[:-1].transpose(0, 2, 1)
    skew = step - step.transpose(0, 2, 1)
    axis = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]])
    sine = np.linalg.norm(axis, axis=0) / 2
    angle = np.arctan2(sine, (np.trace(step, axis1=1, axis2=2) - 1) / 2)
    spin = (axis / 2 * angle / np.maximum(sine, 1e-12) / (np.diff(times) * TICK_SECONDS)).T
    if len(rotation) <= TRIAL:  # from its beginning to its end it turned as its inputs had it
        return np.zeros((len(rotation), 3))
    return np.concatenate([spin[:1], spin])


def stands(values: np.ndarray) -> np.ndarray:
    """Tell whether cars `(..., 18)` are on their wheels on the floor, `(...)` bool."""
    return np.asarray(
        (values[..., 2] < STANDING_MOST_Z) & (values[..., ROTATION][..., 8] > STANDING_LEAST_UP)
    )


def shown(recording: Recording, body: int, rows: slice = slice(None)) -> np.ndarray:
    """Return `(rows,)` bool: which of some rows, or of all, show a body; a demolished car is not shown."""
    if body == BALL:
        return recording.ball_shown[rows]
    return recording.car_shown[rows, body] & ~(recording.state.car_is_demoed[rows, body] > 0)


def make_tracks(recording: Recording, times: np.ndarray, bodies: Sequence[int]) -> list[Track]:
    """Return the tracks of some bodies, one for each run of rows in which none of them is gone.

    Args:
        recording: The recording.
        times: `(rows, bodies of the recording)` ticks, cars first, then the ball: see `timeline`.
        bodies: Which; all of them must be shown in a row for it to count.
    """
    there = np.logical_and.reduce([shown(recording, body) for body in bodies])
    demoed = [recording.state.car_is_demoed[:, body] > 0 for body in bodies if body != BALL]
    gone = np.logical_or.reduce(demoed) if demoed else np.zeros(len(there), bool)
    run = np.cumsum(np.diff(gone.astype(np.int8), prepend=0) != 0)
    without_spin = [place for place, body in enumerate(bodies) if not knows_spin(recording, body)]
    tracks = []
    for segment in recording.segments():
        for number in np.unique(run[segment]):
            rows = np.flatnonzero(there[segment] & (run[segment] == number)) + segment.start
            own = times[rows, bodies[0]]
            rows = rows[np.diff(np.maximum.accumulate(own), prepend=-np.inf) > 0]
            if len(rows) >= TRIAL:
                values = np.stack([body_values(recording, body, rows) for body in bodies], axis=1)
                for place in without_spin:
                    values[:, place, SPIN] = turning(values[:, place, ROTATION], times[rows, bodies[0]])
                tracks.append(Track(tuple(bodies), rows, times[rows, bodies[0]], values))
    return tracks


class Drive:
    """The inputs of one car through a recording, by time.

    Args:
        recording: The recording.
        car: Its row.
        times: `(rows,)` ticks of the rows.
        lag: Ticks by which inputs act late, for all rows or `(rows,)`. With lag L the controls of a row
            drive the tick that begins L ticks after it; with `Inputs.APPLIED` and L 0 the tick that ends in
            it.
    """

    def __init__(self, recording: Recording, car: int, times: np.ndarray, lag: float | np.ndarray) -> None:
        self.rows = recording.state.car_controls[:, car].astype(float)
        # Row k of applied inputs drove the tick before it; of sent ones, with lag 0, the tick after it.
        self._back = 0.0 if recording.inputs is Inputs.APPLIED else 1.0
        self._burns = _burns(recording.state.car_boost_amount[:, car])
        self._segments = {int(recording.segment[one.start]): one for one in recording.segments()}
        self._of_row = recording.segment
        self._early: np.ndarray | None = None
        self._held = 1
        self.lag, self._times, self._acts = lag, times, times + lag
        for segment in self._segments.values():
            # Where the lag falls, the newest row that is due counts.
            self._acts[segment] = np.maximum.accumulate(self._acts[segment])

    def drawn(self, random: np.random.Generator, held: int, late: int, known: int = 0) -> "Drive":
        """Return the same inputs, each control of which changes at any tick since the row before it.

        In a quarter of the draws all controls change equally soon after all rows, as some recorders have it.

        Args:
            random: Draws the ticks.
            held: Ticks for which a recorder holds inputs; 1 if it does not.
            late: Ticks by which the lag may be too small: changes that it is fitted to come before rows.
            known: Ticks before each row in which nothing changes.
        """
        other = copy(self)
        gaps = np.ones(len(self._times))
        for segment in self._segments.values():
            gaps[segment.start + 1 : segment.stop] = np.round(np.diff(self._acts[segment]))
        gaps = np.maximum(gaps - known, held)
        if (gaps > 1).any():
            share = random.random((len(gaps), 8)) if random.random() >= _ALL_ALIKE else random.random((1, 1))
            drawn = np.floor(share * (gaps + late)[:, None]) - late
            other._early = np.where(gaps[:, None] > 1, drawn, 0).astype(np.int16)
            other._held = held
        return other

    def during(self, row: int, ends: np.ndarray) -> np.ndarray:
        """Return the controls of ticks.

        Args:
            row: Any row of the segment.
            ends: `(n,)` when the ticks end.

        Returns:
            (n, 8) controls; the first row's where none is old enough.
        """
        segment = self._segments[int(self._of_row[row])]
        start, times = segment.start, self._times[segment]
        due = ends - self._back + _JUST_BEFORE
        found = np.clip(np.searchsorted(self._acts[segment], due, side="right") - 1, 0, len(times) - 1)
        controls = self.rows[start + found]
        if self._early is not None:
            controls = self.rows[start + np.maximum(found - 1, 0)]
            for later in range(self._held + 1):
                coming = np.minimum(found + later, len(times) - 1)
                acts = self._acts[segment][coming][:, None] - self._early[start + coming]
                controls = np.where(acts <= due[:, None], self.rows[start + coming], controls)
        if self._burns is not None:  # what was in the tank before the tick
            before = np.searchsorted(times, ends - 1 + _JUST_BEFORE, side="right") - 1
            controls[:, _BOOST] *= self._burns[start + before.clip(0, len(times) - 1)]
        return np.asarray(controls)


def _burns(amount: np.ndarray) -> np.ndarray | None:
    """Tell in which rows a tank holds something; None where nobody knows."""
    if not amount.any():
        return None
    held = amount > 0
    burns = held.copy()
    if (amount == np.round(amount)).all():  # whole numbers: a 0 may be what is left of the last one
        for back in range(1, 3):
            burns[back:] |= held[:-back]
    return burns
