"""Rewards of cars for one step, for one match or for many at once.

    before, after (N matches each) -> reward_batch -> (N, cars) float32

Every class is an RLGym `RewardFunction`; its dict form and its batch form are one calculation. A car's
speed and facing count nothing while it is demolished.
"""

from functools import cache
from typing import Final

import numpy as np

from rlgym_bridge.components.reward_base import BatchReward, WeightedSum, name_of_bad
from rlgym_bridge.game import (
    BACK_WALL_Y,
    BALL_MAX_SPEED,
    BALL_RADIUS,
    BALL_REST_Z,
    CAR_MAX_SPEED,
    CEILING_Z,
    GOAL_BACK_Y,
    GOAL_CENTRE_Z,
    GOAL_HEIGHT,
    GOAL_WIDTH,
)
from rlgym_bridge.state import Layout, MatchState
from rlgym_bridge.user_input.arguments import check_number

__all__ = [
    "AirTouchReward", "BatchReward", "BoostKeptReward", "BoostPickedUpReward", "DemolitionReward",
    "FaceBallReward", "GoalReward", "InAirReward", "SaveReward", "TouchReward", "VelocityBallToGoalReward",
    "VelocityPlayerToBallReward", "WeightedSum", "name_of_bad",
]  # fmt: skip

# The goal that blue shoots at, then the one that orange shoots at.
_GOAL_BACKS: Final = np.array([(0, y, GOAL_CENTRE_Z) for y in (GOAL_BACK_Y, -GOAL_BACK_Y)], np.float32)
_OWN_GOAL_SIGNS: Final = np.array([-1.0, 1.0], np.float32)  # of y: blue's goal, orange's goal
_FULL_BOOST: Final = 100.0


class GoalReward(BatchReward):
    """1 for each car of the team that scores, -1 for each of the other, on the step of the goal.

    The goal is the step on which `goal_scored` turns true; the side of the ball says whose it is.
    """

    reads = ("goal_scored", "ball_position")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return -1, 0 or 1 for every car, `(N, cars)`."""
        scored = (after.goal_scored > 0) & (before.goal_scored == 0)
        blue_gets = np.where(after.ball_position[:, 1] > 0, 1.0, -1.0) * scored
        rewards: np.ndarray = np.outer(blue_gets, _side(after.layout)).astype(np.float32)
        return rewards


class TouchReward(BatchReward):
    """1 for a step with a touch of the ball, however many; 0 without.

    Args:
        strength: Give for a touch the change of the ball's velocity over the step instead, as a share of the
            ball's largest speed, 6000 uu/s: 0 to 2. Gravity and bounces in that step are in it.
    """

    reads = ("car_ball_touches", "ball_linear_velocity")

    def __init__(self, strength: bool = False) -> None:
        super().__init__()
        self.strength = strength

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 or 1, or the strength, for every car, `(N, cars)`."""
        touched = _touched(after)
        if self.strength:
            change = after.ball_linear_velocity - before.ball_linear_velocity
            touched *= np.linalg.norm(change, axis=1, keepdims=True) / BALL_MAX_SPEED
        return touched


class VelocityPlayerToBallReward(BatchReward):
    """A car's speed towards the ball, as a share of 2300 uu/s: -1 (away) to 1."""

    reads = ("car_position", "car_linear_velocity", "car_is_demoed", "ball_position")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return the share for every car, `(N, cars)`."""
        speeds = _along(after.car_linear_velocity, _to_ball(after))
        rewards: np.ndarray = speeds * (_alive(after) / CAR_MAX_SPEED)
        return rewards


class VelocityBallToGoalReward(BatchReward):
    """The ball's speed towards the opponents' goal, as a share of 6000 uu/s: -1 (away) to 1.

    Towards the middle of the net's back, so that a ball that crosses the line still flies towards it. All
    cars of a team get the same.
    """

    reads = ("ball_position", "ball_linear_velocity")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return the share for every car, `(N, cars)`."""
        to_goals = _units(_GOAL_BACKS - after.ball_position[:, None])
        shares = _along(after.ball_linear_velocity[:, None], to_goals) / BALL_MAX_SPEED
        return _by_team(shares, after.layout)


class FaceBallReward(BatchReward):
    """Cosine of the angle between a car's nose and the ball: 1 towards it, -1 away."""

    reads = ("car_position", "car_rotation", "car_is_demoed", "ball_position")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return the cosine for every car, `(N, cars)`."""
        rewards: np.ndarray = _along(after.car_rotation[..., 0], _to_ball(after)) * _alive(after)
        return rewards


class BoostKeptReward(BatchReward):
    """Square root of boost / 100, so that the first 12 count more than the last; 0 while demolished."""

    reads = ("car_boost_amount", "car_is_demoed")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        rewards: np.ndarray = _boost_root(after) * _alive(after)
        return rewards


class BoostPickedUpReward(BatchReward):
    """Growth of the square root of boost / 100 over a step: a small pad counts much for an empty tank.

    What was burnt in the same step is taken off, but no less than 0 comes out. The boost that comes with a
    respawn does not count.
    """

    reads = ("car_boost_amount", "car_is_demoed")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        gain = np.maximum(_boost_root(after) - _boost_root(before), 0.0)
        rewards: np.ndarray = gain * (_alive(before) * _alive(after))
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

    reads = ("ball_position", "ball_linear_velocity", "goal_scored", "car_ball_touches")

    def __init__(self, seconds: float = 2.0) -> None:
        super().__init__()
        check_number("seconds", seconds, 1e-9, unit="seconds")
        self.seconds = seconds

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 or 1 for every car, `(N, cars)`."""
        saved = self._flies_in(before) & ~self._flies_in(after) & (after.goal_scored == 0)[:, None]
        rewards: np.ndarray = _touched(after) * _by_team(saved, after.layout)
        return rewards

    def _flies_in(self, state: MatchState) -> np.ndarray:
        """Return `(N, 2)` bool: into blue's goal, into orange's goal."""
        x, y, z = state.ball_position.T[:, :, None]
        speed_x, speed_y, speed_z = state.ball_linear_velocity.T[:, :, None]
        closing = speed_y * _OWN_GOAL_SIGNS
        distance = np.maximum(BACK_WALL_Y - y * _OWN_GOAL_SIGNS, 0.0)  # 0 for a ball past the line
        soon = (closing > 0) & (distance <= closing * self.seconds)
        seconds = distance / np.where(soon, closing, np.inf)
        between = np.abs(x + speed_x * seconds) <= GOAL_WIDTH / 2 - BALL_RADIUS
        flies: np.ndarray = soon & between & (z + speed_z * seconds <= GOAL_HEIGHT - BALL_RADIUS)
        return flies


class DemolitionReward(BatchReward):
    """1 for demolishing an opponent, -1 for being demolished by one.

    Demolished in this step is a car whose respawn timer rose. It was demolished by the opponents whose
    `bump_victim` it is; several of them share the 1. A demolition without one counts for nobody.
    """

    reads = ("car_demo_respawn_timer", "car_bump_victim")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return the difference of the two rewards for every car, `(N, cars)`."""
        demolished = after.car_demo_respawn_timer > before.car_demo_respawn_timer
        rows, side = np.arange(after.layout.cars), _side(after.layout)
        opponents = side[:, None] != side
        # (N, attacker, victim)
        hits = (after.car_bump_victim[:, :, None] == rows) & demolished[:, None] & opponents
        attackers = hits.sum(1)
        shares = hits / np.maximum(attackers, 1)[:, None]
        rewards: np.ndarray = (shares.sum(2) - (attackers > 0)).astype(np.float32)
        return rewards


class AirTouchReward(BatchReward):
    """The ball's height after a step with a touch: 0 for a ball on the floor, 1 under the ceiling."""

    reads = ("car_ball_touches", "ball_position")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 to 1 for every car, `(N, cars)`."""
        height = (after.ball_position[:, 2:] - BALL_REST_Z) / (CEILING_Z - BALL_RADIUS - BALL_REST_Z)
        rewards: np.ndarray = _touched(after) * np.clip(height, 0.0, 1.0)
        return rewards


class InAirReward(BatchReward):
    """1 while fewer than three wheels touch anything, 0 otherwise and while demolished."""

    reads = ("car_on_ground", "car_is_demoed")

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return 0 or 1 for every car, `(N, cars)`."""
        rewards: np.ndarray = (1 - after.car_on_ground) * _alive(after)
        return rewards


# --- what they are made of --------------------------------------------------------------------------


@cache
def _side(layout: Layout) -> np.ndarray:
    """Return `(cars,)`: 1 for blue's, -1 for orange's."""
    return np.repeat(np.array([1.0, -1.0], np.float32), (layout.blue, layout.orange))


def _by_team(numbers: np.ndarray, layout: Layout) -> np.ndarray:
    """Return `(N, cars)` from `(N, 2)`: blue's number, orange's number."""
    return np.repeat(numbers, (layout.blue, layout.orange), axis=1)


def _touched(state: MatchState) -> np.ndarray:
    touched: np.ndarray = (state.car_ball_touches > 0).astype(np.float32)
    return touched


def _alive(state: MatchState) -> np.ndarray:
    return np.subtract(1, state.car_is_demoed)


def _boost_root(state: MatchState) -> np.ndarray:
    # The simulator may burn a tick's boost from a nearly empty tank.
    root: np.ndarray = np.sqrt(np.maximum(state.car_boost_amount, 0.0) / _FULL_BOOST)
    return root


def _to_ball(state: MatchState) -> np.ndarray:
    """Return `(N, cars, 3)` unit vectors."""
    return _units(state.ball_position[:, None] - state.car_position)


def _units(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length 1; a zero vector stays."""
    length = np.sqrt(_along(vectors, vectors))[..., None]
    units: np.ndarray = vectors / np.where(length == 0, 1.0, length)
    return units


def _along(vectors: np.ndarray, directions: np.ndarray) -> np.ndarray:
    products: np.ndarray = np.einsum("...i,...i->...", vectors, directions)
    return products
