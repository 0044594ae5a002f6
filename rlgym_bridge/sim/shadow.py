"""Follow a match with a RocketSim arena, which knows what packets do not carry.

    state of tick N (counted)  -> refine -> the same, with wheels, auto-flips and bumps of tick N

The arena holds the match as it was a tick ago. It is stepped with the inputs that the game applied, its
hidden state is read, and then it is put where the packet says the match is. So it never drifts: an error
lasts a tick. Over 20,000 ticks of 1v1 and 6,000 of 3v3 every hidden field was RocketSim's own (measured,
2.2.1); on the real client this has not been measured.
"""

from collections.abc import Callable

import RocketSim as rsim

from rlgym_bridge.game import GRAVITY
from rlgym_bridge.sim.arena import make_arena, place_cars, set_mutators
from rlgym_bridge.sim.boost_thrust import use_game_thrust
from rlgym_bridge.sim.game_modes import PLAYED_MODES, mode_number
from rlgym_bridge.sim.game_rules import DEFAULT
from rlgym_bridge.sim.ruled_arena import stepper
from rlgym_bridge.sim.shadow_car import (
    BODY_NUMBERS,
    BOOST,
    BUMP_TICKS,
    CAR_NUMBERS,
    DEMOED,
    POSITION,
    ShadowCar,
    is_there,
    rotation_of,
)  # fmt: skip
from rlgym_bridge.state import MatchState, layout_of

_MOST_TICKS = 24  # a longer gap is not bridged: inputs change every few ticks
_BALL_LEAP = 100.0  # uu; at 6,000 uu/s it flies 50 a tick
_MOST = 1e6  # sum of a body's numbers; in the game it stays below 40,000
_BALL_START = 4 * layout_of(0, 0).column("ball_position")


class Shadow:
    """A simulation that follows one match.

    Args:
        state: Any state of the match; team sizes and hitboxes stay as they are there until `replace_cars`.
        mode: Name of the game mode: Soccar, Heatseeker or Snowday.

    Attributes:
        modes: Names of the game modes that can be followed.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
        ValueError: There are more than four cars in a team, or the mode is another one.
        RuntimeError: The pinned order of cars did not come up; see `make_arena`.
    """

    modes = frozenset(PLAYED_MODES)

    def __init__(self, state: MatchState, mode: str = "Soccar") -> None:
        self._mode = mode_number(mode)
        self._take(state, *_arena_of(_line_up(state), self._mode))

    def replace_cars(self, state: MatchState) -> None:
        """Replace the cars by those of another state, in the same arena: a new one takes 40 ms and more.

        Args:
            state: Any state with the new line-up.

        Raises:
            ValueError, RuntimeError: As for the constructor; nothing is followed until a call
                succeeds.
        """
        line_up = _line_up(state)
        try:
            arena, cars = self._arena, place_cars(self._arena, *line_up)
        except RuntimeError:  # the pinned order did not come up in this one
            arena, cars = _arena_of(line_up, self._mode)
        self._take(state, arena, cars)

    def _take(self, state: MatchState, arena: rsim.Arena, cars: list[rsim.Car]) -> None:
        layout = state.layout
        self._arena = arena
        self._cars = [ShadowCar(car) for car in cars]
        self._held: list[rsim.CarControls] = []
        self._step_arena = stepper(arena, cars, DEFAULT, self._held)
        self._offsets = [4 * (layout.car_start + row * layout.car_stride) for row in range(layout.cars)]
        self._rows = {car.id: row for row, car in enumerate(cars)}
        self._touches = [0] * layout.cars
        self._gravity = -arena.get_mutator_config().gravity.z / GRAVITY
        self._follows = False
        arena.set_ball_touch_callback(_touch_counter(self._touches, self._rows))

    def forget(self) -> None:
        """Take the next state as the first, for it does not follow from the last one."""
        self._follows = False

    def refine(self, state: MatchState, ticks: int, at_rest: bool, wrecks_moved: bool = False) -> list[int]:
        """Fill in what is hidden, in place: wheels, auto-flips, bump victims, and what follows from them.

        Args:
            state: One match: what a packet carries, and what was counted.
            ticks: Ticks since the last state; 0 for the same tick once more.
            at_rest: Whether all cars have just been placed and none has moved.
            wrecks_moved: Whether packets do not show the places of demolished cars: filled in too.

        Returns:
            Ticks of ball contact of each car since the last state, as simulated; empty where nothing was.
        """
        data = state.buffer.data.cast("B")
        values = [CAR_NUMBERS.unpack_from(data, offset) for offset in self._offsets]
        ball = BODY_NUMBERS.unpack_from(data, _BALL_START)
        if not all(map(_is_possible, [ball, *(one[POSITION:BOOST] for one in values)])):
            self.forget()  # RocketSim is not made for that; the next possible state begins anew
            return []
        stepped = self._follows and not at_rest and 0 < ticks <= _MOST_TICKS
        if stepped:
            self._step(values, ticks)
        foreseen = True
        for car, numbers in zip(self._cars, values, strict=True):
            if ticks == 0 and self._follows:
                car.place(car.car.get_state(), numbers)
            else:
                foreseen &= self._follow(car, numbers, ticks if stepped else 0, at_rest)
        if stepped and not foreseen:  # a car that was put elsewhere may have bumped another at once
            for car in self._cars:
                car.victim_doubt = BUMP_TICKS
        foreseen &= self._place_ball(ball, float(state.gravity[0]))
        if stepped and not foreseen:  # what was put elsewhere may have carried the wheels of another car
            for car in self._cars:
                car.wheels_known = False
        for car, offset, numbers in zip(self._cars, self._offsets, values, strict=True):
            car.show(data, offset, numbers)
            if wrecks_moved and car.demolished and car.foreseen:
                car.show_wreck(data, offset)
        self._follows = True
        return list(self._touches) if stepped else []

    def _step(self, values: list[tuple[float, ...]], ticks: int) -> None:
        self._touches[:] = [0] * len(self._touches)
        self._held[:] = [car.hold(numbers) for car, numbers in zip(self._cars, values, strict=True)]
        self._step_arena(ticks)

    def _follow(self, car: ShadowCar, numbers: tuple[float, ...], stepped: int, at_rest: bool) -> bool:
        """Take over one car; tell whether it is where it was expected, or new."""
        demolished = numbers[DEMOED] > 0
        new = at_rest or (car.demolished and not demolished)
        car.demolished = demolished
        state = car.read(numbers, stepped, self._rows) if stepped and not new else None
        car.place(state if state is not None else car.renew(numbers, new), numbers)
        car.foreseen = state is not None
        return new or car.foreseen

    def _place_ball(self, values: tuple[float, ...], gravity: float) -> bool:
        """Put the ball where the packet says it is; tell whether it was expected thereabouts."""
        if gravity != self._gravity:
            self._gravity = gravity
            mutators = self._arena.get_mutator_config()
            mutators.gravity = rsim.Vec(0, 0, -GRAVITY * gravity)
            set_mutators(self._arena, mutators)
        ball = self._arena.ball.get_state()
        if is_there(ball, values, 0):
            return True
        off = max(abs(a - b) for a, b in zip(ball.pos.as_tuple(), values[:3], strict=True))
        ball.pos, ball.vel, ball.ang_vel = (
            rsim.Vec(*values[:3]),
            rsim.Vec(*values[12:15]),
            rsim.Vec(*values[15:]),
        )
        ball.rot_mat = rotation_of(values[3:12])
        self._arena.ball.set_state(ball)
        return bool(off < _BALL_LEAP)


def _line_up(state: MatchState) -> tuple[list[int], list[int]]:
    """Return team and hitbox of each car, as RocketSim takes them."""
    return state.car_team[0].astype(int).tolist(), state.car_hitbox[0].astype(int).tolist()


def _arena_of(line_up: tuple[list[int], list[int]], mode: int) -> tuple[rsim.Arena, list[rsim.Car]]:
    """Make an arena with the mutators of the default rules of matches."""
    arena, cars = make_arena(*line_up, mode)
    mutators = arena.get_mutator_config()
    use_game_thrust(mutators, DEFAULT)
    set_mutators(arena, mutators)
    return arena, cars


def _is_possible(body: tuple[float, ...]) -> bool:
    """Tell whether the 18 numbers of a body are finite and of a size that the game has."""
    return sum(map(abs, body[:18])) < _MOST  # NaN is not


def _touch_counter(touches: list[int], rows: dict[int, int]) -> Callable[..., None]:
    """Return a callback that holds no arena: one that did would keep it alive for ever."""

    def count(arena: rsim.Arena, car: rsim.Car, data: object) -> None:
        touches[rows[car.id]] += 1

    return count
