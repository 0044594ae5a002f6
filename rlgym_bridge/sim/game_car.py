"""A car's tick on the flat floor or in the air, computed as the game does it.

RocketSim's order of a tick: wheels touch -> jump, dodge, air control -> suspension -> friction -> boost ->
move -> caps. Each rule changes its part. With no rule the result is RocketSim's own, up to float32
(tests/sim/test_game_car.py holds that).
"""

from typing import Final, NamedTuple

import RocketSim as rsim

from rlgym_bridge.game import GRAVITY, TICK_SECONDS
from rlgym_bridge.sim.chassis import Chassis
from rlgym_bridge.sim.jump_and_dodge import JumpMemory, roll_upright, throttle_in_air
from rlgym_bridge.sim.vectors import UP, Vector, add, dot, limited, turned
from rlgym_bridge.sim.wheel_forces import (
    Ray,
    Steering,
    Wheel,
    WheelMemory,
    axle_of,
    friction_of,
    grip_of,
    rays_to_floor,
    steering_of,
    suspension_of,
    wheels_of,
)

_FASTEST, _FASTEST_SPIN = 2300.0, 5.5  # uu/s, rad/s [CAR_MAX_SPEED, CAR_MAX_ANG_SPEED]
STICKY: Final = 0.5  # of gravity [Car.cpp, stickyForceScale]
_OPEN_X, _OPEN_Y, _OPEN_SUM, _OPEN_Z = 3760.0, 4795.0, 7380.0, 1900.0
"""uu: within |x|, |y|, |x| + |y| and z nothing but the flat floor is near a car's wheels. The curves rise
from |x| 3840, |y| 4875, |x| + |y| 7490 on [collision meshes of rlgym-rocket-league]."""


Motion = tuple[Vector, Vector]


class CarConstants(NamedTuple):
    """The arena's constants that a car's tick uses, in uu and s."""

    gravity: Vector
    boost_ground: float
    boost_air: float
    jump_impulse: float
    jump_push: float
    unlimited_flips: bool
    unlimited_double_jumps: bool
    bump_scale: float

    @classmethod
    def of(cls, config: rsim.MutatorConfig) -> "CarConstants":
        """Read them."""
        return cls(
            config.gravity.as_tuple(), config.boost_accel_ground, config.boost_accel_air,
            config.jump_immediate_force, config.jump_accel, config.unlimited_flips,
            config.unlimited_double_jumps, config.bump_force_scale,
        )  # fmt: skip


class CarTick(NamedTuple):
    """The end of a car's tick.

    Attributes:
        position, velocity, spin: uu, uu/s, rad/s.
        axes: Forward, right and up.
        contacts: Which wheels touched the floor.
        jumps: The memory of jump and dodge.
        struck: Velocity when bodies collide: with jump and wheels, without gravity, boost and air control.
    """

    position: Vector
    velocity: Vector
    spin: Vector
    axes: tuple[Vector, Vector, Vector]
    contacts: tuple[bool, ...]
    jumps: JumpMemory
    struck: Vector

    def write(self, state: rsim.CarState) -> None:
        """Write it into a car's state."""
        state.pos, state.vel = rsim.Vec(*self.position), rsim.Vec(*limited(self.velocity, _FASTEST))
        state.ang_vel = rsim.Vec(*limited(self.spin, _FASTEST_SPIN))
        state.rot_mat = rsim.RotMat(*self.axes[0], *self.axes[1], *self.axes[2])
        state.is_on_ground = sum(self.contacts) >= 3
        state.wheels_with_contact = self.contacts
        self.jumps.write(state)


class GameCar:
    """A car whose ticks are computed as the game does it.

    Args:
        config: The car's hitbox and wheels.
        rules: Names of rules, `game_rules.RULES`; those for cars are used.
    """

    def __init__(self, config: rsim.CarConfig, rules: frozenset[str]) -> None:
        self._wheels: list[Wheel] = wheels_of(config)
        x, y, z = config.hitbox_size.as_tuple()
        self._inertia = (12 / (y * y + z * z), 12 / (x * x + z * z), 12 / (x * x + y * y))
        self._dead_zone = float(config.dodge_deadzone)
        self._game_wheels, self._game_jump = "wheels" in rules, "jump" in rules
        self._game_dodge, self._thrust = "dodge" in rules, "thrust" in rules
        self.memory = WheelMemory()

    def play(
        self, before: rsim.CarState, after: rsim.CarState, controls: rsim.CarControls, constants: CarConstants
    ) -> bool:
        """Compute a tick, and write its end over RocketSim's.

        Velocities are neither cut nor positions rounded.

        Args:
            before: The car before the tick.
            after: The car after RocketSim's tick; boost and handbrake are taken from it, all that moves is
                written to it.
            controls: Of this tick.
            constants: Of the arena.

        Returns:
            False where this car cannot be computed: near walls, on its roof, while an auto-flip is under
            way, or when RocketSim saw its body touch something. Then `after` stays as it was.
        """
        end = self.compute(before, after, controls, constants)
        if end is None:
            return False
        end.write(after)
        return True

    def compute(
        self, before: rsim.CarState, after: rsim.CarState, controls: rsim.CarControls, constants: CarConstants
    ) -> CarTick | None:
        """Compute a tick; arguments and what cannot be computed, None, as for `play`."""
        turn, place = before.rot_mat, before.pos.as_tuple()
        axes = (turn.forward.as_tuple(), turn.right.as_tuple(), turn.up.as_tuple())
        chassis = Chassis(self._inertia, axes, place, before.vel.as_tuple(), before.ang_vel.as_tuple())
        if not is_open(place) or before.has_world_contact or after.has_world_contact:
            return None
        if before.is_auto_flipping or after.is_auto_flipping:
            return None
        rays = rays_to_floor(self._wheels, chassis, self._game_wheels)
        touching = sum(ray is not None for ray in rays)
        jumps = JumpMemory.of(before)
        self._move(chassis, rays, touching, jumps, before, after, controls, constants)
        struck = chassis.velocity
        chassis.apply_forces()
        position = add(place, chassis.velocity, TICK_SECONDS)
        forward, right, up = (turned(axis, chassis.spin, TICK_SECONDS) for axis in axes)
        contacts = tuple(ray is not None for ray in rays)
        return CarTick(
            position, chassis.velocity, chassis.spin, (forward, right, up), contacts, jumps, struck
        )

    def _move(
        self, chassis: Chassis, rays: list[Ray | None], touching: int, jumps: JumpMemory,
        before: rsim.CarState, after: rsim.CarState, controls: rsim.CarControls, constants: CarConstants,
    ) -> None:  # fmt: skip
        """Change velocity and spin by impulses, and collect the forces of the tick."""
        begun = (chassis.velocity, chassis.spin)
        speed = dot(begun[0], chassis.axes[0])
        contacts = before.wheels_with_contact
        earlier = sum(contacts) if self._game_wheels else touching
        boosts = controls.boost and before.boost > 0
        throttle = 1.0 if boosts else controls.throttle
        air_throttle = 1.0 if boosts and self._thrust else controls.throttle
        steering = steering_of(
            throttle, controls.steer, controls.handbrake, after.handbrake_val, speed, touching
        )
        chassis.accelerate(constants.gravity, 1.0)
        self._jump_and_turn(chassis, jumps, before, controls, constants, (touching, earlier, speed))
        jumped = (chassis.velocity, chassis.spin)
        if earlier < 3 and air_throttle:
            throttle_in_air(chassis, air_throttle)
        if controls.throttle and 0 < earlier < 4:
            roll_upright(chassis)
        if earlier:
            chassis.accelerate(UP, -STICKY * GRAVITY)
        self._drive(chassis, rays, steering, after.handbrake_val, begun, jumped)
        if after.boosting_time > 0:
            on_ground = touching >= 3
            chassis.accelerate(chassis.axes[0], constants.boost_ground if on_ground else constants.boost_air)

    def _jump_and_turn(
        self, chassis: Chassis, jumps: JumpMemory, before: rsim.CarState, controls: rsim.CarControls,
        constants: CarConstants, contact: tuple[int, int, float],
    ) -> None:  # fmt: skip
        """Let jump, dodge and air control act; a dodge of the game turns in its own tick."""
        touching, earlier, speed = contact
        pressed, on_ground = controls.jump and not before.last_controls.jump, touching >= 3
        if earlier < 3 and not self._game_dodge:
            jumps.turn_in_air(chassis, controls, earlier, True, False)
        force = (constants.jump_impulse, constants.jump_push)
        jumps.jump(chassis, controls.jump, pressed, on_ground, force, self._game_jump)
        limits = (875 / 3, self._dead_zone, constants.unlimited_flips, constants.unlimited_double_jumps)
        jumps.dodge(chassis, controls, pressed, on_ground, speed, limits, self._game_dodge)
        if earlier < 3 and self._game_dodge:
            jumps.turn_in_air(chassis, controls, earlier, True, True)
        jumps.damp_fall(chassis, self._game_dodge)

    def _drive(
        self, chassis: Chassis, rays: list[Ray | None], steering: Steering, slide: float,
        begun: Motion, jumped: Motion,
    ) -> None:  # fmt: skip
        """Let suspension and friction act, and remember what RocketSim carries on to the next tick.

        Args:
            chassis: The car after jump and dodge.
            rays: Contacts of the wheels.
            steering: Of this tick.
            slide: RocketSim's `handbrake_val`.
            begun: Velocity and spin at the tick's start.
            jumped: After jump and dodge.
        """
        memory, game = self.memory, self._game_wheels
        used = steering if game else memory.steering
        grips = memory.grip
        axles = [axle_of(chassis, number, used.angle) for number in range(4)]
        known = [(number, ray) for number, ray in enumerate(rays) if ray is not None]
        fresh = list(grips)
        slipping = jumped if game else begun
        for number, ray in known:
            fresh[number] = grip_of(ray, axles[number], *slipping, steering.throttle, slide)
        frictions = []
        if not game:  # all of it is of the tick before but the speed
            chassis.velocity, chassis.spin = begun
            for number, ray in known:
                frictions.append(friction_of(chassis, ray, axles[number], used, grips[number], begun, False))
            chassis.velocity, chassis.spin = jumped
        sprung = jumped if self._game_jump else begun
        pushes = [0.0] * 4
        lifts = []
        for number, ray in known:
            wheel, pushed = self._wheels[number], memory.push[number]
            lift, pushes[number] = suspension_of(chassis, wheel, ray, *sprung, pushed, game)
            lifts.append((lift, ray))
        for lift, ray in lifts:
            chassis.push((0.0, 0.0, lift), ray.contact)
        if game:
            for number, ray in known:
                frictions.append(friction_of(chassis, ray, axles[number], used, fresh[number], jumped, True))
        up = chassis.axes[2]
        for friction, (_, ray) in zip(frictions, known, strict=True):
            chassis.push(friction, add(ray.contact, up, -dot(up, ray.contact)))
        self.memory = WheelMemory(steering, fresh, pushes)


def is_open(place: Vector) -> bool:
    """Tell whether nothing but the flat floor can be near a car."""
    x, y, z = abs(place[0]), abs(place[1]), place[2]
    return x < _OPEN_X and y < _OPEN_Y and x + y < _OPEN_SUM and z < _OPEN_Z
