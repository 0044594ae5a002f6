"""Rewards of cars for one step, for one match or for many at once.

    before, after (N matches each) -> reward_batch -> (N, cars) float32

Every class is an RLGym `RewardFunction`. Speed and facing count nothing for a car that is demolished.
"""

from functools import cache
from typing import Any, Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.components.reward_base import BatchReward, FormulaReward, WeightedSum, name_of_bad
from rlgym_bridge.state import Layout, MatchState
from rlgym_bridge.user_input.arguments import check_number

__all__ = [
    "AirTouchReward", "BatchReward", "BoostKeptReward", "BoostPickedUpReward", "DemolitionReward",
    "FaceBallReward", "FlyToBallReward", "GoalReward", "InAirReward", "KickoffSpeedReward",
    "MateDistanceReward", "SaveReward", "SpeedReward", "TouchReward", "VelocityBallToGoalReward",
    "VelocityPlayerToBallReward", "WeightedSum", "name_of_bad",
]  # fmt: skip

# The goal that blue shoots at, then the one that orange shoots at.
_GOAL_BACKS: Final = np.array(
    [(0, y, game.GOAL_CENTRE_Z) for y in (game.GOAL_BACK_Y, -game.GOAL_BACK_Y)], np.float32
)


class GoalReward(FormulaReward):
    """1 for each car of the team that scores, -1 for each of the other, on the step of the goal.

    The goal is the step on which `goal_scored` turns true; the side of the ball says whose it is.
    """

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return -1, 0 or 1 for every car, `(N, cars)`."""
        scored = (after.goal_scored > 0) & (before.goal_scored == 0)
        blue_gets = np.where(after.ball_position[:, 1] > 0, 1.0, -1.0) * scored
        return np.outer(blue_gets, side_signs(after.layout)).astype(np.float32)


class TouchReward(FormulaReward):
    """1 for a step with a touch of the ball, however many; 0 without.

    Args:
        strength: Give for a touch the change of the ball's velocity over the step instead, as a share of the
            ball's largest speed, 6000 uu/s: 0 to 2. Gravity and bounces in that step are in it.
    """

    def __init__(self, strength: bool = False) -> None:
        super().__init__()
        self.strength = strength
        self.name = "touch_strength" if strength else "touch"

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 or 1, with `strength` 0 to 2, for every car, `(N, cars)`."""
        touched = find_touches(after)
        if self.strength:
            change = after.ball_linear_velocity - before.ball_linear_velocity
            touched *= np.linalg.norm(change, axis=1, keepdims=True) / game.BALL_MAX_SPEED
        return touched


class VelocityPlayerToBallReward(FormulaReward):
    """A car's speed towards the ball, as a share of 2300 uu/s: -1 (away) to 1."""

    name = "velocity_to_ball"

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return -1 to 1 for every car, `(N, cars)`."""
        speeds = project(after.car_linear_velocity, aim_at_ball(after))
        return speeds * (find_alive(after) / game.CAR_MAX_SPEED)


class SpeedReward(FormulaReward):
    """A car's speed in any direction, as a share of 2300 uu/s: 0 to 1; 0 while demolished."""

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 to 1 for every car, `(N, cars)`."""
        speeds = np.sqrt(project(after.car_linear_velocity, after.car_linear_velocity))
        return speeds * (find_alive(after) / game.CAR_MAX_SPEED)


class VelocityBallToGoalReward(FormulaReward):
    """The ball's speed towards the opponents' goal, as a share of 6000 uu/s: -1 (away) to 1.

    Towards the middle of the net's back, so that a ball that crosses the line still flies towards it. All
    cars of a team get the same.
    """

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return -1 to 1 for every car, `(N, cars)`."""
        to_goals = make_units(_GOAL_BACKS - after.ball_position[:, None])
        shares = project(after.ball_linear_velocity[:, None], to_goals) / game.BALL_MAX_SPEED
        return spread_by_team(shares, after.layout)


class FaceBallReward(FormulaReward):
    """Cosine of the angle between a car's nose and the ball: 1 towards it, -1 away."""

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return -1 to 1 for every car, `(N, cars)`."""
        return project(after.car_rotation[..., 0], aim_at_ball(after)) * find_alive(after)


class BoostKeptReward(FormulaReward):
    """Square root of boost / 100, so that the first 12 count more than the last; 0 while demolished."""

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 to 1 for every car, `(N, cars)`."""
        return boost_root(after) * find_alive(after)


class BoostPickedUpReward(FormulaReward):
    """Growth of the square root of boost / 100 over a step: a small pad counts much for an empty tank.

    What was burnt in the same step is taken off, but no less than 0 comes out. The boost that comes with a
    respawn does not count.
    """

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 to 1 for every car, `(N, cars)`."""
        gain = np.maximum(boost_root(after) - boost_root(before), 0.0)
        return gain * (find_alive(before) * find_alive(after))


class SaveReward(FormulaReward):
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

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 or 1 for every car, `(N, cars)`."""
        saved = self._flies_in(before) & ~self._flies_in(after) & (after.goal_scored == 0)[:, None]
        return find_touches(after) * spread_by_team(saved, after.layout)

    def _flies_in(self, state: MatchState) -> np.ndarray:
        """Return `(N, 2)` bool: into blue's goal, into orange's goal."""
        return flies_into_goals(state.ball_position, state.ball_linear_velocity, self.seconds)


class DemolitionReward(FormulaReward):
    """1 for demolishing an opponent, -1 for being demolished by one.

    Demolished in this step is a car whose respawn timer rose. It was demolished by the opponents whose
    `bump_victim` it is; several of them share the 1. A demolition without one counts for nobody.
    """

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return -1 to 1, more for several victims, for every car, `(N, cars)`."""
        demolished = after.car_demo_respawn_timer > before.car_demo_respawn_timer
        rows, side = np.arange(after.layout.cars), side_signs(after.layout)
        opponents = side[:, None] != side
        # (N, attacker, victim)
        hits = (after.car_bump_victim[:, :, None] == rows) & demolished[:, None] & opponents
        attackers = hits.sum(1)
        shares = hits / np.maximum(attackers, 1)[:, None]
        return (shares.sum(2) - (attackers > 0)).astype(np.float32)


class MateDistanceReward(FormulaReward):
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

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 to 1 for every car, `(N, cars)`."""
        side, alive = side_signs(after.layout), find_alive(after) > 0
        mates = (side[:, None] == side) & ~np.eye(after.layout.cars, dtype=bool)
        gaps = after.car_position[:, :, None] - after.car_position[:, None]
        # (N, car, mate); inf where there is no such mate
        there = mates & alive[:, None] & alive[:, :, None]
        distances = np.where(there, np.sqrt(project(gaps, gaps)), np.inf)
        nearest = distances.min(2)
        rewards: np.ndarray = np.where(np.isinf(nearest), 0.0, np.minimum(nearest / self.far, 1.0))
        return rewards.astype(np.float32)


_FULL_BOOST: Final = 100.0
_OWN_GOAL_SIGNS: Final = np.array([-1.0, 1.0], np.float32)  # of y: blue's goal, orange's goal


@cache
def side_signs(layout: Layout) -> np.ndarray:
    """Return 1 for blue's cars, -1 for orange's, `(cars,)`."""
    return np.repeat(np.array([1.0, -1.0], np.float32), (layout.blue, layout.orange))


def spread_by_team(numbers: np.ndarray, layout: Layout) -> np.ndarray:
    """Return the number of each car's team, `(N, cars)`, from blue's and orange's, `(N, 2)`."""
    return np.repeat(numbers, (layout.blue, layout.orange), axis=1)


def find_touches(state: MatchState) -> np.ndarray:
    """Return 1 for cars that touched the ball in the step, else 0, `(N, cars)` float32."""
    return np.asarray((state.car_ball_touches > 0).astype(np.float32))


def find_alive(state: MatchState) -> np.ndarray:
    """Return 1 for cars that are not demolished, else 0, `(N, cars)`."""
    return np.subtract(1, state.car_is_demoed)


def boost_root(state: MatchState) -> np.ndarray:
    """Return the square root of boost / 100, `(N, cars)`."""
    # The simulator may burn a tick's boost from a nearly empty tank.
    return np.asarray(np.sqrt(np.maximum(state.car_boost_amount, 0.0) / _FULL_BOOST))


def aim_at_ball(state: MatchState) -> np.ndarray:
    """Return unit vectors from cars to the ball, `(N, cars, 3)`."""
    return make_units(state.ball_position[:, None] - state.car_position)


def make_units(vectors: np.ndarray) -> np.ndarray:
    """Return vectors `(..., 3)` of length 1; a zero vector stays."""
    length = np.sqrt(project(vectors, vectors))[..., None]
    return np.asarray(vectors / np.where(length == 0, 1.0, length))


def project(vectors: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors along unit vectors, `(..., 3)` each: `(...)`."""
    return np.asarray(np.einsum("...i,...i->...", vectors, directions))


def flies_into_goals(position: np.ndarray, velocity: np.ndarray, seconds: float) -> np.ndarray:
    """Return whether balls fly into blue's and orange's goal within `seconds`, straight on, `(N, 2)` bool.

    `position` `(N, 3)` uu and `velocity` `(N, 3)` uu/s are the balls'; gravity and bounces do not count.
    """
    x, y, z = position.T[:, :, None]
    speed_x, speed_y, speed_z = velocity.T[:, :, None]
    closing = speed_y * _OWN_GOAL_SIGNS
    distance = np.maximum(game.BACK_WALL_Y - y * _OWN_GOAL_SIGNS, 0.0)  # 0 for a ball past the line
    soon = (closing > 0) & (distance <= closing * seconds)
    left = distance / np.where(soon, closing, np.inf)  # s until the line
    between = np.abs(x + speed_x * left) <= game.GOAL_WIDTH / 2 - game.BALL_RADIUS
    return np.asarray(soon & between & (z + speed_z * left <= game.GOAL_HEIGHT - game.BALL_RADIUS))


_STILL = 1.0  # uu, uu/s: the ball of a kickoff lies on the centre spot, and nothing else does for a step


class KickoffSpeedReward(FormulaReward):
    """The signed square of a car's speed towards the ball of a kickoff, as a share of 2300 uu/s: -1 to 1.

    0 once the ball has moved. It is squared because speeds themselves add up to the way to the ball, which is
    the same for a slow car.
    """

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return -1 to 1 for every car, `(N, cars)`."""
        rewards = np.zeros(after.car_is_demoed.shape, np.float32)
        off_centre = np.abs(after.ball_position[:, :2]).max(1)
        still = (off_centre < _STILL) & (np.abs(after.ball_linear_velocity).max(1) < _STILL)
        if still.any():
            speeds = project(after.car_linear_velocity, aim_at_ball(after)) * find_alive(after)
            rewards[still] = (speeds * np.abs(speeds))[still] / game.CAR_MAX_SPEED**2
        return rewards


class AirTouchReward(FormulaReward):
    """The ball's height after a step with a touch: 0 for a ball on the floor, 1 under the ceiling."""

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 to 1 for every car, `(N, cars)`."""
        height = (after.ball_position[:, 2:] - game.BALL_REST_Z) / (
            game.CEILING_Z - game.BALL_RADIUS - game.BALL_REST_Z
        )
        return find_touches(after) * np.clip(height, 0.0, 1.0)


class FlyToBallReward(FormulaReward):
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
        check_number("lowest", lowest, game.BALL_RADIUS, game.CEILING_Z, unit="uu")
        self.lowest = lowest

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 to 1 for every car, `(N, cars)`."""
        ball = after.ball_position[:, 2:]
        flying = (1 - after.car_on_ground) * find_alive(after) * (ball > self.lowest)
        speeds = np.maximum(project(after.car_linear_velocity, aim_at_ball(after)), 0.0)
        climbed = np.clip(after.car_position[..., 2] / np.maximum(ball, game.BALL_RADIUS), 0.0, 1.0)
        return flying * climbed * (speeds / game.CAR_MAX_SPEED)


class InAirReward(FormulaReward):
    """1 while fewer than three wheels touch anything, 0 otherwise and while demolished."""

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        """Return 0 or 1 for every car, `(N, cars)`."""
        return (1 - after.car_on_ground) * find_alive(after)
