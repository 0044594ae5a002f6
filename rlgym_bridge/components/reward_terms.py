"""Compute what several rewards are made of, for all cars of all matches."""

from functools import cache
from typing import Final

import numpy as np

from rlgym_bridge.game import BACK_WALL_Y, BALL_RADIUS, GOAL_HEIGHT, GOAL_WIDTH
from rlgym_bridge.state import Layout, MatchState

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
    touched: np.ndarray = (state.car_ball_touches > 0).astype(np.float32)
    return touched


def find_alive(state: MatchState) -> np.ndarray:
    """Return 1 for cars that are not demolished, else 0, `(N, cars)`."""
    return np.subtract(1, state.car_is_demoed)


def boost_root(state: MatchState) -> np.ndarray:
    """Return the square root of boost / 100, `(N, cars)`."""
    # The simulator may burn a tick's boost from a nearly empty tank.
    root: np.ndarray = np.sqrt(np.maximum(state.car_boost_amount, 0.0) / _FULL_BOOST)
    return root


def aim_at_ball(state: MatchState) -> np.ndarray:
    """Return unit vectors from cars to the ball, `(N, cars, 3)`."""
    return make_units(state.ball_position[:, None] - state.car_position)


def find_distances(state: MatchState) -> np.ndarray:
    """Return the distances between cars in uu, `(N, cars, cars)`."""
    gaps = state.car_position[:, :, None] - state.car_position[:, None]
    distances: np.ndarray = np.sqrt(project(gaps, gaps))
    return distances


def make_units(vectors: np.ndarray) -> np.ndarray:
    """Return vectors `(..., 3)` of length 1; a zero vector stays."""
    length = np.sqrt(project(vectors, vectors))[..., None]
    units: np.ndarray = vectors / np.where(length == 0, 1.0, length)
    return units


def project(vectors: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors along unit vectors, `(..., 3)` each: `(...)`."""
    products: np.ndarray = np.einsum("...i,...i->...", vectors, directions)
    return products


def flies_into_goals(position: np.ndarray, velocity: np.ndarray, seconds: float) -> np.ndarray:
    """Return whether balls fly into a goal if they go on straight, without gravity and bounces.

    Args:
        position: `(N, 3)` uu, of the balls.
        velocity: `(N, 3)` uu/s.
        seconds: Within which they reach the goal line, above 0.

    Returns:
        `(N, 2)` bool: into blue's goal, into orange's.
    """
    x, y, z = position.T[:, :, None]
    speed_x, speed_y, speed_z = velocity.T[:, :, None]
    closing = speed_y * _OWN_GOAL_SIGNS
    distance = np.maximum(BACK_WALL_Y - y * _OWN_GOAL_SIGNS, 0.0)  # 0 for a ball past the line
    soon = (closing > 0) & (distance <= closing * seconds)
    left = distance / np.where(soon, closing, np.inf)  # s until the line
    between = np.abs(x + speed_x * left) <= GOAL_WIDTH / 2 - BALL_RADIUS
    flies: np.ndarray = soon & between & (z + speed_z * left <= GOAL_HEIGHT - BALL_RADIUS)
    return flies
