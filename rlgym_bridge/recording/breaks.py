"""Where a recording does not go on from one row to the next."""

from typing import Final

import numpy as np

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.state import MatchState

_HOLE_TICKS: Final = 120  # no bridge is longer: the clock's own limit for lost packets
_JUMP: Final = 100.0  # uu that nothing moves beside its own speed, save who puts it there
_JUMP_SPEED: Final = 1500.0  # uu/s that collisions may add in no time: a jump's allowance grows with the time


def breaks(state: MatchState, tick: np.ndarray, ball_shown: np.ndarray, car_shown: np.ndarray) -> np.ndarray:
    """Return which rows do not follow from the row before: `(rows,)` bool, False for the first.

    That is where time falls or leaps, where ball or cars are put elsewhere, and where a car is demolished,
    respawns or changes.

    Args:
        state: The rows.
        tick: `(rows,)`, game ticks.
        ball_shown: `(rows,)` bool.
        car_shown: `(rows, cars)` bool.
    """
    found = np.zeros(len(tick), bool)
    if len(tick) < 2:
        return found
    steps = np.diff(tick)
    found[1:] |= (steps <= 0) | (steps > _HOLE_TICKS)
    seconds = np.clip(steps, 1, _HOLE_TICKS) / TICKS_PER_SECOND
    found[1:] |= _put(state.ball_position, state.ball_linear_velocity, ball_shown, seconds)
    for car in range(state.layout.cars):
        position, velocity = state.car_position[:, car], state.car_linear_velocity[:, car]
        shown = car_shown[:, car]
        found[1:] |= _put(position, velocity, shown, seconds) | (shown[1:] != shown[:-1])
        identity = state.car_player_id[:, car]
        found[1:] |= identity[1:] != identity[:-1]
    return found


def _put(position: np.ndarray, velocity: np.ndarray, shown: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    moved = position[1:] - position[:-1]
    fastest = np.maximum(np.linalg.norm(velocity[1:], axis=1), np.linalg.norm(velocity[:-1], axis=1))
    allowed = (fastest + _JUMP_SPEED) * seconds + _JUMP
    far: np.ndarray = (np.linalg.norm(moved, axis=1) > allowed) & shown[1:] & shown[:-1]
    return far
