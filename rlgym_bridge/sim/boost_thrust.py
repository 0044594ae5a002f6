"""Give boost in the air the game's thrust: a constant of the arena, and full throttle while a car boosts."""

from collections.abc import Sequence
from typing import Final

import RocketSim as rsim

GAME_BOOST_AIR: Final = 991.667 / 1058.333
"""Multiple of RocketSim's `boost_accel_air`, beside which throttle adds 66.67 uu/s^2."""


class ThrustArena:
    """An arena in which boost includes full throttle; its mutators need `use_game_thrust`.

    Where every car that boosts has throttle 1, the constant is exact and RocketSim makes all ticks at once.
    Otherwise they are made one by one, because a tank may run empty between two of them.

    Args:
        arena: The arena; with other cars, make a new one.
        cars: Its cars.
        held: The controls that the cars have, kept up to date by the caller; None has the arena asked.
    """

    def __init__(
        self, arena: rsim.Arena, cars: Sequence[rsim.Car], held: Sequence[rsim.CarControls] | None = None
    ) -> None:
        self._arena, self._cars, self._held = arena, list(cars), held

    def step(self, ticks: int = 1) -> None:
        """Step the arena with the cars' controls."""
        for controls in self._held if self._held is not None else [car.get_controls() for car in self._cars]:
            if controls.boost and controls.throttle != 1:
                break
        else:
            self._arena.step(ticks)
            return
        given = [car.get_controls() for car in self._cars]
        for _ in range(ticks):
            lifted = lift_throttle(self._cars, [car.get_state() for car in self._cars], given)
            self._arena.step(1)
            for number in lifted:
                self._cars[number].set_controls(given[number])


def lacks_throttle(controls: rsim.CarControls) -> bool:
    """Tell whether controls boost with less than full throttle."""
    return bool(controls.boost and controls.throttle != 1)


def lift_throttle(
    cars: Sequence[rsim.Car], before: Sequence[rsim.CarState], controls: Sequence[rsim.CarControls]
) -> list[int]:
    """Give full throttle to cars that boost with less.

    Args:
        cars: The cars; their controls are changed.
        before: State of each car before the tick.
        controls: What each car was given.

    Returns:
        Numbers of the cars that were changed.
    """
    lifted = []
    for number, (state, control) in enumerate(zip(before, controls, strict=True)):
        if lacks_throttle(control) and state.boost > 0:
            full = cars[number].get_controls()
            full.throttle = 1.0
            cars[number].set_controls(full)
            lifted.append(number)
    return lifted


def use_game_thrust(config: rsim.MutatorConfig, rules: frozenset[str]) -> None:
    """Change the boost's acceleration in the air where the rule `thrust` is among some.

    Args:
        config: Mutators of an arena, changed in place; set them afterwards.
        rules: Names of rules.
    """
    if "thrust" in rules:
        config.boost_accel_air *= GAME_BOOST_AIR
