"""Find where a ball lands, for the marker on the page."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from rlgym_bridge.game import BALL_REST_Z, BOOST_CONSUMPTION, DODGE_DEADZONE, TICKS_PER_SECOND
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, Simulator, make_simulator
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.web.frames import NO_LANDING

_LANDING_TICKS: Final = 4 * TICKS_PER_SECOND  # of the forecast
_ON_FLOOR_Z: Final = BALL_REST_Z + 8.0  # uu
_BOUNCE_Z: Final = 300.0  # uu, below which a ball that turns upwards between two points has met the floor
_EVERY: Final = 4  # ticks between two points of the forecast
_ROWS: Final = 8  # of a recording, in which the landing stays as it was


def find_landing(simulator: Simulator, state: MatchState) -> Sequence[float]:
    """Return where the ball of a simulator's only match meets the floor next if nobody touches it.

    These are x, y, z in uu and the seconds until then; NaN if it lies there, or does not come down within 4
    s.
    """
    z, speed = state.ball_position[0, 2], abs(state.ball_linear_velocity[0, 2])
    if z < _ON_FLOOR_Z and speed < 100.0:
        return NO_LANDING
    path = simulator.forecast_ball(0, _LANDING_TICKS, _EVERY)
    height, rises = path[:, 2], path[:, 5] > 0.0
    bounces = rises[1:] & ~rises[:-1] & (height[1:] < _BOUNCE_Z)
    low = np.flatnonzero(bounces | (height[1:] < _ON_FLOOR_Z)) + 1
    if not low.size:
        return NO_LANDING
    first = int(low[0])
    x, y = path[first, :2].tolist()
    return (x, y, 0.0, (first + 1) * _EVERY / TICKS_PER_SECOND)


class FallingBalls:
    """Forecasts the balls of a recording; of the game modes only Soccar's ball is known."""

    def __init__(self, mode: str) -> None:
        self._simulator: Simulator | None = None
        if mode == "Soccar":
            with suppress(ImportError, OSError):  # without an engine or its meshes nothing is marked
                self._simulator = make_simulator(DEFAULT_SIMULATOR, 1, 0, 0)
        self._latest: tuple[int, Sequence[float]] = (-_ROWS, NO_LANDING)

    def landing(self, state: MatchState, row: int) -> Sequence[float]:
        """Return where the ball of a row lands, or of a row shortly before it; see `find_landing`."""
        if self._simulator is None or 0 <= row - self._latest[0] < _ROWS:
            return self._latest[1]
        ball = MatchState(0, 0, buffer=whole_state(state).buffer[:, : MatchState(0, 0).layout.size].copy())
        try:
            self._simulator.put([0], ball)
        except ValueError:  # a number that no game has
            return NO_LANDING
        self._latest = (row, find_landing(self._simulator, ball))
        return self._latest[1]


def whole_state(state: MatchState) -> MatchState:
    """Return a copy of a recorded state in which what was not recorded is as usual."""
    layout = state.layout
    whole = MatchState(layout.blue, layout.orange, buffer=state.buffer.copy())
    usuals = {"gravity": 1.0, "boost_consumption": BOOST_CONSUMPTION, "dodge_deadzone": DODGE_DEADZONE}
    for name, usual in usuals.items():
        view = getattr(whole, name)
        view[view == 0.0] = usual
    for rotation in (whole.ball_rotation, whole.car_rotation):
        rotation[~rotation.any((-1, -2))] = np.eye(3)
    whole.ball_known[:] = whole.car_known[:] = 1
    whole.car_player_id[:] = np.arange(layout.cars)
    whole.car_bump_victim[:] = -1
    return whole
