"""Hand-written players that solve scenes: one flies to the ball, one carries it, one jumps over a car."""

import numpy as np

from rlgym_bridge.game import BALL_RADIUS
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.scenes import StandingDriver

THROTTLE, STEER, PITCH, YAW, ROLL, JUMP, BOOST = range(7)
FLIGHTS = np.arange(0.3, 3.0, 0.05)  # s, among which a flight to the ball is chosen
PUSH = 900.0  # uu/s^2 that a flight may ask of the boost, which gives 1,058


class Flying(StandingDriver):
    """Jumps, turns its nose to where boost takes it to the ball, and boosts."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        rows = super().act(obs, state)
        for column, car in enumerate(self._cars):
            axes = state.car_rotation[:, car]
            push = push_to_ball(state, car)
            length = np.linalg.norm(push, axis=1)
            front, right, up = np.einsum("nij,ni->jn", axes, push / length[:, None])
            roll_rate, pitch_rate, yaw_rate = np.einsum(
                "nij,ni->jn", axes, state.car_angular_velocity[:, car]
            )
            rows[:, column, PITCH] = 3 * np.arctan2(up, front) + 0.6 * pitch_rate
            rows[:, column, YAW] = 3 * np.arctan2(right, front) - 0.6 * yaw_rate
            rows[:, column, ROLL] = 0.5 * roll_rate
            rows[:, column, JUMP] = (state.car_on_ground[:, car] > 0) | (state.car_is_jumping[:, car] > 0)
            rows[:, column, BOOST] = front > 0.8
        return rows


def push_to_ball(state: MatchState, car: int) -> np.ndarray:
    """Return the acceleration that takes a car to the ball in the least time it can, uu/s^2.

    Gravity pulls at both alike, so it drops out.
    """
    gap = state.ball_position - (0, 0, BALL_RADIUS / 2) - state.car_position[:, car]
    drift = state.ball_linear_velocity - state.car_linear_velocity[:, car]
    pushes = 2 * (gap[:, None] + drift[:, None] * FLIGHTS[:, None]) / FLIGHTS[:, None] ** 2
    enough = np.linalg.norm(pushes, axis=-1) < PUSH
    first = np.where(enough.any(1), enough.argmax(1), len(FLIGHTS) - 1)
    return pushes[np.arange(state.matches), first]


class Carrying(StandingDriver):
    """Keeps under the ball on its roof."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        rows = super().act(obs, state)
        for column, car in enumerate(self._cars):
            axes = state.car_rotation[:, car]
            gap = np.einsum("nij,ni->jn", axes, state.ball_position - state.car_position[:, car])
            drift = np.einsum(
                "nij,ni->jn", axes, state.ball_linear_velocity - state.car_linear_velocity[:, car]
            )
            rows[:, column, THROTTLE] = 0.02 * (gap[0] - 10) + 0.01 * drift[0]
            rows[:, column, STEER] = 0.01 * gap[1] + 0.005 * drift[1]
        return rows


class Jumping(StandingDriver):
    """Jumps when another car is near, and again."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        rows = super().act(obs, state)
        for column, car in enumerate(self._cars):
            gaps = np.linalg.norm(state.car_position - state.car_position[:, [car]], axis=-1)
            gaps[:, car] = np.inf
            near = gaps.min(1) < 1000
            rows[:, column, JUMP] = near & (
                (state.car_on_ground[:, car] > 0) | (state.car_is_jumping[:, car] > 0)
            )
        return rows
