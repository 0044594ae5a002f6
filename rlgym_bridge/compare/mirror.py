"""Turn a match around, so that the teams change sides."""

import numpy as np

from rlgym_bridge.derived_fields import derive
from rlgym_bridge.state import CAR_FIELDS, MatchState


def turn(state: MatchState) -> MatchState:
    """Return matches of equal teams turned by 180 degrees about z, blue's cars orange and orange's blue."""
    half = state.layout.blue
    turned = state.copy()
    signs = np.array([-1, -1, 1], np.float32)
    order = [*range(half, 2 * half), *range(half)]
    for one in CAR_FIELDS:
        if one.name not in ("team", "player_id"):
            getattr(turned, "car_" + one.name)[:] = getattr(state, "car_" + one.name)[:, order]
    bumped = turned.car_bump_victim
    bumped[:] = np.where(bumped >= 0, (bumped + half) % (2 * half), -1)
    for name in ("ball_", "car_"):
        for part in ("position", "linear_velocity", "angular_velocity"):
            getattr(turned, name + part)[:] *= signs
        getattr(turned, name + "rotation")[:] *= signs[:, None]
    turned.pad_timer[:] = state.pad_timer[:, ::-1]
    turned.score[:] = state.score[:, ::-1]
    derive(turned)
    return turned
