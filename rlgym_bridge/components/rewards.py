"""Rewards of cars for one step, for one match or for many at once.

    before, after (N matches each) -> reward_batch -> (N, cars) float32

Every class is an RLGym `RewardFunction`; its dict form and its batch form are one calculation. A car's
speed and facing count nothing while it is demolished.
"""

from typing import Final

import numpy as np

from rlgym_bridge.components.air_rewards import AirTouchReward, FlyToBallReward, InAirReward
from rlgym_bridge.components.kickoff_reward import KickoffSpeedReward
from rlgym_bridge.components.native_form import with_native_form
from rlgym_bridge.components.reward_base import BatchReward, WeightedSum, name_of_bad
from rlgym_bridge.components.reward_terms import (
    aim_at_ball,
    boost_root,
    find_alive,
    find_distances,
    find_touches,
    flies_into_goals,
    make_units,
    project,
    side_signs,
    spread_by_team,
)
from rlgym_bridge.game import (
    BALL_MAX_SPEED,
    CAR_MAX_SPEED,
    GOAL_BACK_Y,
    GOAL_CENTRE_Z,
)
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_number

__all__ = [
    "AirTouchReward", "BatchReward", "BoostKeptReward", "BoostPickedUpReward", "DemolitionReward",
    "FaceBallReward", "FlyToBallReward", "GoalReward", "InAirReward", "KickoffSpeedReward",
    "MateDistanceReward", "SaveReward", "SpeedReward", "TouchReward", "VelocityBallToGoalReward",
    "VelocityPlayerToBallReward", "WeightedSum", "name_of_bad",
]  # fmt: skip

# The goal that blue shoots at, then the one that orange shoots at.
_GOAL_BACKS: Final = np.array([(0, y, GOAL_CENTRE_Z) for y in (GOAL_BACK_Y, -GOAL_BACK_Y)], np.float32)


class GoalReward(BatchReward):
    """1 for each car of the team that scores, -1 for each of the other, on the step of the goal.

    The goal is the step on which `goal_scored` turns true; the side of the ball says whose it is.
    """

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return -1, 0 or 1 for every car, `(N, cars)`."""
        scored = (after.goal_scored > 0) & (before.goal_scored == 0)
        blue_gets = np.where(after.ball_position[:, 1] > 0, 1.0, -1.0) * scored
        rewards: np.ndarray = np.outer(blue_gets, side_signs(after.layout)).astype(np.float32)
        return rewards


class TouchReward(BatchReward):
    """1 for a step with a touch of the ball, however many; 0 without.

    Args:
        strength: Give for a touch the change of the ball's velocity over the step instead, as a share of the
            ball's largest speed, 6000 uu/s: 0 to 2. Gravity and bounces in that step are in it.
    """

    def __init__(self, strength: bool = False) -> None:
        super().__init__()
        self.strength = strength
        self.name = "touch_strength" if strength else "touch"

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 or 1, with `strength` 0 to 2, for every car, `(N, cars)`."""
        touched = find_touches(after)
        if self.strength:
            change = after.ball_linear_velocity - before.ball_linear_velocity
            touched *= np.linalg.norm(change, axis=1, keepdims=True) / BALL_MAX_SPEED
        return touched


class VelocityPlayerToBallReward(BatchReward):
    """A car's speed towards the ball, as a share of 2300 uu/s: -1 (away) to 1."""

    name = "velocity_to_ball"

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return -1 to 1 for every car, `(N, cars)`."""
        speeds = project(after.car_linear_velocity, aim_at_ball(after))
        rewards: np.ndarray = speeds * (find_alive(after) / CAR_MAX_SPEED)
        return rewards


class SpeedReward(BatchReward):
    """A car's speed in any direction, as a share of 2300 uu/s: 0 to 1; 0 while demolished."""

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        speeds = np.sqrt(project(after.car_linear_velocity, after.car_linear_velocity))
        rewards: np.ndarray = speeds * (find_alive(after) / CAR_MAX_SPEED)
        return rewards


class VelocityBallToGoalReward(BatchReward):
    """The ball's speed towards the opponents' goal, as a share of 6000 uu/s: -1 (away) to 1.

    Towards the middle of the net's back, so that a ball that crosses the line still flies towards it. All
    cars of a team get the same.
    """

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return -1 to 1 for every car, `(N, cars)`."""
        to_goals = make_units(_GOAL_BACKS - after.ball_position[:, None])
        shares = project(after.ball_linear_velocity[:, None], to_goals) / BALL_MAX_SPEED
        return spread_by_team(shares, after.layout)


class FaceBallReward(BatchReward):
    """Cosine of the angle between a car's nose and the ball: 1 towards it, -1 away."""

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return -1 to 1 for every car, `(N, cars)`."""
        rewards: np.ndarray = project(after.car_rotation[..., 0], aim_at_ball(after)) * find_alive(after)
        return rewards


class BoostKeptReward(BatchReward):
    """Square root of boost / 100, so that the first 12 count more than the last; 0 while demolished."""

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        rewards: np.ndarray = boost_root(after) * find_alive(after)
        return rewards


class BoostPickedUpReward(BatchReward):
    """Growth of the square root of boost / 100 over a step: a small pad counts much for an empty tank.

    What was burnt in the same step is taken off, but no less than 0 comes out. The boost that comes with a
    respawn does not count.
    """

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        gain = np.maximum(boost_root(after) - boost_root(before), 0.0)
        rewards: np.ndarray = gain * (find_alive(before) * find_alive(after))
        return rewards


class SaveReward(BatchReward):
    """1 for a touch that turns away a ball that was flying into the own goal.

    The ball flies into a goal if, going on straight at its present velocity (no gravity, no bounce), it
    reaches the goal line (|y| 5120 uu) within `seconds`, there fits between the posts with its whole width,
    and is low enough to fit under the bar; below the floor is low enough, it would bounce. It was turned away
    if that held before the step and does not hold after it, and no goal was scored. Every car of the team
    with a touch in that step gets the reward.

    Args:
        seconds: How far ahead to look; a ball that needs longer is no shot yet.

    Raises:
        ValueError: `seconds` is not above 0.
    """

    def __init__(self, seconds: float = 2.0) -> None:
        super().__init__()
        check_number("seconds", seconds, 1e-9, unit="seconds")
        self.seconds = seconds

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 or 1 for every car, `(N, cars)`."""
        saved = self._flies_in(before) & ~self._flies_in(after) & (after.goal_scored == 0)[:, None]
        rewards: np.ndarray = find_touches(after) * spread_by_team(saved, after.layout)
        return rewards

    def _flies_in(self, state: MatchState) -> np.ndarray:
        """Return `(N, 2)` bool: into blue's goal, into orange's goal."""
        return flies_into_goals(state.ball_position, state.ball_linear_velocity, self.seconds)


class DemolitionReward(BatchReward):
    """1 for demolishing an opponent, -1 for being demolished by one.

    Demolished in this step is a car whose respawn timer rose. It was demolished by the opponents whose
    `bump_victim` it is; several of them share the 1. A demolition without one counts for nobody.
    """

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return -1 to 1, more for several victims, for every car, `(N, cars)`."""
        demolished = after.car_demo_respawn_timer > before.car_demo_respawn_timer
        rows, side = np.arange(after.layout.cars), side_signs(after.layout)
        opponents = side[:, None] != side
        # (N, attacker, victim)
        hits = (after.car_bump_victim[:, :, None] == rows) & demolished[:, None] & opponents
        attackers = hits.sum(1)
        shares = hits / np.maximum(attackers, 1)[:, None]
        rewards: np.ndarray = (shares.sum(2) - (attackers > 0)).astype(np.float32)
        return rewards


class MateDistanceReward(BatchReward):
    """Distance of a car to its nearest team mate, as a share of `far`: 1 from there on.

    It is 0 without a mate. Demolished cars get nothing and are nobody's mate.

    Args:
        far: Distance that is enough, uu. 2000 is the house's choice: mates of Chaser were 2730 uu apart on
            average in a recorded 3v3.

    Raises:
        ValueError: `far` is not above 0.
    """

    def __init__(self, far: float = 2000.0) -> None:
        super().__init__()
        check_number("far", far, 1e-9, unit="uu")
        self.far = far

    @with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        side, alive = side_signs(after.layout), find_alive(after) > 0
        mates = (side[:, None] == side) & ~np.eye(after.layout.cars, dtype=bool)
        # (N, car, mate); inf where there is no such mate
        distances = np.where(mates & alive[:, None] & alive[:, :, None], find_distances(after), np.inf)
        nearest = distances.min(2)
        rewards: np.ndarray = np.where(np.isinf(nearest), 0.0, np.minimum(nearest / self.far, 1.0))
        return rewards.astype(np.float32)
