"""Reward cars that hurry to the ball of a kickoff."""

import numpy as np

from rlgym_bridge.components.native_form import with_native_form
from rlgym_bridge.components.reward_base import BatchReward
from rlgym_bridge.components.reward_terms import aim_at_ball, find_alive, project
from rlgym_bridge.game import CAR_MAX_SPEED
from rlgym_bridge.state import MatchState

_STILL = 1.0  # uu, uu/s: the ball of a kickoff lies on the centre spot, and nothing else does for a step


class KickoffSpeedReward(BatchReward):
    """The signed square of a car's speed towards the ball of a kickoff, as a share of 2300 uu/s: -1 to 1.

    0 once the ball has moved. It is squared because speeds themselves add up to the way to the ball, which is
    the same for a slow car.
    """

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return -1 to 1 for every car, `(N, cars)`."""
        rewards = np.zeros(after.car_is_demoed.shape, np.float32)
        off_centre = np.abs(after.ball_position[:, :2]).max(1)
        still = (off_centre < _STILL) & (np.abs(after.ball_linear_velocity).max(1) < _STILL)
        if still.any():
            speeds = project(after.car_linear_velocity, aim_at_ball(after)) * find_alive(after)
            rewards[still] = (speeds * np.abs(speeds))[still] / CAR_MAX_SPEED**2
        return rewards
