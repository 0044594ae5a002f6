"""An observation that adds to DefaultObs the positions of things as seen from the car.

DefaultObs's numbers, then vectors (matches, cars, vectors, 3) -> turned into the car's frame
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.game import GOAL_BACK_Y, GOAL_CENTRE_Z
from rlgym_bridge.state import Layout, MatchState

_AXES: Final = ("forward", "right", "up")
_BALL: Final = ("ball/position", "ball/direction", "ball/linear_velocity", "ball/to_goal", "ball/to_own_goal")
_CAR: Final = ("position", "linear_velocity")
_NOBODY: Final = -1


class _Around(NamedTuple):
    """The surroundings of some cars: the other cars, and the goals.

    Attributes:
        others: `(cars, places)` int, the other cars; -1 where there is none.
        there: `(cars, places, 1)` float32, 1 where there is one.
        goals: `(2, cars, 3)` float32, uu, the goal that each shoots at, and its own.
    """

    others: np.ndarray
    there: np.ndarray
    goals: np.ndarray


class RelativeObs(DefaultObs):
    """DefaultObs, followed by the car's surroundings in its own frame: forward, right, up.

    In this order, three numbers each: the ball's position, direction (length 1) and velocity, all relative
    to the car; the direction (length 1) from the ball to the goal that the car shoots at, and to its own;
    then position and velocity, relative to the car, of each team mate and each opponent, as DefaultObs
    orders them. Positions and velocities are scaled as DefaultObs's. A place without a car is 0.

    A perceptron has to learn products of numbers to get from DefaultObs to these; given them, it learns to
    reach the ball in a fraction of the steps.

    Args:
        zero_padding: As DefaultObs has it, like all other arguments.
    """

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`; the size is -1 while it depends on a match not seen yet."""
        kind, size = super().get_obs_space(agent)
        places = self._cars if self.zero_padding is None else 2 * self.zero_padding
        return kind, size if places is None else size + _numbers(places - 1)

    def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
        """Return observations `(N, cars, size)`; see `DefaultObs.build_batch`."""
        absolute = super().build_batch(state, cars)  # raises for a car that is not there
        layout = state.layout
        own = list(range(layout.cars) if cars is None else cars)
        around = _around(layout, tuple(own), self.zero_padding)
        position, velocity = state.car_position[:, own], state.car_linear_velocity[:, own]  # (N, cars, 3)
        ball = state.ball_position[:, None]
        to_ball = ball - position

        vectors = np.empty((len(ball), len(own), len(_BALL) + 2 * around.others.shape[1], 3), np.float32)
        vectors[:, :, 0] = to_ball * self.pos_coef
        vectors[:, :, 1] = _units(to_ball)
        vectors[:, :, 2] = (state.ball_linear_velocity[:, None] - velocity) * self.lin_vel_coef
        vectors[:, :, 3] = _units(around.goals[0] - ball)
        vectors[:, :, 4] = _units(around.goals[1] - ball)
        others = vectors[:, :, len(_BALL) :]
        others[:, :, 0::2] = state.car_position[:, around.others] - position[:, :, None]
        others[:, :, 1::2] = state.car_linear_velocity[:, around.others] - velocity[:, :, None]
        others[:, :, 0::2] *= around.there * self.pos_coef
        others[:, :, 1::2] *= around.there * self.lin_vel_coef
        # A rotation's columns are forward, right and up: a vector times it is the vector seen from the car.
        local = vectors @ state.car_rotation[:, own]
        return np.concatenate([absolute, local.reshape(len(ball), len(own), -1)], 2)

    def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
        """Return the name of every number that a car is shown; see `DefaultObs.names`."""
        allies, enemies = (blue, orange) if car < blue else (orange, blue)
        if self.zero_padding is not None:
            allies = enemies = self.zero_padding
        who = [f"ally-{i}" for i in range(allies - 1)] + [f"enemy-{i}" for i in range(enemies)]
        vectors = [*_BALL, *(f"{other}/{name}" for other in who for name in _CAR)]
        relative = [f"relative/{name}/{axis}" for name in vectors for axis in _AXES]
        return (*super().names(blue, orange, car), *relative)


def _numbers(others: int) -> int:
    return 3 * (len(_BALL) + len(_CAR) * others)


@lru_cache
def _around(layout: Layout, cars: tuple[int, ...], zero_padding: int | None) -> _Around:
    every = []
    for car in cars:
        blue, orange = list(range(layout.blue)), list(range(layout.blue, layout.cars))
        own, other = (blue, orange) if car < layout.blue else (orange, blue)
        own.remove(car)
        if zero_padding is not None:
            own += [_NOBODY] * (zero_padding - 1 - len(own))
            other += [_NOBODY] * (zero_padding - len(other))
        every.append(own + other)
    others = np.array(every, np.intp).reshape(len(cars), -1)
    side = np.where(np.array(cars, np.intp) < layout.blue, 1.0, -1.0)
    # The back of the net, towards which a ball in the goal still flies.
    goal = np.stack([0 * side, GOAL_BACK_Y * side, np.full_like(side, GOAL_CENTRE_Z)], 1)
    goals = np.stack([goal, goal * (1, -1, 1)]).astype(np.float32)
    return _Around(others, (others != _NOBODY)[..., None].astype(np.float32), goals)


def _units(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length 1; a zero vector stays."""
    length = np.sqrt(np.square(vectors).sum(-1, keepdims=True))
    units: np.ndarray = vectors / np.where(length == 0, 1.0, length)
    return units
