"""Step a RocketSim arena with the game's own rules.

Before a tick each car is remembered; RocketSim makes the tick; then cars that touch nothing but the flat
floor, with their wheels, are put where the game would have them (`GameCar`), velocities are cut and positions
rounded. What the rules do not reach stays RocketSim's.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.sim.boost_thrust import ThrustArena, lacks_throttle, lift_throttle
from rlgym_bridge.sim.car_contact import CarBox, boxes_touch
from rlgym_bridge.sim.game_car import CarConstants
from rlgym_bridge.sim.quick_car import make_car
from rlgym_bridge.sim.struck_cars import StruckCars
from rlgym_bridge.sim.vectors import Vector, add

_LINEAR, _SPIN = 100.0, 10000.0  # quanta per uu/s and per rad/s [captures of 2026]
_OFFSET: Final = 0.1  # of a quantum [the same]
_NOT_PRINTED: Final = 0.2  # of a quantum: a value of six digits may lack the offset
_STEPS: Final = 100.0  # of a position in a uu [the same]
_NEAR: Final = 190.0  # uu: two cars whose places are farther apart do not touch [hitboxes of RocketSim]
_CAR_RULES: Final = frozenset(("wheels", "jump", "dodge", "bump"))
_CUT_RULES: Final = frozenset(("velocity_cut", "position_rounding"))


class RuledArena:
    """An arena that is stepped with rules; equal arenas, controls and rules go on alike to the bit.

    All that a car remembers stands in its RocketSim state, so states may be set between ticks. With the rule
    `thrust` the arena's mutators need `use_game_thrust`.

    Args:
        arena: The arena; with other cars, make a new one.
        cars: Its cars.
        rules: Names of rules, see `game_rules.parse_rules`; none is RocketSim alone, at its own speed.
        with_ball: Whether the rules reach the ball; without, a tick of cars alone is quicker.
    """

    def __init__(
        self, arena: rsim.Arena, cars: Sequence[rsim.Car], rules: frozenset[str], with_ball: bool = True
    ) -> None:
        self.arena, self.cars, self.rules = arena, list(cars), rules
        self._has_game_cars = bool(rules & _CAR_RULES)
        self._corrects_ball = with_ball and bool(rules & _CUT_RULES)
        self._cuts, self._rounds = "velocity_cut" in rules, "position_rounding" in rules
        self._thrust, self._needs_loop = "thrust" in rules, bool(rules & (_CAR_RULES | _CUT_RULES))
        self._quick_step = stepper(arena, cars, rules & {"thrust"})
        self._configs = [car.get_config() for car in cars]
        self._game_cars = [make_car(config, rules) for config in self._configs]
        self._struck = StruckCars(self._configs, "bump" in rules)
        self.read_constants()

    def read_constants(self) -> None:
        """Read the arena's mutators anew: call it where they were changed."""
        self._constants = CarConstants.of(self.arena.get_mutator_config())

    def step(self, ticks: int = 1) -> None:
        """Step the arena with the cars' controls."""
        if not self._needs_loop:
            self._quick_step(ticks)
            return
        controls = [car.get_controls() for car in self.cars]
        lifts = self._thrust and any(map(lacks_throttle, controls))
        for _ in range(ticks):
            self._tick(controls, lifts)

    def step_without_rules(self, ticks: int = 1) -> None:
        """Step the arena as RocketSim does, which is quicker, where what comes out is set anew anyway."""
        self.arena.step(ticks)
        self._struck.forget()

    def _tick(self, controls: Sequence[rsim.CarControls], lifts: bool) -> None:
        before = [car.get_state() for car in self.cars]
        lifted = lift_throttle(self.cars, before, controls) if lifts else ()
        self.arena.step(1)
        for number in lifted:
            self.cars[number].set_controls(controls[number])
        self._correct_cars(before, controls, lifted)
        if self._corrects_ball:
            ball = self.arena.ball.get_state()
            self._cut(ball)
            self.arena.ball.set_state(ball)

    def _correct_cars(
        self, before: Sequence[rsim.CarState], controls: Sequence[rsim.CarControls], lifted: Sequence[int]
    ) -> None:
        ends = [car.get_state() for car in self.cars]
        bumps: dict[int, Vector] = {}
        touching: Collection[int] = ()
        near: Sequence[bool] = ()
        if self._has_game_cars:
            near = self._struck.watch(before, ends, controls, self.arena.ball.get_state(), self._constants)
            if len(ends) > 1 and any(near):
                bumps, touching = self._bumps_of(before, ends), self._touching(before)
        for number, car in enumerate(self.cars):
            after, earlier = ends[number], before[number]
            if after.is_demoed or earlier.is_demoed:
                continue
            if self._has_game_cars:
                struck = near[number] and (number in touching or _hit_ball(after, self.arena))
                self._play(number, earlier, after, controls[number], struck)
            if number in bumps:
                after.vel = rsim.Vec(*add(after.vel.as_tuple(), bumps[number]))
            self._cut(after)
            if number in lifted:
                after.last_controls = controls[number]
            car.set_state(after)

    def _play(
        self, number: int, before: rsim.CarState, after: rsim.CarState, controls: rsim.CarControls,
        struck: bool,
    ) -> None:  # fmt: skip
        """Compute a car's tick, and write it over RocketSim's where all that it met is known."""
        end = self._game_cars[number].compute(before, after, controls, self._constants)
        if end is not None and struck:
            end = self._struck.strike(number, end, after)
        if end is not None:
            end.write(after)

    def _bumps_of(self, before: Sequence[rsim.CarState], after: Sequence[rsim.CarState]) -> dict[int, Vector]:
        """Return what the bumps of this tick add to their victims' velocities."""
        numbers = {car.id: number for number, car in enumerate(self.cars)}
        return {
            numbers[new.car_contact_id]: self._struck.bump_of(
                bumper, numbers[new.car_contact_id], before, self._constants
            )
            for bumper, (old, new) in enumerate(zip(before, after, strict=True))
            if new.car_contact_cooldown_timer > old.car_contact_cooldown_timer
            and new.car_contact_id in numbers
        }

    def _touching(self, states: Sequence[rsim.CarState]) -> set[int]:
        """Return the cars whose bodies touch another's."""
        found = set()
        for first, second in combinations(range(len(states)), 2):
            one, other = states[first].pos, states[second].pos
            if abs(one.x - other.x) < _NEAR and abs(one.y - other.y) < _NEAR:
                boxes = [CarBox.of(states[number], self._configs[number]) for number in (first, second)]
                if boxes_touch(*boxes):
                    found |= {first, second}
        return found

    def _cut(self, state: rsim.CarState | rsim.BallState) -> None:
        if self._cuts:
            x, y, z = state.vel.as_tuple()
            state.vel = rsim.Vec(cut(x, _LINEAR), cut(y, _LINEAR), cut(z, _LINEAR))
            x, y, z = state.ang_vel.as_tuple()
            state.ang_vel = rsim.Vec(cut(x, _SPIN), cut(y, _SPIN), cut(z, _SPIN))
        if self._rounds:
            x, y, z = state.pos.as_tuple()
            state.pos = rsim.Vec(
                round(x * _STEPS) / _STEPS, round(y * _STEPS) / _STEPS, round(z * _STEPS) / _STEPS
            )


def stepper(
    arena: rsim.Arena,
    cars: Sequence[rsim.Car],
    rules: frozenset[str],
    held: Sequence[rsim.CarControls] | None = None,
) -> Callable[[int], None]:
    """Return the quickest function that steps an arena by some ticks with rules.

    Args:
        arena: The arena; with `thrust` among the rules its mutators need `use_game_thrust`.
        cars: Its cars.
        rules: Names of rules; without any RocketSim steps itself.
        held: The controls that the cars have, in a list that the caller keeps up to date, which is quicker
            than to ask the arena; None has it asked.
    """
    if rules == {"thrust"}:
        return ThrustArena(arena, cars, held).step
    return RuledArena(arena, cars, rules).step if rules else arena.step


def cut(value: float, quanta: float) -> float:
    """Cut a component of a velocity towards zero, as the game does after every tick.

    Args:
        value: uu/s or rad/s; 0 stays 0.
        quanta: How many steps make up 1: 100 for uu/s, 10,000 for rad/s.

    Returns:
        A multiple of the step plus a tenth of it, with the sign of the value.
    """
    if value > 0:
        return (int(value * quanta) + _OFFSET) / quanta
    return -((int(-value * quanta) + _OFFSET) / quanta) if value < 0 else value


def nearest_cut(values: np.ndarray, quanta: float) -> np.ndarray:
    """Give back the digits that a recording of the game did not print.

    Args:
        values: Components of velocities, uu/s or rad/s.
        quanta: As for `cut`.

    Returns:
        The same shape: a component that is within a fifth of a step of one that was cut is that one; others
        stay.
    """
    size = np.abs(values) * quanta
    whole = np.round(size - _OFFSET)
    near = (np.abs(size - _OFFSET - whole) < _NOT_PRINTED) & (whole >= 0) & (values != 0)
    return np.asarray(np.where(near, np.copysign((whole + _OFFSET) / quanta, values), values))


def _hit_ball(after: rsim.CarState, arena: rsim.Arena) -> bool:
    """Tell whether a car touched the ball in the latest tick."""
    hit = after.ball_hit_info
    return bool(hit.is_valid and hit.tick_count_when_hit == arena.tick_count - 1)
