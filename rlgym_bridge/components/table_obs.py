"""The base of observations that show columns of the state: a table for each layout, made once.

MatchState (matches, columns) -> table of the layout -> (matches, cars, size) float32
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from rlgym.api import ObsBuilder
from rlgym.rocket_league.api import GameState

from rlgym_bridge.components.batch_form import describe_array, is_number_array
from rlgym_bridge.components.user_errors import locate_function
from rlgym_bridge.rlgym_state import car_of, cars_by_agent, from_rlgym
from rlgym_bridge.state import Layout, MatchState, layout_of
from rlgym_bridge.user_input.arguments import check_number, check_whole

TURNED: Final = (-1.0, -1.0, 1.0)
"""Signs of x, y, z where the field is turned by 180 degrees about z."""

FORWARD: Final = 0
UP: Final = 2
"""Columns of a rotation matrix."""

_MOST_COEFFICIENT: Final = 1e30  # in float32 numbers stay finite
_MOST_PADDING: Final = 64  # cars in a team; no game has as many


class NamedNumber(Protocol):
    """One number of an observation."""

    @property
    def name(self) -> str:
        """Name the number."""


Number = TypeVar("Number", bound=NamedNumber)
Table = TypeVar("Table")
Builder = TypeVar("Builder", bound="TableObs[Any, Any]")


class TableObs(ObsBuilder[Any, np.ndarray, GameState[Any], tuple[str, int]], Generic[Number, Table]):
    """An observation that shows columns of the state.

    Args:
        zero_padding: Cars in a full team; None for as many as there are.
        factors: Of its numbers, by the names of their arguments.

    Raises:
        ValueError: `zero_padding` is no whole number from 1 to 64; a factor is no number.
    """

    reads: tuple[str, ...] | None = ()
    """Ignored; it named the fields that a subclass reads."""

    def __init__(self, zero_padding: int | None, factors: Mapping[str, float]) -> None:
        super().__init__()
        if zero_padding is not None:
            check_whole("zero_padding", zero_padding, 1, _MOST_PADDING, "cars, or None")
        for name, value in factors.items():
            check_number(name, value, -_MOST_COEFFICIENT, _MOST_COEFFICIENT)
        self.zero_padding = zero_padding
        self._tables: dict[tuple[Layout, tuple[int, ...] | None], Table] = {}
        self._cars: int | None = None

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

    @abstractmethod
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

    @property
    def _places(self) -> int | None:
        """Cars that are shown; None while that depends on a match not seen yet."""
        return self._cars if self.zero_padding is None else 2 * self.zero_padding

    @abstractmethod
    def _elements(self, layout: Layout, car: int) -> list[Number]:
        """Return the numbers of one car's observation, in order."""

    @abstractmethod
    def _table(self, rows: list[list[Number]]) -> Table:
        """Return the numbers of some cars as arrays."""

    def table_of(self, state: MatchState, cars: Sequence[int] | None) -> Table:
        """Return the table of some cars, None for all, in matches like these."""
        layout, chosen = state.layout, None if cars is None else tuple(cars)
        table = self._tables.get((layout, chosen))
        if table is None:
            rows = [self._elements(layout, car) for car in (range(layout.cars) if chosen is None else chosen)]
            table = self._tables[layout, chosen] = self._table(rows)
        return table

    def _other_cars(self, layout: Layout, car: int) -> tuple[list[int], list[int]]:
        """Return a car's team mates and its opponents.

        Raises:
            ValueError: As `build_batch`.
        """
        if not 0 <= car < layout.cars:
            raise ValueError(
                f"there is no car {car}, expected one of the {layout.cars} cars 0..{layout.cars - 1}"
            )
        teams = {"blue": list(range(layout.blue)), "orange": list(range(layout.blue, layout.cars))}
        for team, members in teams.items():
            if self.zero_padding is not None and len(members) > self.zero_padding:
                raise ValueError(
                    f"the {team} team has {len(members)} cars and {type(self).__name__} has room for "
                    f"{self.zero_padding} (zero_padding) in a match of {layout.blue} against "
                    f"{layout.orange}; use a larger zero_padding, or None, and a policy trained with it"
                )
        blue, orange = teams.values()
        allies, enemies = (blue, orange) if car < layout.blue else (orange, blue)
        allies.remove(car)
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
