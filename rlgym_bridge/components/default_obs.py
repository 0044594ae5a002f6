"""RLGym's default observation of a `MatchState`, for one match or for many at once.

    MatchState.buffer (matches, columns) -> take columns -> times scale -> (matches, cars, size) float32

Every number of `DefaultObs` is one column of the state times one constant, which for an orange car also
turns the field by 180 degrees about z. So a whole batch is one take and one multiplication.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from rlgym.api import ObsBuilder
from rlgym.rocket_league.api import GameState

from rlgym_bridge.components.batch_base import car_of
from rlgym_bridge.game import PAD_COUNT
from rlgym_bridge.rlgym_state import cars_by_agent, from_rlgym
from rlgym_bridge.state import Layout, MatchState, layout_of
from rlgym_bridge.user_input.arguments import check_number, check_whole

_AXES = "xyz"
_MOST_COEFFICIENT = 1e30  # in float32 numbers stay finite
_MOST_PADDING = 64  # cars in a team; no game has as many
_TURNED = (-1.0, -1.0, 1.0)  # signs of x, y, z where the field is turned by 180 degrees about z
_FORWARD, _UP = 0, 2  # columns of a rotation matrix

_SELF_FIELDS = (
    "is_holding_jump", "handbrake", "has_jumped", "is_jumping", "has_flipped", "is_flipping",
    "has_double_jumped", "can_flip", "air_time_since_jump",
)  # fmt: skip
_CAR_FLAGS = ("on_ground", "is_boosting", "is_supersonic")


class Element(NamedTuple):
    """One number of an observation: its name, its column of the state, and its factor."""

    name: str
    column: int
    scale: float


class _ObsTable(NamedTuple):
    """Columns and factors of the observations of some cars, `(cars, size)` each."""

    columns: np.ndarray
    scales: np.ndarray


class DefaultObs(ObsBuilder[Any, np.ndarray, GameState[Any], tuple[str, int]]):
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
        ValueError: `zero_padding` is no whole number from 1 to 64.
    """

    reads = (
        "ball_position", "ball_linear_velocity", "ball_angular_velocity", "pad_timer", "car_position",
        "car_rotation", "car_linear_velocity", "car_angular_velocity", "car_boost_amount",
        "car_demo_respawn_timer", *("car_" + name for name in (*_SELF_FIELDS, *_CAR_FLAGS)),
    )  # fmt: skip
    """Attributes of `MatchState` that are read."""

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
        super().__init__()
        if zero_padding is not None:
            check_whole("zero_padding", zero_padding, 1, _MOST_PADDING, "cars, or None")
        coefficients = {
            "pos_coef": pos_coef, "ang_coef": ang_coef, "lin_vel_coef": lin_vel_coef,
            "ang_vel_coef": ang_vel_coef, "pad_timer_coef": pad_timer_coef, "boost_coef": boost_coef,
        }  # fmt: skip
        for name, value in coefficients.items():
            check_number(name, value, -_MOST_COEFFICIENT, _MOST_COEFFICIENT)
        self.zero_padding = zero_padding
        self.pos_coef, self.ang_coef = pos_coef, ang_coef
        self.lin_vel_coef, self.ang_vel_coef = lin_vel_coef, ang_vel_coef
        self.pad_timer_coef, self.boost_coef = pad_timer_coef, boost_coef
        self._tables: dict[tuple[Layout, tuple[int, ...] | None], _ObsTable] = {}
        self._cars: int | None = None

    # --- RLGym's form ------------------------------------------------------------------------------

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`; the size is -1 while it depends on a match not seen yet, as RLGym's is."""
        places = self._cars if self.zero_padding is None else 2 * self.zero_padding
        return "real", -1 if places is None else len(_GLOBAL_NAMES) + places * len(_CAR_NAMES)

    def reset(
        self, agents: Sequence[Hashable], initial_state: GameState[Any], shared_info: dict[str, Any]
    ) -> None:
        """Take note of the number of cars."""
        self._cars = len(initial_state.cars)

    def build_obs(
        self, agents: Sequence[Hashable], state: GameState[Any], shared_info: dict[str, Any]
    ) -> dict[Hashable, np.ndarray]:
        """Return each agent's observation.

        Args:
            agents: Agents of `state` that need one.
            state: The game state.
            shared_info: Not read.

        Returns:
            For each agent `(size,)` float32.

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
        observations: np.ndarray = state.buffer.take(table.columns, 1)
        observations *= table.scales
        return observations

    def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
        """Return the name of every number that a car is shown.

        Raises:
            ValueError: As `build_batch`.
        """
        return tuple(element.name for element in self._elements(layout_of(blue, orange), car))

    def size(self, blue: int, orange: int) -> int:
        """Return how many numbers an observation has; the same for every car.

        Raises:
            ValueError: As `build_batch`; there is no car.
        """
        return len(self.names(blue, orange))

    # --- the table ---------------------------------------------------------------------------------

    def _table(self, layout: Layout, cars: tuple[int, ...] | None) -> _ObsTable:
        rows = [self._elements(layout, car) for car in (range(layout.cars) if cars is None else cars)]
        shape = (len(rows), len(rows[0]) if rows else 0)
        columns = np.array([[element.column for element in row] for row in rows], np.intp)
        scales = np.array([[element.scale for element in row] for row in rows], np.float32)
        return _ObsTable(columns.reshape(shape), scales.reshape(shape))

    def _elements(self, layout: Layout, car: int) -> list[Element]:
        """Return the elements of one car's observation, in order."""
        if not 0 <= car < layout.cars:
            raise ValueError(
                f"there is no car {car}, expected one of the {layout.cars} cars 0..{layout.cars - 1}"
            )
        teams = {"blue": range(layout.blue), "orange": range(layout.blue, layout.cars)}
        for team, members in teams.items():
            self._check_room(layout, team, len(members))
        turned = car in teams["orange"]
        own, other = teams["orange" if turned else "blue"], teams["blue" if turned else "orange"]
        elements = [*self._ball(layout, turned), *self._pads(layout, turned)]
        elements += [Element("self/" + name, layout.column(name, car=car), 1.0) for name in _SELF_FIELDS]
        elements += self._car(layout, "self", car, turned)
        elements += self._group(layout, "ally", [ally for ally in own if ally != car], 1, turned)
        elements += self._group(layout, "enemy", list(other), 0, turned)
        return elements

    def _check_room(self, layout: Layout, team: str, cars: int) -> None:
        if self.zero_padding is not None and cars > self.zero_padding:
            raise ValueError(
                f"the {team} team has {cars} cars and DefaultObs has room for {self.zero_padding} "
                f"(zero_padding) in a match of {layout.blue} against {layout.orange}; use a larger "
                "zero_padding, or None, and a policy trained with it"
            )

    def _group(
        self, layout: Layout, group: str, rows: list[int], taken: int, turned: bool
    ) -> Iterator[Element]:
        """Yield the cars of a group, then zeros for its empty places; `taken` places are the own car's."""
        for place, row in enumerate(rows):
            yield from self._car(layout, f"{group}-{place}", row, turned)
        if self.zero_padding is not None:
            for place in range(len(rows), self.zero_padding - taken):
                yield from _padding(layout, f"{group}-{place}")

    def _ball(self, layout: Layout, turned: bool) -> Iterator[Element]:
        for name, scale in (
            ("position", self.pos_coef),
            ("linear_velocity", self.lin_vel_coef),
            ("angular_velocity", self.ang_vel_coef),
        ):
            yield from _vector(f"ball/{name}", layout.column(f"ball_{name}"), 1, scale, turned)

    def _pads(self, layout: Layout, turned: bool) -> Iterator[Element]:
        for pad in range(PAD_COUNT):
            # Turning the field by 180 degrees maps pad i to pad 33 - i.
            column = layout.column("pad_timer", PAD_COUNT - 1 - pad if turned else pad)
            yield Element(f"pad/{pad}/timer", column, self.pad_timer_coef)

    def _car(self, layout: Layout, who: str, row: int, turned: bool) -> Iterator[Element]:
        def vector(
            name: str, field: str, scale: float, element: int = 0, stride: int = 1
        ) -> Iterator[Element]:
            return _vector(f"{who}/{name}", layout.column(field, element, row), stride, scale, turned)

        yield from vector("position", "position", self.pos_coef)
        yield from vector("forward", "rotation", 1.0, _FORWARD, 3)
        yield from vector("up", "rotation", 1.0, _UP, 3)
        yield from vector("linear_velocity", "linear_velocity", self.lin_vel_coef)
        yield from vector("angular_velocity", "angular_velocity", self.ang_vel_coef)
        yield Element(f"{who}/boost_amount", layout.column("boost_amount", car=row), self.boost_coef)
        for name in ("demo_respawn_timer", *_CAR_FLAGS):
            yield Element(f"{who}/{name}", layout.column(name, car=row), 1.0)


def _vector(name: str, column: int, stride: int, scale: float, turned: bool) -> Iterator[Element]:
    signs = _TURNED if turned else (1.0, 1.0, 1.0)
    for i, (axis, sign) in enumerate(zip(_AXES, signs, strict=True)):
        yield Element(f"{name}/{axis}", column + i * stride, sign * scale)


def _padding(layout: Layout, who: str) -> Iterator[Element]:
    """Yield zeros: any column that is always finite, times 0."""
    for i in range(len(_CAR_NAMES)):
        yield Element(f"{who}/padding/{i}", layout.column("phase"), 0.0)


_FULL = [element.name for element in DefaultObs(None)._elements(layout_of(1, 0), 0)]
_CAR_NAMES = tuple(_FULL[_FULL.index("self/position/x") :])
_GLOBAL_NAMES = tuple(_FULL[: _FULL.index("self/position/x")])
