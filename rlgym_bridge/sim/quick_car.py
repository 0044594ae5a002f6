"""A car's tick with all of the game's rules for wheels, jumps and dodges, in fewer steps of Python.

It does the arithmetic of `GameCar` in the same order, so that results are equal to the last bit
(tests/sim/test_quick_car.py). It leaves out vectors, memory of RocketSim's wheels, and terms that are 0.
"""

import math
from typing import Final

import RocketSim as rsim

from rlgym_bridge.game import GRAVITY, TICK_SECONDS
from rlgym_bridge.sim.chassis import Axes, Chassis
from rlgym_bridge.sim.game_car import STICKY, CarConstants, CarTick, GameCar, is_open
from rlgym_bridge.sim.jump_and_dodge import AIR_THROTTLE, JumpMemory, roll_upright
from rlgym_bridge.sim.quick_wheels import QuickWheels, Touch
from rlgym_bridge.sim.vectors import Vector
from rlgym_bridge.sim.wheel_forces import steering_of

_QUICK: Final = frozenset(("wheels", "jump", "dodge"))
_DOUBLE_JUMP: Final = 875 / 3  # uu/s
_PULL: Final = -STICKY * GRAVITY  # uu/s^2, of wheels that touch


def make_car(config: rsim.CarConfig, rules: frozenset[str]) -> GameCar:
    """Return the quickest car that plays by rules.

    Args:
        config: The car's hitbox and wheels.
        rules: Names of rules, `game_rules.RULES`; those for cars are used.
    """
    return QuickCar(config, rules) if rules >= _QUICK else GameCar(config, rules)


class QuickCar(GameCar):
    """A car with the rules for wheels, jumps and dodges; with or without `thrust`.

    Args:
        config: The car's hitbox and wheels.
        rules: Names of rules, with these three among them.
    """

    def __init__(self, config: rsim.CarConfig, rules: frozenset[str]) -> None:
        super().__init__(config, rules)
        self._touching = QuickWheels(self._wheels, self._inertia)

    def compute(
        self, before: rsim.CarState, after: rsim.CarState, controls: rsim.CarControls, constants: CarConstants
    ) -> CarTick | None:
        """Compute a tick, as `GameCar.compute` does."""
        place = before.pos.as_tuple()
        if (
            not is_open(place) or before.has_world_contact or after.has_world_contact
            or before.is_auto_flipping or after.is_auto_flipping
        ):  # fmt: skip
            return None
        axes: Axes = before.rot_mat.as_tuple()
        touches = self._touching.find(place[2], axes)
        touching, earlier = len(touches), sum(before.wheels_with_contact)
        boosts = controls.boost and before.boost > 0
        chassis = Chassis(self._inertia, axes, place, before.vel.as_tuple(), before.ang_vel.as_tuple())
        begun, forward = chassis.velocity, axes[0]
        speed = begun[0] * forward[0] + begun[1] * forward[1] + begun[2] * forward[2]
        chassis.accelerate(constants.gravity, 1.0)
        jumps = JumpMemory.of(before)
        pressed = controls.jump and not before.last_controls.jump
        if pressed or jumps.is_jumping or jumps.is_flipping or (touching and jumps.has_jumped):
            self._jump_and_turn(chassis, jumps, before, controls, constants, (touching, earlier, speed))
        else:
            _stay(chassis, jumps, controls, touching, earlier)
        fx, fy, fz = chassis.force
        air_throttle = 1.0 if boosts and self._thrust else controls.throttle
        if earlier < 3 and air_throttle:
            push = air_throttle * AIR_THROTTLE
            fx, fy, fz = fx + forward[0] * push, fy + forward[1] * push, fz + forward[2] * push
        if controls.throttle and 0 < earlier < 4:
            chassis.force = (fx, fy, fz)
            roll_upright(chassis)
            fx, fy, fz = chassis.force
        if earlier:
            fz += _PULL
        if touches:
            throttle = 1.0 if boosts else controls.throttle
            slide = after.handbrake_val
            steering = steering_of(throttle, controls.steer, controls.handbrake, slide, speed, touching)
            self._touching.drive(chassis, touches, steering, slide)
        if after.boosting_time > 0:
            push = constants.boost_ground if touching >= 3 else constants.boost_air
            fx, fy, fz = fx + forward[0] * push, fy + forward[1] * push, fz + forward[2] * push
        chassis.force = (fx, fy, fz)
        return _end(chassis, touches, jumps)


def _stay(
    chassis: Chassis, jumps: JumpMemory, controls: rsim.CarControls, touching: int, earlier: int
) -> None:
    """Count the times of a car that neither jumps nor dodges, and let it turn in the air."""
    if touching >= 3:
        jumps.has_jumped = jumps.has_double_jumped = jumps.has_flipped = False
        jumps.jump_time = jumps.air_time = jumps.air_time_since_jump = jumps.flip_time = 0.0
    else:
        jumps.air_time += TICK_SECONDS
        if jumps.has_jumped:
            jumps.jump_time += TICK_SECONDS
            jumps.air_time_since_jump += TICK_SECONDS
        else:
            jumps.air_time_since_jump = 0.0
    if earlier == 0:
        jumps.control(chassis, controls)
    if jumps.has_flipped:
        jumps.flip_time += TICK_SECONDS


def _end(chassis: Chassis, touches: list[Touch], jumps: JumpMemory) -> CarTick:
    """Let the tick's forces act, move the car, and return where it is."""
    struck = chassis.velocity
    chassis.apply_forces()
    velocity, spin, (x, y, z) = chassis.velocity, chassis.spin, chassis.position
    position = (
        x + velocity[0] * TICK_SECONDS,
        y + velocity[1] * TICK_SECONDS,
        z + velocity[2] * TICK_SECONDS,
    )
    numbers = [touch[0] for touch in touches]
    contacts = _ALL if len(touches) == 4 else tuple(number in numbers for number in range(4))
    return CarTick(position, velocity, spin, turned_axes(chassis.axes, spin), contacts, jumps, struck)


_ALL: Final = (True,) * 4


def turned_axes(axes: Axes, spin: Vector) -> Axes:
    """Return axes turned by an angular velocity in rad/s for a tick, as `vectors.turned` turns each."""
    x, y, z = spin
    rate = math.sqrt(x * x + y * y + z * z)
    angle = rate * TICK_SECONDS
    if angle < 1e-9:
        return axes
    share = 1 / rate
    x, y, z = x * share, y * share, z * share
    cosine, sine = math.cos(angle), math.sin(angle)
    rest = 1 - cosine
    turned: list[Vector] = []
    for a, b, c in axes:
        along = (x * a + y * b + z * c) * rest
        turned.append((
            a * cosine + (y * c - z * b) * sine + x * along,
            b * cosine + (z * a - x * c) * sine + y * along,
            c * cosine + (x * b - y * a) * sine + z * along,
        ))  # fmt: skip
    return turned[0], turned[1], turned[2]
