"""Observations that add to DefaultObs the positions of things as seen from the car.

RelativeObs  DefaultObs's numbers, then vectors (matches, cars, vectors, 3) -> turned into the car's frame
TeamObs      the same in blocks (cars, others, 27), one for each other car, sorted: the nearest first
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from rlgym_bridge.components.ball_ahead import ball_ahead_names, check_seconds, see_ball_ahead
from rlgym_bridge.components.batch_form import with_native_form
from rlgym_bridge.components.default_obs import DefaultObs, ObsNumber, nothing, other_cars
from rlgym_bridge.game import GOAL_BACK_Y, GOAL_CENTRE_Z
from rlgym_bridge.state import Layout, MatchState

_AXES: Final = ("forward", "right", "up")
_BALL: Final = ("ball/position", "ball/direction", "ball/linear_velocity", "ball/to_goal", "ball/to_own_goal")
_CAR: Final = ("position", "linear_velocity")
_TINY: Final = np.float32(1e-30)  # in place of a length of 0

DIRECTIONS: Final = 3  # the first vectors of `look_from_cars`, of length 1: to the ball, from it to each goal


class Surroundings(NamedTuple):
    """The vectors that some cars see, as columns of `MatchState.buffer`."""

    columns: np.ndarray  # `(cars, vectors, 3)` int, where each vector ends
    origins: np.ndarray  # `(cars, vectors, 3)` int, where it begins
    goals: np.ndarray  # `(cars, 2, 3)` float32, uu: where vectors 1 and 2 end, which no column has
    scales: np.ndarray  # `(cars, vectors, 1)` float32, 0 for cars that are not there
    rotations: np.ndarray  # `(cars, 3, 3)` int, of the cars that look
    there: np.ndarray  # `(cars, others)` bool, whether there is such a car: team mates, then opponents


class RelativeObs(DefaultObs):
    """DefaultObs, followed by the car's surroundings in its own frame: forward, right, up.

    In this order, three numbers each: the ball's position, direction (length 1) and velocity, all relative
    to the car; the direction (length 1) from the ball to the goal that the car shoots at, and to its own;
    then position and velocity, relative to the car, of each team mate and each opponent, as DefaultObs
    orders them. Positions and velocities are scaled as DefaultObs's. A place without a car is 0.

    A perceptron has to learn products of numbers to get from DefaultObs to these; given them, it learns to
    reach the ball in a fraction of the steps.

    With `ball_ahead` it ends with the ball to come, if nobody touches it: for each of these times its
    position and velocity, relative to the car as it is now and scaled like the others.

    Args:
        zero_padding: As DefaultObs has it, like all other arguments.
        ball_ahead: Times ahead in seconds, such as `(0.25, 0.5, 1, 2)`; None for none.

    Raises:
        ValueError: `zero_padding` is no whole number from 1 to 64, a factor is no number, or a time is
            out of range.
    """

    def __init__(
        self, zero_padding: int | None = 3, *coefficients: Any, ball_ahead: Sequence[float] | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(zero_padding, *coefficients, **more)
        self.ball_ahead = () if ball_ahead is None else check_seconds("ball_ahead", ball_ahead)

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`; the size is -1 while it depends on a match not seen yet."""
        kind, size = super().get_obs_space(agent)
        places = self._places
        return kind, size if places is None else size + _numbers(places - 1) + 6 * len(self.ball_ahead)

    @with_native_form
    def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
        """Return observations `(N, cars, size)`; see `TableObs.build_batch`."""
        absolute = super().build_batch(state, cars)  # raises for a car that is not there
        own = tuple(range(state.layout.cars) if cars is None else cars)
        around = find_surroundings(state.layout, own, self.zero_padding, self.pos_coef, self.lin_vel_coef)
        _, local = look_from_cars(state, around)
        local = local.take(order_vectors(local.shape[2]), 2)
        parts = [absolute, local.reshape(*absolute.shape[:2], -1)]
        if self.ball_ahead:
            parts.append(see_ball_ahead(state, own, self.ball_ahead, self.pos_coef, self.lin_vel_coef))
        return np.concatenate(parts, 2)

    def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
        """Return the name of every number that a car is shown; see `TableObs.names`."""
        allies, enemies = (blue, orange) if car < blue else (orange, blue)
        if self.zero_padding is not None:
            allies = enemies = self.zero_padding
        who = [f"ally-{i}" for i in range(allies - 1)] + [f"enemy-{i}" for i in range(enemies)]
        vectors = [*_BALL, *(f"{other}/{name}" for other in who for name in _CAR)]
        relative = [f"relative/{name}/{axis}" for name in vectors for axis in _AXES]
        return (*super().names(blue, orange, car), *relative, *ball_ahead_names(self.ball_ahead))


def _numbers(others: int) -> int:
    return 3 * (len(_BALL) + len(_CAR) * others)


@lru_cache
def find_surroundings(
    layout: Layout, cars: tuple[int, ...], zero_padding: int | None, pos_coef: float, lin_vel_coef: float
) -> Surroundings:
    """Find the columns of the vectors that some cars see; factors in 1/uu and s/uu."""
    groups = [[*chain(*other_cars(layout, car, zero_padding))] for car in cars]
    there = np.array([[other is not None for other in group] for group in groups], bool)
    there = there.reshape(len(cars), -1)
    ball, ball_velocity = layout.column("ball_position"), layout.column("ball_linear_velocity")
    columns, origins, rotations = [], [], []
    for car, group in zip(cars, groups, strict=True):
        position, velocity = (layout.column(name, car=car) for name in _CAR)
        # Of a car that is not there: no vector at all.
        seen = [car if other is None else other for other in group]
        columns.append(
            [ball, ball, ball, ball, ball_velocity]
            + [layout.column(name, car=other) for other in seen for name in _CAR]
        )
        origins.append([position, ball, ball, position, velocity] + [position, velocity] * len(seen))
        rotations.append(layout.column("rotation", car=car))
    scales = np.ones((len(cars), len(_BALL) + 2 * there.shape[1], 1), np.float32)
    scales[:, DIRECTIONS::2, 0], scales[:, DIRECTIONS + 1 :: 2, 0] = pos_coef, lin_vel_coef
    scales[:, len(_BALL) :, 0] *= there.repeat(2, 1)
    side = np.where(np.array(cars, np.intp) < layout.blue, 1.0, -1.0)
    # The back of the net, towards which a ball in the goal still flies.
    goal = np.stack([0 * side, GOAL_BACK_Y * side, np.full_like(side, GOAL_CENTRE_Z)], 1)
    goals = np.stack([goal, goal * (1, -1, 1)], 1).astype(np.float32)
    shape = (*scales.shape[:2], 1)
    return Surroundings(
        np.array(columns, np.intp).reshape(shape) + np.arange(3),
        np.array(origins, np.intp).reshape(shape) + np.arange(3),
        goals,
        scales,
        np.array(rotations, np.intp)[:, None, None] + np.arange(9).reshape(3, 3),
        there,
    )


def look_from_cars(state: MatchState, around: Surroundings) -> tuple[np.ndarray, np.ndarray]:
    """Return what some cars see, scaled, in the field's frame and in theirs: `(N, cars, vectors, 3)` each.

    The vectors are the directions from the car to the ball and from the ball to the opponents' goal and to
    the own one, of length 1; the ball's position and velocity; position and velocity of each other car. All
    but the directions to the goals are relative to the observing car.
    """
    vectors = state.buffer.take(around.columns, 1)
    vectors[:, :, 1:DIRECTIONS] = around.goals
    vectors -= state.buffer.take(around.origins, 1)
    directions = vectors[:, :, :DIRECTIONS]
    lengths = np.sqrt(np.add.reduce(directions * directions, -1, keepdims=True))
    directions /= np.maximum(lengths, _TINY)
    vectors *= around.scales
    # A rotation's columns are forward, right and up: a vector times it is the vector seen from the car. A
    # matrix product would round as the processor's kernels do; these sums go in one order everywhere.
    local: np.ndarray = np.einsum("mcvi,mcij->mcvj", vectors, state.buffer.take(around.rotations, 1))
    return vectors, local


@lru_cache
def order_vectors(vectors: int) -> np.ndarray:
    """Return the order of the vectors in a RelativeObs, `(vectors,)`: ball, as `_BALL` says, then cars."""
    return np.array([3, 0, 4, 1, 2, *range(len(_BALL), vectors)], np.intp)


_FULL: Final = RelativeObs(None).names(1, 1)
_SEEN_BALL: Final = tuple(
    f"relative/ball/{name}/{axis}"
    for name in ("direction", "to_goal", "to_own_goal", "position", "linear_velocity")
    for axis in ("forward", "right", "up")
)
_SEEN_CAR: Final = tuple(name.removeprefix("enemy-0/") for name in _FULL if name.startswith("enemy-0/"))
SEEN: Final = tuple(name.replace("enemy-0/", "") for name in _FULL if name.startswith("relative/enemy-0/"))
BLOCK: Final = ("there", *_SEEN_CAR, *SEEN)
HEAD: Final = _FULL.index("enemy-0/position/x")  # numbers of ball, pads and the own car
OTHERS: Final = HEAD + len(_SEEN_BALL)  # where the blocks begin

_FARTHEST: Final = 2e4  # uu, more than any distance in the field


class TeamObs(DefaultObs):
    """RelativeObs's numbers, arranged so that one policy can play 1v1, 2v2 and 3v3.

    Ball, pad timers and the own car come first, 72 numbers as in DefaultObs. Then come five vectors in the
    car's frame (forward, right, up): the directions, of length 1, to the ball, and from the ball to the
    opponents' goal and to the own one; the ball's position and velocity relative to the car. The rest are
    blocks of 27 numbers, one for each other car: 1 where there is a car, DefaultObs's 20 numbers, then its
    position and velocity relative to the observing car, in that car's frame. A block without a car is 0.
    With room for three cars a team there are 222 numbers.

    Team mates are sorted by their distance from the observing car, nearest first, and so are opponents.
    Therefore no policy has to learn that its team mates can be exchanged. Cars equally far away keep the
    order of the state. As in DefaultObs, an orange car sees the field turned.

    With `ball_ahead` it ends with the ball to come, as RelativeObs does.

    Args:
        zero_padding: Cars in a full team. All arguments not named here are DefaultObs's.
        ball_ahead: Times ahead in seconds, see RelativeObs.

    Raises:
        ValueError: `zero_padding` is no whole number from 1 to 64, a factor is no number, or `ball_ahead` is
            refused as by RelativeObs.
    """

    def __init__(
        self, zero_padding: int = 3, *, ball_ahead: Sequence[float] | None = None, **coefficients: Any
    ) -> None:
        if zero_padding is None:
            raise ValueError("zero_padding is None, expected the cars of the largest team: 3 for 3v3")
        super().__init__(zero_padding, **coefficients)
        self.ball_ahead = () if ball_ahead is None else check_seconds("ball_ahead", ball_ahead)
        self._mates = zero_padding - 1
        self._others = 2 * zero_padding - 1
        # Team mates, places without one, opponents, places without one.
        self._farthest = (_FARTHEST * self.pos_coef) ** 2
        self._ranks = np.where(np.arange(self._others) < self._mates, 1, 3) * self._farthest

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`."""
        return "real", OTHERS + len(BLOCK) * self._others + 6 * len(self.ball_ahead)

    @with_native_form
    def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
        """Return observations `(N, cars, size)` float32, scaled; see `TableObs.build_batch`."""
        observations = super().build_batch(state, cars)  # raises for a car that is not there
        own = tuple(range(state.layout.cars) if cars is None else cars)
        around = find_surroundings(state.layout, own, self.zero_padding, self.pos_coef, self.lin_vel_coef)
        vectors, local = look_from_cars(state, around)
        shape = (*observations.shape[:2], self._others, -1)
        first = DIRECTIONS + 2  # vectors before those of cars
        observations[:, :, HEAD:OTHERS] = local[:, :, :first].reshape(*shape[:2], -1)
        blocks = observations[:, :, OTHERS:].reshape(shape)  # a view
        blocks[..., 0] = around.there
        blocks[..., -len(SEEN) :] = local[:, :, first:].reshape(shape)
        if max(state.layout.blue, state.layout.orange) > 1:
            order = self._nearest_first(vectors[:, :, first::2], around)
            blocks[:] = blocks.reshape(-1, len(BLOCK)).take(order, 0).reshape(shape)
        return self.add_ball_ahead(observations, state, own)

    def add_ball_ahead(
        self, observations: np.ndarray, state: MatchState, cars: tuple[int, ...]
    ) -> np.ndarray:
        """Return observations `(N, cars, size)` with the ball to come behind them, if it is asked for."""
        if not self.ball_ahead:
            return observations
        ahead = see_ball_ahead(state, cars, self.ball_ahead, self.pos_coef, self.lin_vel_coef)
        return np.concatenate([observations, ahead], 2)

    def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
        """Return the name of every number that a car is shown; see `TableObs.names`."""
        return (*super().names(blue, orange, car), *ball_ahead_names(self.ball_ahead))

    def _nearest_first(self, away: np.ndarray, around: Surroundings) -> np.ndarray:
        """Return the order of all blocks, `(N * cars * others,)` int, from `(N, cars, others, 3)`."""
        # The sum is float64, in which a rank takes nothing from a distance.
        distances = np.add.reduce(away * away, -1) + self.rank_blocks(around)
        order = distances.argsort(-1, kind="stable").reshape(-1, self._others)
        order += np.arange(0, order.size, self._others)[:, None]
        return np.asarray(order.reshape(-1))

    def rank_blocks(self, around: Surroundings) -> np.ndarray:
        """Return what keeps groups of blocks apart, `(cars, others)` float64, to add to squared distances."""
        return np.asarray(self._ranks - self._farthest * around.there)

    def _elements(self, layout: Layout, car: int) -> list[ObsNumber]:
        """Return the elements of one car's observation, in order; what is filled in later is 0."""
        every = super()._elements(layout, car)
        elements = [*every[:HEAD], *(ObsNumber(name, *nothing(layout)) for name in _SEEN_BALL)]
        for place in range(self._others):
            enemy = place - self._mates
            who = f"ally-{place}" if enemy < 0 else f"enemy-{enemy}"
            begin = HEAD + place * len(_SEEN_CAR)
            filler = ObsNumber("", *nothing(layout))
            block = [filler, *every[begin : begin + len(_SEEN_CAR)], *[filler] * len(SEEN)]
            elements += [
                element._replace(name=f"{who}/{name}") for name, element in zip(BLOCK, block, strict=True)
            ]
        return elements
