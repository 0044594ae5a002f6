"""The observations of RLGym v1 and rlgym-sim, with which most bots before 2024 were trained.

The order of the numbers is that of RLGym v1's `AdvancedObs` and `DefaultObs` and of rlgym-tools'
`AdvancedObsPadder` [AechPro/rocket-league-gym-sim, rlgym_sim/utils/obs_builders; RLGym/rlgym-tools, v1].
"""

import math
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from rlgym_bridge.components import default_obs
from rlgym_bridge.components.batch_form import with_native_form
from rlgym_bridge.components.default_obs import ObsNumber, TableObs
from rlgym_bridge.game import CONTROL_NAMES, PAD_COUNT
from rlgym_bridge.state import Layout, MatchState

_HEAD: Final = 9 + len(CONTROL_NAMES) + PAD_COUNT  # numbers of ball, previous action and pads
_MOTION: Final = ("position", "linear_velocity")
_FLAGS: Final = ("on_ground", "has_flip", "is_demoed")


class AdvancedObs(TableObs):
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
        has_jump: Whether each car has a fourth flag, 1 while it has not jumped since it was on the ground, as
            in `AdvancedObsPadder`: with `zero_padding` 3 there are 237 numbers.
        pos_coef: Factor of positions, 1/uu.
        lin_vel_coef: Factor of velocities, s/uu.
        ang_vel_coef: Factor of angular velocities, s/rad.

    Raises:
        ValueError: `zero_padding` is no whole number from 1 to 64; a factor is no number.
    """

    def __init__(
        self,
        zero_padding: int | None = None,
        relative: bool = True,
        has_jump: bool = False,
        pos_coef: float = 1 / 2300,
        lin_vel_coef: float = 1 / 2300,
        ang_vel_coef: float = 1 / math.pi,
    ) -> None:
        factors = {"pos_coef": pos_coef, "lin_vel_coef": lin_vel_coef, "ang_vel_coef": ang_vel_coef}
        super().__init__(zero_padding, factors)
        self.relative, self.has_jump = relative, has_jump
        self._pos, self._vel, self._ang = factors.values()

    def get_obs_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("real", size)`; the size is -1 while it depends on a match not seen yet."""
        places = self._places
        if places is None:
            return "real", -1
        car = (19 + 6 * self.relative) + self.has_jump  # numbers of the own car
        return "real", _HEAD + car + (places - 1) * (car + 6 * self.relative)

    @with_native_form
    def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
        """Return observations `(N, cars, size)` float32; see `TableObs.build_batch`."""
        table = self.table_of(state, cars)
        shown = state.buffer.take(table.columns, 1)
        observations: np.ndarray = shown - state.buffer.take(table.origins, 1) * table.relative
        observations *= table.scales
        np.equal(shown, 0, out=observations, where=table.absent)
        return observations

    def _elements(self, layout: Layout, car: int) -> list[ObsNumber]:
        allies, enemies = self._other_cars(layout, car)
        is_turned = car >= layout.blue
        numbers = default_obs.ball_numbers(layout, (self._pos, self._vel, self._ang), is_turned)
        controls = layout.column("controls", car=car)
        numbers += [ObsNumber(f"previous/{name}", controls + i) for i, name in enumerate(CONTROL_NAMES)]
        numbers += default_obs.pad_numbers(layout, is_turned, "", is_absent=True)
        numbers += self._car(layout, "self", car, None, is_turned)
        for group, others in (("ally", allies), ("enemy", enemies)):
            for place, other in enumerate(others):
                who = f"{group}-{place}"
                shown = self._car(layout, who, car if other is None else other, car, is_turned)
                if other is None:
                    shown = [ObsNumber(number.name, *default_obs.nothing(layout)) for number in shown]
                numbers += shown
        return numbers

    def _car(
        self, layout: Layout, who: str, car: int, observer: int | None, is_turned: bool
    ) -> list[ObsNumber]:
        """Return the numbers of a car; `observer` is the car that looks at another one."""
        place, velocity = (layout.column(name, car=car) for name in _MOTION)
        numbers: list[ObsNumber] = []

        def add(name: str, column: int, origin: int | None, scale: float, stride: int = 1) -> None:
            numbers.extend(default_obs.vector(f"{who}/{name}", column, scale, is_turned, stride, origin))

        if self.relative:
            add("ball_position", layout.column("ball_position"), place, self._pos)
            add("ball_linear_velocity", layout.column("ball_linear_velocity"), velocity, self._vel)
        add("position", place, None, self._pos)
        add("forward", layout.column("rotation", default_obs.FORWARD, car), None, 1.0, 3)
        add("up", layout.column("rotation", default_obs.UP, car), None, 1.0, 3)
        add("linear_velocity", velocity, None, self._vel)
        add("angular_velocity", layout.column("angular_velocity", car=car), None, self._ang)
        numbers.append(ObsNumber(f"{who}/boost_amount", layout.column("boost_amount", car=car), scale=0.01))
        numbers += [ObsNumber(f"{who}/{name}", layout.column(name, car=car)) for name in _FLAGS]
        if self.has_jump:
            column = layout.column("has_jumped", car=car)
            numbers.append(ObsNumber(f"{who}/has_jump", column, is_absent=True))
        if observer is not None and self.relative:
            for name, column, scale in zip(_MOTION, (place, velocity), (self._pos, self._vel), strict=True):
                add(f"own_{name}", column, layout.column(name, car=observer), scale)
        return numbers
