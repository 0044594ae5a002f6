"""The observations of RLGym v1 and rlgym-sim, with which most bots before 2024 were trained.

MatchState.buffer -> take columns, less those of origins, times factors -> (matches, cars, size) float32

The order of the numbers is that of RLGym v1's `AdvancedObs` and `DefaultObs` and of rlgym-tools'
`AdvancedObsPadder` [AechPro/rocket-league-gym-sim, rlgym_sim/utils/obs_builders; RLGym/rlgym-tools, v1].
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from rlgym.api import ObsBuilder
from rlgym.rocket_league.api import GameState

from rlgym_bridge.components.batch_base import car_of
from rlgym_bridge.game import CONTROL_NAMES, PAD_COUNT
from rlgym_bridge.rlgym_state import cars_by_agent, from_rlgym
from rlgym_bridge.state import Layout, MatchState, layout_of
from rlgym_bridge.user_input.arguments import check_number, check_whole

_TURNED: Final = (-1.0, -1.0, 1.0)  # signs of x, y, z where the field is turned by 180 degrees about z
_FORWARD, _UP = 0, 2  # columns of a rotation matrix
_MOST_PADDING: Final = 64
_MOST_COEFFICIENT: Final = 1e30
_HEAD: Final = 9 + len(CONTROL_NAMES) + PAD_COUNT  # numbers of ball, previous action and pads
_BALL: Final = ("position", "linear_velocity", "angular_velocity")
_MOTION: Final = ("position", "linear_velocity")
_FLAGS: Final = ("on_ground", "has_flip", "is_demoed")


class _Number(NamedTuple):
    """A number of an observation: a column less another one, times a factor.

    Attributes:
        name: Of the number.
        column: Of the state.
        origin: Column that is subtracted; None for none.
        scale: Factor.
        is_absent: Whether 1 is shown where the column is 0, and 0 elsewhere.
    """

    name: str
    column: int
    origin: int | None = None
    scale: float = 1.0
    is_absent: bool = False


class _AdvancedTable(NamedTuple):
    """The numbers of some cars, `(cars, size)` each: `relative` is 1 where an origin is subtracted."""

    columns: np.ndarray
    origins: np.ndarray
    relative: np.ndarray
    scales: np.ndarray
    absent: np.ndarray


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
        self._pos, self._vel, self._ang = factors.values()
        self._cars: int | None = None
        self._tables: dict[tuple[Layout, tuple[int, ...] | None], _AdvancedTable] = {}

    # --- RLGym's form ------------------------------------------------------------------------------

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`; the size is -1 while it depends on a match not seen yet."""
        places = self._cars if self.zero_padding is None else 2 * self.zero_padding
        if places is None:
            return "real", -1
        car = (19 + 6 * self.relative) + self.has_jump  # numbers of the own car
        return "real", _HEAD + car + (places - 1) * (car + 6 * self.relative)

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
        key = (state.layout, None if cars is None else tuple(cars))
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = self._table(*key)
        shown = state.buffer.take(table.columns, 1)
        observations: np.ndarray = shown - state.buffer.take(table.origins, 1) * table.relative
        observations *= table.scales
        np.equal(shown, 0, out=observations, where=table.absent)
        return observations

    def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
        """Return the name of every number that a car is shown.

        Raises:
            ValueError: As `build_batch`.
        """
        return tuple(number.name for number in self._numbers(layout_of(blue, orange), car))

    def size(self, blue: int, orange: int) -> int:
        """Return how many numbers an observation has; the same for every car."""
        return len(self.names(blue, orange))

    # --- the table ---------------------------------------------------------------------------------

    def _table(self, layout: Layout, cars: tuple[int, ...] | None) -> _AdvancedTable:
        rows = [self._numbers(layout, car) for car in (range(layout.cars) if cars is None else cars)]
        shape = (len(rows), len(rows[0]) if rows else 0)

        def table(of: Callable[[_Number], Any], kind: type) -> np.ndarray:
            return np.array([[of(number) for number in row] for row in rows], kind).reshape(shape)

        return _AdvancedTable(
            table(lambda number: number.column, np.intp),
            table(lambda number: number.column if number.origin is None else number.origin, np.intp),
            table(lambda number: number.origin is not None, np.float32),
            table(lambda number: number.scale, np.float32),
            table(lambda number: number.is_absent, np.bool_),
        )

    def _numbers(self, layout: Layout, car: int) -> list[_Number]:
        """Return the numbers that a car is shown, in order."""
        allies, enemies = self._others(layout.blue, layout.orange, car)
        is_turned = car >= layout.blue
        numbers: list[_Number] = []
        for name, scale in zip(_BALL, (self._pos, self._vel, self._ang), strict=True):
            numbers += _vector(f"ball/{name}", layout.column(f"ball_{name}"), None, scale, is_turned)
        controls = layout.column("controls", car=car)
        numbers += [_Number(f"previous/{name}", controls + i) for i, name in enumerate(CONTROL_NAMES)]
        for pad in range(PAD_COUNT):
            # Turning the field by 180 degrees maps pad i to pad 33 - i.
            column = layout.column("pad_timer", PAD_COUNT - 1 - pad if is_turned else pad)
            numbers.append(_Number(f"pad/{pad}", column, is_absent=True))
        numbers += self._car(layout, "self", car, None, is_turned)
        for group, others in (("ally", allies), ("enemy", enemies)):
            for place, other in enumerate(others):
                who = f"{group}-{place}"
                shown = self._car(layout, who, car if other is None else other, car, is_turned)
                if other is None:  # zeros: a column that is always finite, times 0
                    shown = [_Number(number.name, layout.column("phase"), scale=0.0) for number in shown]
                numbers += shown
        return numbers

    def _car(
        self, layout: Layout, who: str, car: int, observer: int | None, is_turned: bool
    ) -> list[_Number]:
        """Return the numbers of a car; `observer` is the car that looks at another one."""
        place, velocity = (layout.column(name, car=car) for name in _MOTION)
        numbers: list[_Number] = []

        def add(name: str, column: int, origin: int | None, scale: float, stride: int = 1) -> None:
            numbers.extend(_vector(f"{who}/{name}", column, origin, scale, is_turned, stride))

        if self.relative:
            add("ball_position", layout.column("ball_position"), place, self._pos)
            add("ball_linear_velocity", layout.column("ball_linear_velocity"), velocity, self._vel)
        add("position", place, None, self._pos)
        add("forward", layout.column("rotation", _FORWARD, car), None, 1.0, 3)
        add("up", layout.column("rotation", _UP, car), None, 1.0, 3)
        add("linear_velocity", velocity, None, self._vel)
        add("angular_velocity", layout.column("angular_velocity", car=car), None, self._ang)
        numbers.append(_Number(f"{who}/boost_amount", layout.column("boost_amount", car=car), scale=0.01))
        numbers += [_Number(f"{who}/{name}", layout.column(name, car=car)) for name in _FLAGS]
        if self.has_jump:
            column = layout.column("has_jumped", car=car)
            numbers.append(_Number(f"{who}/has_jump", column, is_absent=True))
        if observer is not None and self.relative:
            for name, column, scale in zip(_MOTION, (place, velocity), (self._pos, self._vel), strict=True):
                add(f"own_{name}", column, layout.column(name, car=observer), scale)
        return numbers

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


def _vector(
    name: str, column: int, origin: int | None, scale: float, is_turned: bool, stride: int = 1
) -> list[_Number]:
    """Return x, y and z of a vector, from an origin if there is one."""
    signs = _TURNED if is_turned else (1.0, 1.0, 1.0)
    return [
        _Number(f"{name}/{axis}", column + i * stride, None if origin is None else origin + i, sign * scale)
        for i, (axis, sign) in enumerate(zip("xyz", signs, strict=True))
    ]
