"""Find where a ball lands, for the marker on the page."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rlgym_bridge.game import BALL_REST_Z, TICKS_PER_SECOND
from rlgym_bridge.sim.simulator import Simulator
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.web.frames import NO_LANDING

_LANDING_TICKS: Final = 4 * TICKS_PER_SECOND  # of the forecast
_ON_FLOOR_Z: Final = BALL_REST_Z + 8.0  # uu
_BOUNCE_Z: Final = 300.0  # uu, below which a ball that turns upwards between two points has met the floor
_EVERY: Final = 4  # ticks between two points of the forecast


def find_landing(simulator: Simulator, state: MatchState) -> Sequence[float]:
    """Return where the ball meets the floor next if nobody touches it.

    Args:
        simulator: Of one match.
        state: Its state.

    Returns:
        x, y, z in uu and the seconds until then; NaN where the ball lies on the floor, or does not come down
        within four seconds.
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
