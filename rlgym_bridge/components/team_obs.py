"""An observation of one size for all team sizes: a block of numbers for each other car, nearest first.

MatchState.buffer -> take and scale, vectors in the car's frame -> blocks (cars, others, 27) -> sorted
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.ball_ahead import ball_ahead_names, check_seconds, see_ball_ahead
from rlgym_bridge.components.default_obs import DefaultObs, Element
from rlgym_bridge.components.native_form import with_native_form
from rlgym_bridge.components.relative_obs import (
    DIRECTIONS,
    RelativeObs,
    Surroundings,
    find_surroundings,
    look_from_cars,
)
from rlgym_bridge.state import Layout, MatchState

_FULL: Final = RelativeObs(None).names(1, 1)
_BALL: Final = tuple(
    f"relative/ball/{name}/{axis}"
    for name in ("direction", "to_goal", "to_own_goal", "position", "linear_velocity")
    for axis in ("forward", "right", "up")
)
_CAR: Final = tuple(name.removeprefix("enemy-0/") for name in _FULL if name.startswith("enemy-0/"))
SEEN: Final = tuple(name.replace("enemy-0/", "") for name in _FULL if name.startswith("relative/enemy-0/"))
BLOCK: Final = ("there", *_CAR, *SEEN)
HEAD: Final = _FULL.index("enemy-0/position/x")  # numbers of ball, pads and the own car
OTHERS: Final = HEAD + len(_BALL)  # where the blocks begin

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
        flat: np.ndarray = order.reshape(-1)
        return flat

    def rank_blocks(self, around: Surroundings) -> np.ndarray:
        """Return what keeps groups of blocks apart, `(cars, others)` float64, to add to squared distances."""
        ranks: np.ndarray = self._ranks - self._farthest * around.there
        return ranks

    def _elements(self, layout: Layout, car: int) -> list[Element]:
        """Return the elements of one car's observation, in order; what is filled in later is 0."""
        every = super()._elements(layout, car)
        filler = layout.column("phase")  # always finite
        elements = [*every[:HEAD], *(Element(name, filler, 0.0) for name in _BALL)]
        for place in range(self._others):
            enemy = place - self._mates
            who = f"ally-{place}" if enemy < 0 else f"enemy-{enemy}"
            begin = HEAD + place * len(_CAR)
            block = [
                Element("", filler, 0.0),
                *every[begin : begin + len(_CAR)],
                *[Element("", filler, 0.0)] * len(SEEN),
            ]
            elements += [
                element._replace(name=f"{who}/{name}") for name, element in zip(BLOCK, block, strict=True)
            ]
        return elements
