"""Rewards of cars in the air: touching a ball high up, flying to a high ball, being off the ground."""

import numpy as np

from rlgym_bridge.components.native_form import with_native_form
from rlgym_bridge.components.reward_base import BatchReward
from rlgym_bridge.components.reward_terms import aim_at_ball, find_alive, find_touches, project
from rlgym_bridge.game import BALL_RADIUS, BALL_REST_Z, CAR_MAX_SPEED, CEILING_Z
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_number


class AirTouchReward(BatchReward):
    """The ball's height after a step with a touch: 0 for a ball on the floor, 1 under the ceiling."""

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        height = (after.ball_position[:, 2:] - BALL_REST_Z) / (CEILING_Z - BALL_RADIUS - BALL_REST_Z)
        rewards: np.ndarray = find_touches(after) * np.clip(height, 0.0, 1.0)
        return rewards


class FlyToBallReward(BatchReward):
    """A flying car's speed towards a high ball, as a share of 2300 uu/s: more the higher the car is.

    The share is multiplied by the car's height over the ball's, 1 at most. It is 0 for a car that has three
    wheels down or flies away from the ball, and for a ball that is not high.

    Args:
        lowest: Height above which a ball is high, uu.

    Raises:
        ValueError: `lowest` is not between the ball's radius and the ceiling.
    """

    def __init__(self, lowest: float = 300.0) -> None:
        super().__init__()
        check_number("lowest", lowest, BALL_RADIUS, CEILING_Z, unit="uu")
        self.lowest = lowest

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        ball = after.ball_position[:, 2:]
        flying = (1 - after.car_on_ground) * find_alive(after) * (ball > self.lowest)
        speeds = np.maximum(project(after.car_linear_velocity, aim_at_ball(after)), 0.0)
        climbed = np.clip(after.car_position[..., 2] / np.maximum(ball, BALL_RADIUS), 0.0, 1.0)
        rewards: np.ndarray = flying * climbed * (speeds / CAR_MAX_SPEED)
        return rewards


class InAirReward(BatchReward):
    """1 while fewer than three wheels touch anything, 0 otherwise and while demolished."""

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 or 1 for every car, `(N, cars)`."""
        rewards: np.ndarray = (1 - after.car_on_ground) * find_alive(after)
        return rewards
