"""Fill the fields of a state that follow from its others."""

import numpy as np

from rlgym_bridge.game import DODGE_DEADLINE_SECONDS, FLIP_TORQUE_SECONDS, GOAL_THRESHOLD_Y
from rlgym_bridge.state import MatchState


def derive(state: MatchState) -> None:
    """Fill the fields that follow from others, in place, for all matches at once.

    The formulas are RLGym's properties of `Car` and `GameState`; `packets/decoder.py` has them a second
    time for single numbers, and a test holds the two equal.
    """
    np.greater(np.abs(state.ball_position[:, 1]), GOAL_THRESHOLD_Y, out=state.goal_scored)
    np.greater_equal(state.car_wheels_with_contact.sum(-1), 3, out=state.car_on_ground)
    np.greater(state.car_demo_respawn_timer, 0, out=state.car_is_demoed)
    np.greater(state.car_boost_active_time, 0, out=state.car_is_boosting)
    np.greater(state.car_supersonic_time, 0, out=state.car_is_supersonic)
    flipped = state.car_has_flipped > 0
    # float32(0.65) is below 0.65, so <= is RLGym's < in double precision.
    turning = state.car_flip_time <= np.float32(FLIP_TORQUE_SECONDS)
    np.logical_and(flipped, turning, out=state.car_is_flipping)
    in_time = state.car_air_time_since_jump < np.float32(DODGE_DEADLINE_SECONDS)
    has_flip = in_time & ~(flipped | (state.car_has_double_jumped > 0))
    state.car_has_flip[:] = has_flip
    held_down = (state.car_on_ground + state.car_is_holding_jump) > 0
    np.greater(has_flip, held_down, out=state.car_can_flip)
