"""Cars that touch each other or the ball: RocketSim's contact, the game's wheels, and the game's bumps.

RocketSim's tick less the same tick computed without contact is what the contact did. That is added to the
tick as the game computes it.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import RocketSim as rsim

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.sim.game_car import CarConstants, CarTick, GameCar
from rlgym_bridge.sim.vectors import UP, Vector, add, dot, length, scaled, turned
from rlgym_bridge.sim.wheel_forces import Curve, value_of

_NEAR: Final = 270.0
"""uu between middles within which bodies may touch in the next tick or the one after it: 190 for two cars or
a car and the ball [hitboxes of RocketSim], and 80 that they come nearer in two ticks."""

_ROCKETSIM_CURVES: tuple[Curve, Curve, Curve] = (
    ((0, 5 / 6), (1400, 1100.0), (2200, 1530.0)),
    ((0, 5 / 6), (1400, 1390.0), (2200, 1945.0)),
    ((0, 2 / 6), (1400, 278.0), (2200, 417.0)),
)  # [BUMP_VEL_AMOUNT_GROUND_CURVE, BUMP_VEL_AMOUNT_AIR_CURVE, BUMP_UPWARD_VEL_AMOUNT_CURVE]
_KMH: Final = 1 / 3.6  # the game's are in km/h of its own [captures of 2026: ground and up]
_GAME_CURVES: tuple[Curve, Curve, Curve] = (
    ((0, 3 * _KMH), (1400, 4000 * _KMH), (2200, 5500 * _KMH)),
    ((0, 3 * _KMH), (1400, 5000 * _KMH), (2200, 7000 * _KMH)),
    ((0, 1.2 * _KMH), (1400, 1000 * _KMH), (2200, 1500 * _KMH)),
)


class StruckCars:
    """The cars of an arena without rules beside them, so that contacts can be told from all else.

    Args:
        configs: Hitbox and wheels of each car.
        bumps: Whether bumps push as the game's.
    """

    def __init__(self, configs: Sequence[rsim.CarConfig], bumps: bool) -> None:
        self._cars = [GameCar(config, frozenset()) for config in configs]
        self._ticks: list[CarTick | None] = [None] * len(configs)
        self._known = [False] * len(configs)
        self._bumps = bumps

    def watch(
        self, before: Sequence[rsim.CarState], after: Sequence[rsim.CarState],
        controls: Sequence[rsim.CarControls], ball: rsim.BallState, constants: CarConstants,
    ) -> list[bool]:  # fmt: skip
        """Compute the tick of cars that are near something as RocketSim would without contact.

        Returns:
            Which cars are near something, and may touch it in this tick.
        """
        places = [state.pos.as_tuple() for state in before]
        near = _which_are_near(places, ball.pos.as_tuple())
        for number, close in enumerate(near):
            if not close:
                self._ticks[number], self._known[number] = None, False
                continue
            known = self._known[number]  # what RocketSim carries over comes from the tick before
            tick = self._cars[number].compute(before[number], after[number], controls[number], constants)
            self._ticks[number], self._known[number] = (tick if known else None), tick is not None
        return near

    def forget(self) -> None:
        """Forget the tick before, after ticks that were not watched."""
        self._known = [False] * len(self._cars)

    def strike(self, number: int, game: CarTick, after: rsim.CarState) -> CarTick | None:
        """Return a tick of the game with the contact of RocketSim's; None where that is not known."""
        plain = self._ticks[number]
        if plain is None:
            return None
        position = add(add(game.position, after.pos.as_tuple()), plain.position, -1.0)
        velocity = add(add(game.velocity, after.vel.as_tuple()), plain.velocity, -1.0)
        spin = add(add(game.spin, after.ang_vel.as_tuple()), plain.spin, -1.0)
        turn, more = after.rot_mat, add(game.spin, plain.spin, -1.0)
        axes = [turned(axis.as_tuple(), more, TICK_SECONDS) for axis in (turn.forward, turn.right, turn.up)]
        return game._replace(
            position=position, velocity=velocity, spin=spin, axes=(axes[0], axes[1], axes[2])
        )

    def bump_of(
        self, bumper: int, victim: int, before: Sequence[rsim.CarState], constants: CarConstants
    ) -> Vector:
        """Return what the game's bump adds to a victim's velocity beyond RocketSim's, uu/s.

        The game takes the bumper's speed at the tick's start; RocketSim its speed towards the victim, with
        wheels and jump, when bodies meet.
        """
        tick, hit = self._ticks[bumper], self._ticks[victim]
        if not self._bumps or tick is None:
            return (0.0, 0.0, 0.0)
        between = add(before[victim].pos.as_tuple(), before[bumper].pos.as_tuple(), -1.0)
        theirs, ours = tick.struck, before[bumper].vel.as_tuple()
        contacts = hit.contacts if hit is not None else before[victim].wheels_with_contact
        stands = sum(contacts) >= 3
        up = before[victim].rot_mat.up.as_tuple() if stands else UP
        apart, fast = length(between), length(ours)
        if not apart or not fast or not length(theirs):
            return (0.0, 0.0, 0.0)
        towards = dot(theirs, between) / apart
        flat, rise = _ROCKETSIM_CURVES[0 if stands else 1], _ROCKETSIM_CURVES[2]
        change = scaled(theirs, -value_of(flat, towards) / length(theirs))
        change = add(change, up, -value_of(rise, towards) * constants.bump_scale)
        flat, rise = _GAME_CURVES[0 if stands else 1], _GAME_CURVES[2]
        change = add(change, ours, value_of(flat, fast) / fast)
        return add(change, up, value_of(rise, fast) * constants.bump_scale) if stands else change


def _which_are_near(places: Sequence[Vector], ball: Vector) -> list[bool]:
    """Return which cars are near the ball or another car, by their places and the ball's."""
    near = [_is_near(place, ball) for place in places]
    for first, second in combinations(range(len(places)), 2):
        if _is_near(places[first], places[second]):
            near[first] = near[second] = True
    return near


def _is_near(one: Vector, other: Vector) -> bool:
    return (
        -_NEAR < one[0] - other[0] < _NEAR and -_NEAR < one[1] - other[1] < _NEAR
        and -_NEAR < one[2] - other[2] < _NEAR
    )  # fmt: skip
