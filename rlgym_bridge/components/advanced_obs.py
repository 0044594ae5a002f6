"""The observations of RLGym v1 and rlgym-sim, with which most bots before 2024 were trained.

MatchState -> ball, previous action, pads -> own car -> team mates, opponents: (matches, cars, size) float32

The order of the numbers is that of RLGym v1's `AdvancedObs` and `DefaultObs` and of rlgym-tools'
`AdvancedObsPadder` [AechPro/rocket-league-gym-sim, rlgym_sim/utils/obs_builders; RLGym/rlgym-tools, v1].
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np
from rlgym.api import ObsBuilder
from rlgym.rocket_league.api import GameState

from rlgym_bridge.components.batch_base import car_of
from rlgym_bridge.game import CONTROL_NAMES, PAD_COUNT
from rlgym_bridge.rlgym_state import cars_by_agent, from_rlgym
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_number, check_whole

_TURNED: Final = np.array((-1.0, -1.0, 1.0), np.float32)  # x, y, z where the field is turned about z
_FORWARD, _UP = 0, 2  # columns of a rotation matrix
_MOST_PADDING: Final = 64
_MOST_COEFFICIENT: Final = 1e30
_VECTORS: Final = ("position", "forward", "up", "linear_velocity", "angular_velocity")
_BALL_FIRST: Final = ("ball_position", "ball_linear_velocity")
_OWN_FIRST: Final = ("own_position", "own_linear_velocity")
_FLAGS: Final = ("boost_amount", "on_ground", "has_flip", "is_demoed")


class AdvancedObs(ObsBuilder[Any, np.ndarray, GameState[Any], tuple[str, int]]):
    """RLGym v1's observations: `AdvancedObs`, `AdvancedObsPadder` and `DefaultObs`.

    In this order: position, linear and angular velocity of the ball; the eight controls of the previous
    action; 34 pads, 1 while a pad can be taken; the own car, its team mates, its opponents, each group
    in the order of the state. A car is the ball's position and linear velocity relative to it, its
    position, forward and up, its linear and angular velocity, its boost (0 to 1), and whether it is on
    the ground, has a flip left and is demolished: 25 numbers. For other cars, position and linear
    velocity relative to the own car follow. An orange car sees the field turned by 180 degrees about z.
    A 1v1 has 107 numbers.

    The previous action is what drove the car on the last tick. RLGym's own `GameState` has no controls
    but the jump button, so `build_obs` shows zeros for the others; in matches and in training here they
    are known.

    Args:
        zero_padding: Cars in a full team; places without a car are 0, as `AdvancedObsPadder` has it. None: as
            many places as there are cars.
        relative: Whether vectors relative to ball and own car are shown. False for v1's `DefaultObs`, which
            has 89 numbers in 1v1.
        has_jump: Whether a fifth flag says that a car has not jumped since it was on the ground, as
            `AdvancedObsPadder` has it: with `zero_padding` 3 there are 237 numbers.
        pos_coef: Factor of positions, 1/uu.
        lin_vel_coef: Factor of velocities, s/uu.
        ang_vel_coef: Factor of angular velocities, s/rad.

    Raises:
        ValueError: `zero_padding` is no whole number from 1 to 64; a factor is no number.
    """

    reads = (
        "ball_position", "ball_linear_velocity", "ball_angular_velocity", "pad_timer", "car_position",
        "car_rotation", "car_linear_velocity", "car_angular_velocity", "car_boost_amount", "car_controls",
        "car_on_ground", "car_has_flip", "car_is_demoed", "car_has_jumped",
    )  # fmt: skip
    """Attributes of `MatchState` that are read."""

    def __init__(
        self,
        zero_padding: int | None = None,
        relative: bool = True,
        has_jump: bool = False,
        pos_coef: float = 1 / 2300,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
    ) -> None:
        super().__init__()
        if zero_padding is not None:
            check_whole("zero_padding", zero_padding, 1, _MOST_PADDING, "cars, or None")
        factors = {"pos_coef": pos_coef, "lin_vel_coef": lin_vel_coef, "ang_vel_coef": ang_vel_coef}
        for name, value in factors.items():
            check_number(name, value, -_MOST_COEFFICIENT, _MOST_COEFFICIENT)
        self.zero_padding, self.relative, self.has_jump = zero_padding, relative, has_jump
        self._pos, self._vel, self._ang = (np.float32(value) for value in factors.values())
        self._cars: int | None = None

    # --- RLGym's form ------------------------------------------------------------------------------

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`; the size is -1 while it depends on a match not seen yet."""
        places = self._cars if self.zero_padding is None else 2 * self.zero_padding
        if places is None:
            return "real", -1
        own, other = len(self._own_names()), len(self._other_names())
        return "real", len(_head_names()) + own + (places - 1) * other

    def reset(
        self, agents: Sequence[Hashable], initial_state: GameState[Any], shared_info: dict[str, Any]
    ) -> None:
        """Take note of the number of cars."""
        self._cars = len(initial_state.cars)

    def build_obs(
        self, agents: Sequence[Hashable], state: GameState[Any], shared_info: dict[str, Any]
    ) -> dict[Hashable, np.ndarray]:
        """Return `(size,)` float32 for each agent; the previous action is 0.

        Raises:
            ValueError: An agent has no car, or a team has more cars than `zero_padding`.
        """
        self._cars = len(state.cars)
        by_agent = cars_by_agent(state)
        cars = [car_of(by_agent, agent) for agent in agents]
        return dict(zip(agents, self.build_batch(from_rlgym(state), cars)[0], strict=True))

    # --- batch form --------------------------------------------------------------------------------

    def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
        """Return the observations of some cars in every match.

        Args:
            state: N matches, derived fields filled.
            cars: Observing cars, by their place in the state; None for all.

        Returns:
            `(N, cars, size)` float32, a new array.

        Raises:
            ValueError: There is no such car, or a team has more cars than `zero_padding`.
        """
        own = range(state.layout.cars) if cars is None else cars
        seen = [self._seen_by(state, car) for car in own]
        return np.stack(seen, 1) if seen else np.zeros((state.matches, 0, 0), np.float32)

    def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
        """Return the name of every number that a car is shown.

        Raises:
            ValueError: As `build_batch`.
        """
        allies, enemies = self._others(blue, orange, car)
        names = [*_head_names(), *(f"self/{name}" for name in self._own_names())]
        for group, places in (("ally", allies), ("enemy", enemies)):
            names += [f"{group}-{i}/{name}" for i in range(len(places)) for name in self._other_names()]
        return tuple(names)

    def size(self, blue: int, orange: int) -> int:
        """Return how many numbers an observation has; the same for every car."""
        return len(self.names(blue, orange))

    # --- the numbers -------------------------------------------------------------------------------

    def _seen_by(self, state: MatchState, car: int) -> np.ndarray:
        """Return what a car is shown, `(N, size)`."""
        allies, enemies = self._others(state.layout.blue, state.layout.orange, car)
        turn = np.float32(1) if car < state.layout.blue else _TURNED
        pads = np.equal(state.pad_timer, 0)
        ball = [state.ball_position * turn, state.ball_linear_velocity * turn]
        parts = [
            ball[0] * self._pos, ball[1] * self._vel, state.ball_angular_velocity * turn * self._ang,
            state.car_controls[:, car], pads if car < state.layout.blue else pads[:, ::-1],
            *self._car(state, car, turn, ball),
        ]  # fmt: skip
        own = [state.car_position[:, car] * turn, state.car_linear_velocity[:, car] * turn]
        nobody = np.zeros((state.matches, len(self._other_names())), np.float32)
        for other in (*allies, *enemies):
            parts += [nobody] if other is None else self._car(state, other, turn, ball, own)
        return np.concatenate(parts, 1, dtype=np.float32)

    def _car(
        self,
        state: MatchState,
        car: int,
        turn: Any,
        ball: Sequence[np.ndarray],
        own: Sequence[np.ndarray] | None = None,
    ) -> list[np.ndarray]:
        """Return the numbers of a car, `(N, n)` each; `own` are place and velocity of the car that looks."""
        place, velocity = state.car_position[:, car] * turn, state.car_linear_velocity[:, car] * turn
        rotation = state.car_rotation[:, car]
        parts = [(ball[0] - place) * self._pos, (ball[1] - velocity) * self._vel] if self.relative else []
        parts += [
            place * self._pos, rotation[:, :, _FORWARD] * turn, rotation[:, :, _UP] * turn,
            velocity * self._vel, state.car_angular_velocity[:, car] * turn * self._ang,
        ]  # fmt: skip
        flags = [state.car_on_ground[:, car], state.car_has_flip[:, car], state.car_is_demoed[:, car]]
        if self.has_jump:
            flags.append(np.equal(state.car_has_jumped[:, car], 0))
        parts.append(np.stack([state.car_boost_amount[:, car] / 100, *flags], 1))
        if own is not None and self.relative:
            parts += [(place - own[0]) * self._pos, (velocity - own[1]) * self._vel]
        return parts

    def _others(self, blue: int, orange: int, car: int) -> tuple[list[int | None], list[int | None]]:
        """Return a car's team mates and opponents; None for a place without a car."""
        if not 0 <= car < blue + orange:
            raise ValueError(f"there is no car {car}, expected one of the {blue + orange} cars from 0 on")
        blues: list[int | None] = list(range(blue))
        oranges: list[int | None] = list(range(blue, blue + orange))
        allies, enemies = (blues, oranges) if car < blue else (oranges, blues)
        allies.remove(car)
        if self.zero_padding is not None:
            if max(blue, orange) > self.zero_padding:
                raise ValueError(
                    f"the match is {blue} against {orange}, and AdvancedObs has room for {self.zero_padding} "
                    "cars in a team (zero_padding); expected a policy that was trained with more"
                )
            allies += [None] * (self.zero_padding - 1 - len(allies))
            enemies += [None] * (self.zero_padding - len(enemies))
        return allies, enemies

    def _own_names(self) -> list[str]:
        vectors = (*_BALL_FIRST, *_VECTORS) if self.relative else _VECTORS
        flags = (*_FLAGS, "has_jump") if self.has_jump else _FLAGS
        return [*_axes(vectors), *flags]

    def _other_names(self) -> list[str]:
        return self._own_names() + (_axes(_OWN_FIRST) if self.relative else [])


def _head_names() -> list[str]:
    ball = _axes(f"ball/{name}" for name in ("position", "linear_velocity", "angular_velocity"))
    return [
        *ball, *(f"previous/{name}" for name in CONTROL_NAMES), *(f"pad/{i}" for i in range(PAD_COUNT))
    ]  # fmt: skip


def _axes(names: Any) -> list[str]:
    return [f"{name}/{axis}" for name in names for axis in "xyz"]
