"""Observations that show columns of the state: their base, and RLGym's default one in batches.

    MatchState.buffer (matches, columns) -> take columns -> times scale -> (matches, cars, size) float32

The factor turns the field by 180 degrees about z for an orange car, too.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from rlgym.api import ObsBuilder

from rlgym_bridge.components.batch_form import describe_array, is_number_array, with_native_form
from rlgym_bridge.components.rlgym_state import car_of, cars_by_agent, from_rlgym
from rlgym_bridge.components.rlgym_types import Agents, Game, SharedInfo
from rlgym_bridge.components.user_errors import check_arguments, locate_function
from rlgym_bridge.game import PAD_COUNT
from rlgym_bridge.state import Layout, MatchState, layout_of
from rlgym_bridge.user_input.arguments import check_number, check_whole

TURNED: Final = (-1.0, -1.0, 1.0)  # signs of x, y, z where the field is turned by 180 degrees about z
FORWARD: Final = 0  # column of a rotation matrix
UP: Final = 2

_MOST_COEFFICIENT: Final = 1e30  # in float32 numbers stay finite
_MOST_PADDING: Final = 64  # cars in a team; no game has as many


class ObsNumber(NamedTuple):
    """A number of an observation: a column of the state, less that of an `origin`, times `scale`.

    With `is_absent` it is 1 where the column is 0, and 0 elsewhere.
    """

    name: str
    column: int
    scale: float = 1.0
    origin: int | None = None
    is_absent: bool = False


class ObsTable(NamedTuple):
    """The numbers of some cars, `(cars, size)` each: `relative` is 1 where an origin is subtracted."""

    columns: np.ndarray
    scales: np.ndarray
    origins: np.ndarray
    relative: np.ndarray
    absent: np.ndarray


Builder = TypeVar("Builder", bound="TableObs")


class TableObs(ObsBuilder[Any, np.ndarray, Game, tuple[str, int]]):
    """An observation that shows columns of the state; `factors` are its scales, by their names.

    Raises ValueError if `zero_padding`, cars in a full team, is no whole number from 1 to 64; a factor is no
    number.
    """

    def __init__(self, zero_padding: int | None, factors: Mapping[str, float]) -> None:
        super().__init__()
        if zero_padding is not None:
            check_whole("zero_padding", zero_padding, 1, _MOST_PADDING, "cars, or None")
        for name, value in factors.items():
            check_number(name, value, -_MOST_COEFFICIENT, _MOST_COEFFICIENT)
        self.zero_padding = zero_padding
        self._tables: dict[tuple[Layout, tuple[int, ...] | None], ObsTable] = {}
        self._cars: int | None = None

    def reset(self, agents: Agents, initial_state: Game, shared_info: SharedInfo) -> None:
        """Take note of the number of cars."""
        self._cars = len(initial_state.cars)

    def build_obs(self, agents: Agents, state: Game, shared_info: SharedInfo) -> dict[Hashable, np.ndarray]:
        """Return each agent's observation, `(size,)` float32; raises ValueError as `build_batch`."""
        self._cars = len(state.cars)
        by_agent = cars_by_agent(state)
        cars = [car_of(by_agent, agent) for agent in agents]
        return dict(zip(agents, self.build_batch(from_rlgym(state), cars)[0], strict=True))

    @abstractmethod
    def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
        """Return the observations of some cars in every match, `(N, cars, size)` float32, a new array.

        Args:
            state: N matches, derived fields filled.
            cars: Observing cars, by their place in the state; None for all.

        Raises ValueError if there is no such car, or a team has more cars than `zero_padding`.
        """

    def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
        """Return the name of every number that a car is shown; raises as `build_batch`."""
        return tuple(element.name for element in self._elements(layout_of(blue, orange), car))

    def size(self, blue: int, orange: int) -> int:
        """Return how many numbers an observation has; the same for every car."""
        return len(self.names(blue, orange))

    @property
    def _places(self) -> int | None:
        """Cars that are shown; None while that depends on a match not seen yet."""
        return self._cars if self.zero_padding is None else 2 * self.zero_padding

    @abstractmethod
    def _elements(self, layout: Layout, car: int) -> list[ObsNumber]:
        """Return the numbers of one car's observation, in order."""

    def _table(self, rows: list[list[ObsNumber]]) -> ObsTable:
        shape = (len(rows), len(rows[0]) if rows else 0)

        def array(of: Callable[[ObsNumber], Any], kind: type) -> np.ndarray:
            return np.array([[of(number) for number in row] for row in rows], kind).reshape(shape)

        return ObsTable(
            array(lambda number: number.column, np.intp),
            array(lambda number: number.scale, np.float32),
            array(lambda number: number.column if number.origin is None else number.origin, np.intp),
            array(lambda number: number.origin is not None, np.float32),
            array(lambda number: number.is_absent, np.bool_),
        )

    def table_of(self, state: MatchState, cars: Sequence[int] | None) -> ObsTable:
        """Return the table of some cars, None for all, in matches like these."""
        layout, chosen = state.layout, None if cars is None else tuple(cars)
        table = self._tables.get((layout, chosen))
        if table is None:
            rows = [self._elements(layout, car) for car in (range(layout.cars) if chosen is None else chosen)]
            table = self._tables[layout, chosen] = self._table(rows)
        return table

    def _other_cars(self, layout: Layout, car: int) -> tuple[list[int | None], list[int | None]]:
        """Return a car's team mates and its opponents, None for each place without a car."""
        if not 0 <= car < layout.cars:
            raise ValueError(
                f"there is no car {car}, expected one of the {layout.cars} cars 0..{layout.cars - 1}"
            )
        for team, members in (("blue", layout.blue), ("orange", layout.orange)):
            if self.zero_padding is not None and members > self.zero_padding:
                raise ValueError(
                    f"the {team} team has {members} cars and {type(self).__name__} has room for "
                    f"{self.zero_padding} (zero_padding) in a match of {layout.blue} against "
                    f"{layout.orange}; use a larger zero_padding, or None, and a policy trained with it"
                )
        return other_cars(layout, car, self.zero_padding)


def other_cars(
    layout: Layout, car: int, zero_padding: int | None
) -> tuple[list[int | None], list[int | None]]:
    """Return a car's team mates and its opponents, padded with None to teams of `zero_padding` cars."""
    blue: list[int | None] = list(range(layout.blue))
    orange: list[int | None] = list(range(layout.blue, layout.cars))
    allies, enemies = (blue, orange) if car < layout.blue else (orange, blue)
    allies.remove(car)
    if zero_padding is not None:
        allies += [None] * (zero_padding - 1 - len(allies))
        enemies += [None] * (zero_padding - len(enemies))
    return allies, enemies


def add_number(builder: type[Builder]) -> Callable[[Callable[[MatchState], np.ndarray]], type[Builder]]:
    """Make an observation of a function: what `builder` shows, and one number more; a decorator.

    The function takes N matches and returns the number of every car, `(N, cars)`. In its place stands the
    class of the observation, which a policy folder can name. The number has the function's name.

    Args:
        builder: An observation of this project, or one that this decorator has made.
    """

    def extend(function: Callable[[MatchState], np.ndarray]) -> type[Builder]:
        base: Any = builder
        check_arguments(function, f"the number {function.__name__}", "state")

        class Extended(base):
            def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
                kind, size = super().get_obs_space(agent)
                return kind, size + 1 if size > 0 else size  # not known before the first match

            def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
                return (*super().names(blue, orange, car), function.__name__)

            def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
                numbers = function(state)
                expected = (state.matches, state.layout.cars)
                if not is_number_array(numbers) or numbers.shape != expected:
                    raise ValueError(
                        f"{function.__name__} gave {describe_array(numbers)}, expected an array {expected} "
                        f"of numbers: matches and cars{locate_function(function)}"
                    )
                own = numbers if cars is None else numbers[:, list(cars)]
                seen = super().build_batch(state, cars)
                return np.concatenate([seen, own[..., None]], -1, dtype=np.float32, casting="same_kind")

        Extended.__name__ = Extended.__qualname__ = function.__name__
        Extended.__module__, Extended.__doc__ = function.__module__, function.__doc__
        return Extended

    return extend


_SELF_FIELDS = (
    "is_holding_jump", "handbrake", "has_jumped", "is_jumping", "has_flipped", "is_flipping",
    "has_double_jumped", "can_flip", "air_time_since_jump",
)  # fmt: skip
_CAR_FLAGS = ("demo_respawn_timer", "on_ground", "is_boosting", "is_supersonic")
_CAR_SIZE: Final = 5 * 3 + 1 + len(_CAR_FLAGS)
_HEAD: Final = 3 * 3 + PAD_COUNT + len(_SELF_FIELDS)  # numbers before the cars


class DefaultObs(TableObs):
    """RLGym's default observation, number by number, with a name for each.

    In this order: ball position, linear and angular velocity; 34 pad timers; nine numbers of the own car
    that an opponent could not see; the own car, its team mates, its opponents, each group in the order of
    the state, 20 numbers each. An orange car sees the field turned, so that its own goal is at -y.

    Args:
        zero_padding: Cars in a full team; places without a car are 0. None: as many places as there are
            cars, so that the size depends on the match.
        pos_coef: Factor of positions, 1/uu.
        ang_coef: Factor of angles. RLGym has it and uses it nowhere; kept so that its arguments fit.
        lin_vel_coef: Factor of velocities, s/uu.
        ang_vel_coef: Factor of angular velocities, s/rad.
        pad_timer_coef: Factor of pad timers, 1/s.
        boost_coef: Factor of the boost amount, which is 0..100.

    Raises:
        ValueError: `zero_padding` is no whole number from 1 to 64, or a factor is no number.
    """

    def __init__(
        self,
        zero_padding: int | None = 3,
        pos_coef: float = 1 / 2300,
        ang_coef: float = 1 / math.pi,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
        pad_timer_coef: float = 1 / 10,
        boost_coef: float = 1 / 100,
    ) -> None:
        coefficients = {
            "pos_coef": pos_coef, "ang_coef": ang_coef, "lin_vel_coef": lin_vel_coef,
            "ang_vel_coef": ang_vel_coef, "pad_timer_coef": pad_timer_coef, "boost_coef": boost_coef,
        }  # fmt: skip
        super().__init__(zero_padding, coefficients)
        self.pos_coef, self.ang_coef = pos_coef, ang_coef
        self.lin_vel_coef, self.ang_vel_coef = lin_vel_coef, ang_vel_coef
        self.pad_timer_coef, self.boost_coef = pad_timer_coef, boost_coef

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`; the size is -1 while it depends on a match not seen yet, as RLGym's is."""
        places = self._places
        return "real", -1 if places is None else _HEAD + places * _CAR_SIZE

    @with_native_form
    def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
        """Return observations `(N, cars, size)` float32; see `TableObs.build_batch`."""
        table = self.table_of(state, cars)
        observations: np.ndarray = state.buffer.take(table.columns, 1)
        observations *= table.scales
        return observations

    def _elements(self, layout: Layout, car: int) -> list[ObsNumber]:
        allies, enemies = self._other_cars(layout, car)
        turned = car >= layout.blue
        scales = (self.pos_coef, self.lin_vel_coef, self.ang_vel_coef)
        elements = ball_numbers(layout, scales, turned)
        elements += pad_numbers(layout, turned, "/timer", self.pad_timer_coef)
        elements += [ObsNumber("self/" + name, layout.column(name, car=car)) for name in _SELF_FIELDS]
        elements += self._car(layout, "self", car, turned)
        for group, others in (("ally", allies), ("enemy", enemies)):
            for place, other in enumerate(others):
                who = f"{group}-{place}"
                if other is None:
                    elements += [ObsNumber(f"{who}/padding/{i}", *nothing(layout)) for i in range(_CAR_SIZE)]
                else:
                    elements += self._car(layout, who, other, turned)
        return elements

    def _car(self, layout: Layout, who: str, row: int, turned: bool) -> list[ObsNumber]:
        numbers = []
        for name, field, scale, first, stride in (
            ("position", "position", self.pos_coef, 0, 1),
            ("forward", "rotation", 1.0, FORWARD, 3),
            ("up", "rotation", 1.0, UP, 3),
            ("linear_velocity", "linear_velocity", self.lin_vel_coef, 0, 1),
            ("angular_velocity", "angular_velocity", self.ang_vel_coef, 0, 1),
        ):
            numbers += vector(f"{who}/{name}", layout.column(field, first, row), scale, turned, stride)
        numbers.append(
            ObsNumber(f"{who}/boost_amount", layout.column("boost_amount", car=row), self.boost_coef)
        )
        return numbers + [ObsNumber(f"{who}/{name}", layout.column(name, car=row)) for name in _CAR_FLAGS]


def vector(
    name: str, column: int, scale: float, turned: bool, stride: int = 1, origin: int | None = None
) -> list[ObsNumber]:
    """Return x, y and z of a vector, from an origin if there is one."""
    signs = TURNED if turned else (1.0, 1.0, 1.0)
    return [
        ObsNumber(f"{name}/{axis}", column + i * stride, sign * scale, None if origin is None else origin + i)
        for i, (axis, sign) in enumerate(zip("xyz", signs, strict=True))
    ]


def ball_numbers(layout: Layout, scales: Sequence[float], turned: bool) -> list[ObsNumber]:
    """Return the ball's position, linear and angular velocity."""
    names = ("position", "linear_velocity", "angular_velocity")
    return [
        number
        for name, scale in zip(names, scales, strict=True)
        for number in vector(f"ball/{name}", layout.column(f"ball_{name}"), scale, turned)
    ]


def pad_numbers(
    layout: Layout, turned: bool, suffix: str, scale: float = 1.0, is_absent: bool = False
) -> list[ObsNumber]:
    """Return the pads' timers; turning the field by 180 degrees maps pad i to pad 33 - i."""
    columns = [layout.column("pad_timer", PAD_COUNT - 1 - pad if turned else pad) for pad in range(PAD_COUNT)]
    return [
        ObsNumber(f"pad/{pad}{suffix}", column, scale, is_absent=is_absent)
        for pad, column in enumerate(columns)
    ]


def nothing(layout: Layout) -> tuple[int, float]:
    """Return column and factor of a number that is 0: a column that is always finite, times 0."""
    return layout.column("phase"), 0.0
