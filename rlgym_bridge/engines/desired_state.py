"""Reduce a state to what state setting can carry into a match: places, turns, speeds, boost, gravity.

    MatchState -> DesiredMatch -+-> engines/live.py: RLBot's message
                               +-> engines/sim.py: RocketSim's states, the same to the bit

All numbers are float32, as the message has them.
"""

from typing import NamedTuple

import numpy as np

from rlgym_bridge.game import GRAVITY
from rlgym_bridge.state import MatchState

Numbers = tuple[float, ...]


class DesiredBody(NamedTuple):
    """A ball or a car.

    Attributes:
        position: uu.
        angles: Pitch, yaw, roll in rad, as RLBot's rotator has them.
        velocity: uu/s.
        spin: rad/s, world axes.
        boost: 0..100, whole: RLBot's core cuts off the rest. 0 for the ball.
    """

    position: Numbers
    angles: Numbers
    velocity: Numbers
    spin: Numbers
    boost: int


class DesiredMatch(NamedTuple):
    """All numbers of a match that can be set.

    Attributes:
        ball: The ball.
        cars: In the order of the state.
        gravity_z: uu/s^2, negative is down.
    """

    ball: DesiredBody
    cars: tuple[DesiredBody, ...]
    gravity_z: float


def desired_part(state: MatchState, match: int = 0) -> DesiredMatch:
    """Return the part of a state that can be set; every number is a float32."""
    ball = _object(state.ball_position[match], state.ball_rotation[match], state.ball_linear_velocity[match],
                   state.ball_angular_velocity[match], 0.0)  # fmt: skip
    cars = tuple(
        _object(
            state.car_position[match, car], state.car_rotation[match, car],
            state.car_linear_velocity[match, car], state.car_angular_velocity[match, car],
            float(state.car_boost_amount[match, car]),
        )
        for car in range(state.layout.cars)
    )  # fmt: skip
    return DesiredMatch(ball, cars, float(np.float32(-GRAVITY * state.gravity[match])))


def _object(
    position: np.ndarray, rotation: np.ndarray, velocity: np.ndarray, spin: np.ndarray, boost: float
) -> DesiredBody:
    whole = int(min(100.0, max(0.0, boost)))
    place, turn, speed, turning = (
        tuple(numbers.tolist()) for numbers in (position, angles(rotation), velocity, spin)
    )
    return DesiredBody(place, turn, speed, turning, whole)


def angles(rotation: np.ndarray) -> np.ndarray:
    """Return the rotator of a rotation matrix.

    Args:
        rotation: `(3, 3)`, columns forward, right, up.

    Returns:
        `(3,)` float32: pitch (nose up is positive), yaw (from +x towards +y), roll (right side down is
        positive), in rad. Straight up or down, where yaw and roll turn about the same axis, roll is 0.
    """
    turn = rotation.astype(np.float64)
    level = np.hypot(turn[0, 0], turn[1, 0])
    pitch = np.arctan2(turn[2, 0], level)
    if level < 1e-6:
        return np.array([pitch, np.arctan2(-turn[0, 1], turn[1, 1]), 0.0], np.float32)
    yaw, roll = np.arctan2(turn[1, 0], turn[0, 0]), np.arctan2(-turn[2, 1], turn[2, 2])
    return np.array([pitch, yaw, roll], np.float32)
