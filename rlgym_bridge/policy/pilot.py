"""Fly to a ball in the air by hand: the teacher of aerials, and the player that solves them in tests.

MatchState -> the shortest flight to the ball that boost can push -> controls that turn the nose there
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.game import BALL_RADIUS, CONTROL_NAMES, GRAVITY
from rlgym_bridge.state import MatchState

_FLIGHTS: Final = np.arange(0.3, 3.0, 0.1)[:, None]  # s, among which a flight to the ball is chosen
_PUSH: Final = 1000.0  # uu/s^2 that a flight may ask of boost and throttle, which give 1,058 [RS]
_LEAST_HEIGHT: Final = 350.0  # uu, of a ball that is worth a flight when it is met
_LONGEST: Final = 2.6  # s
_LONG: Final = 0.8  # s, of a flight in which a second jump pays
_LEAST_BOOST: Final = 10.0
_AHEAD: Final = 0.8  # cosine of the bearing of a ball that a car on the ground takes off for
_ROLL_OFF: Final = 0.5  # of the stick, for each rad/s of roll
_TURN: Final = 3.0  # of the stick, for each rad off
_BRAKE: Final = 0.6  # of the stick, for each rad/s


class Flights(NamedTuple):
    """The shortest flight of each car to the ball."""

    push: np.ndarray  # (matches, cars, 3) uu/s^2, what boost has to add to gravity
    seconds: np.ndarray  # (matches, cars)
    possible: np.ndarray  # (matches, cars) bool


def plan_flights(state: MatchState) -> Flights:
    """Plan a flight of each car to the ball, as if both flew freely; the ball falls as the cars do."""
    gap = state.ball_position[:, None] - (0, 0, BALL_RADIUS / 2) - state.car_position
    drift = state.ball_linear_velocity[:, None] - state.car_linear_velocity
    pushes = 2 * (gap[:, :, None] + drift[:, :, None] * _FLIGHTS) / _FLIGHTS**2
    enough = np.linalg.norm(pushes, axis=-1) < _PUSH
    first = np.where(enough.any(2), enough.argmax(2), len(_FLIGHTS) - 1)
    push = np.take_along_axis(pushes, first[..., None, None], 2)[:, :, 0]
    return Flights(push, _FLIGHTS[first, 0], enough.any(2))


def worth_flying(state: MatchState, flights: Flights) -> np.ndarray:
    """Return which cars fly or take off, `(matches, cars)` bool: those nearest to a high ball in reach."""
    seconds = flights.seconds
    rise = state.ball_linear_velocity[:, None, 2] * seconds - GRAVITY * seconds**2 / 2
    high = state.ball_position[:, None, 2] + rise > _LEAST_HEIGHT
    gap = state.ball_position[:, None] - state.car_position
    flat = gap[..., :2] / np.maximum(np.linalg.norm(gap[..., :2], axis=-1, keepdims=True), 1.0)
    ahead = (flat * state.car_rotation[..., :2, 0]).sum(-1) > _AHEAD
    stands = (state.car_on_ground > 0) & (state.car_rotation[..., 2, 2] > 0.9) & ahead
    flies = (state.car_on_ground == 0) & (state.car_has_jumped > 0) & (state.car_is_flipping == 0)
    far = np.linalg.norm(gap, axis=-1)
    nearest = np.zeros(far.shape, bool)
    for team in (slice(0, state.layout.blue), slice(state.layout.blue, None)):
        if far[:, team].shape[1]:
            nearest[:, team] = far[:, team] == far[:, team].min(1, keepdims=True)
    ready = (state.car_boost_amount > _LEAST_BOOST) & (state.car_is_demoed == 0) & nearest
    return np.asarray(flights.possible & (seconds < _LONGEST) & high & ready & (stands | flies))


def fly(state: MatchState, flights: Flights) -> np.ndarray:
    """Return control vectors that jump, turn the nose along the push, and boost, `(matches, cars, 8)`."""
    wanted = flights.push / np.maximum(np.linalg.norm(flights.push, axis=-1, keepdims=True), 1.0)
    front, right, up = np.einsum("ncij,nci->jnc", state.car_rotation, wanted)
    roll_rate, pitch_rate, yaw_rate = np.einsum(
        "ncij,nci->jnc", state.car_rotation, state.car_angular_velocity
    )
    controls = {
        "pitch": _TURN * np.arctan2(up, front) + _BRAKE * pitch_rate,
        "yaw": _TURN * np.arctan2(right, front) - _BRAKE * yaw_rate,
        "roll": _ROLL_OFF * roll_rate,
        "jump": (state.car_on_ground > 0) | (state.car_is_jumping > 0),
        "boost": front > 0.6,
    }
    controls["throttle"] = controls["boost"]
    again = _jumps_again(state, flights)
    for name in ("pitch", "yaw", "roll"):  # without them it is no dodge
        controls[name] = np.where(again, 0, controls[name])
    controls["jump"] |= again
    rows = np.zeros((*front.shape, len(CONTROL_NAMES)), np.float32)
    for name, values in controls.items():
        rows[..., CONTROL_NAMES.index(name)] = values
    return np.clip(rows, -1, 1)


def _jumps_again(state: MatchState, flights: Flights) -> np.ndarray:
    """Return which cars jump a second time, `(matches, cars)` bool: on a long way up, with the roof up."""
    free = (state.car_can_flip > 0) & (state.car_is_jumping == 0) & (state.car_is_holding_jump == 0)
    climbs = (flights.seconds > _LONG) & (flights.push[..., 2] > 0.6 * _PUSH)
    return np.asarray(
        free
        & climbs
        & (state.car_on_ground == 0)
        & (state.car_has_jumped > 0)
        & (state.car_rotation[..., 2, 2] > 0.4)
    )


_COUNTS: Final = {
    "throttle": 0.3, "steer": 0.02, "pitch": 1.0, "yaw": 1.0, "roll": 0.5, "jump": 3.0, "boost": 2.0,
    "handbrake": 0.01,
}  # fmt: skip
"""Weights of the squared difference in each control, by which the nearest row of a table is found."""


def nearest_rows(controls: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the rows of a table `(rows, 8)` that are nearest to control vectors `(..., 8)`: `(...)` int."""
    weights = np.array([_COUNTS[name] for name in CONTROL_NAMES])
    return np.asarray(((controls[..., None, :] - table) ** 2 * weights).sum(-1).argmin(-1))


class Pilot:
    """A policy that flies to the ball with every car, wherever it is."""

    def reset(self, cars: Sequence[int], seed: int | None = None) -> None:
        """Take the cars, by their place in the state."""
        self._cars = list(cars)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return control vectors, `(matches, cars, 8)`."""
        return fly(state, plan_flights(state))[:, self._cars]
