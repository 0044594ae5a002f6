"""Define what the bot sees, and what it is rewarded for.

`train.toml` names this module, and `bot.py` needs it in matches. It needs nothing but numpy and rlgym_bridge.
"""

import numpy as np

from rlgym_bridge import ComponentSpec, RelativeObs
from rlgym_bridge.components.rewards import (
    GoalReward,
    TouchReward,
    VelocityBallToGoalReward,
    VelocityPlayerToBallReward,
    WeightedSum,
)


class MyObs(RelativeObs):
    """See what RelativeObs sees, and how fast the car is."""

    def build_batch(self, state, cars=None):
        """Return `(matches, cars, numbers)` float32 of all matches at once; in a real match there is one."""
        seen = super().build_batch(state, cars)
        own = list(range(state.layout.cars) if cars is None else cars)
        speed = np.linalg.norm(state.car_linear_velocity[:, own], axis=-1, keepdims=True)
        return np.concatenate([seen, speed / 2300], axis=-1)

    def get_obs_space(self, agent):
        """Say how many numbers there are: one more."""
        kind, size = super().get_obs_space(agent)
        return kind, size + 1 if size > 0 else size  # it is not known before the first match

    def names(self, blue, orange, car=0):
        """Name the numbers, for `rlgym-bridge parity`."""
        return (*super().names(blue, orange, car), "speed")


class AimReward(VelocityBallToGoalReward):
    """The speed that a touch adds to the ball, towards the opponents' goal, in 6000 uu/s.

    A touch towards the own goal counts as much below 0.
    """

    def reward_batch(self, before, after, terminated, truncated):
        """Return `(matches, cars)` float32 for one step of all matches."""
        speed = super().reward_batch(before, after, terminated, truncated)
        gain = speed - super().reward_batch(before, before, terminated, truncated)
        return gain * (after.car_ball_touches > 0)


def obs(settings):
    """Return what training and matches make the observation of."""
    return ComponentSpec.of(MyObs, zero_padding=None, ball_ahead=settings.ball_ahead or None)


def reward(settings):
    """Return what is rewarded, each part times its weight in `train.toml`."""
    return WeightedSum(
        [
            (GoalReward(), settings.goal),
            (TouchReward(), settings.touch),
            (TouchReward(strength=True), settings.touch_strength),
            (VelocityPlayerToBallReward(), settings.velocity_to_ball),
            (VelocityBallToGoalReward(), settings.velocity_ball_to_goal),
            (AimReward(), settings.my["aim"]),
        ]
    )
