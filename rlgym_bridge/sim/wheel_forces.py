"""The wheels of a car on the flat floor, as the game drives them or as RocketSim does.

Units are uu, s and rad; forces and impulses are per unit of mass, torques per unit of inertia. RocketSim's
order, constants and curves are those of its `Car.cpp` and `btVehicleRL.cpp`, 2.2.1. What the game does
otherwise stands in docs/gap/physics.md, with its evidence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import RocketSim as rsim

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.sim.chassis import Chassis
from rlgym_bridge.sim.vectors import UP, Vector, add, cross, dot, scaled, unit

Curve = Sequence[tuple[float, float]]

TRAVEL: Final = 12.0  # uu that a suspension gives way [RocketSim, MAX_SUSPENSION_TRAVEL]
SHORT: Final = 2.5  # uu by which RocketSim's rays end early [SUSPENSION_SUBTRACTION 0.05, 50 uu each]
STIFFNESS: Final = 500.0  # 1/s^2, times the scale [SUSPENSION_STIFFNESS]
COMPRESSION, RELAXATION = 25.0, 40.0  # 1/s, times the scale [WHEELS_DAMPING_COMPRESSION, RELAXATION]
_FRONT_SCALE, _BACK_SCALE = 35.75 / 180, 54.265 / 180  # per mass of 180 [SUSPENSION_FORCE_SCALE_*]
_ROCKETSIM_PUSH, GAME_PUSH = 0.2, 0.1  # share of a wheel's depth that is pushed out a tick [erp]
SIDE: Final = 0.2 * 60 / 120  # share of the sideways impulse per wheel [contactDamping, mass / 3, a tick]
ROLLING: Final = 113.73963 * 60 / 120 / 180  # braking per speed [ROLLING_FRICTION_SCALE_MAGIC]
_ENGINE: Final = 400.0  # uu/s^2 a wheel [THROTTLE_TORQUE_AMOUNT]
_BRAKE: Final = 3500.0 / 4 * TICK_SECONDS  # uu/s a tick and wheel [BRAKE_TORQUE_AMOUNT]
_COASTING: Final = 0.15  # of the brake [COASTING_BRAKE_FACTOR]
_STOPPING: Final = 25.0  # uu/s below which a coasting car stops [STOPPING_FORWARD_VEL]
_DEAD_ZONE: Final = 0.001  # of throttle [THROTTLE_DEADZONE]
SLIP: Final = 5.0  # uu/s sideways that are no slip [Car.cpp]

_DRIVE: Curve = ((0, 1.0), (1400, 0.1), (1410, 0.0))
_STEER: Curve = (
    (0, 0.53356), (500, 0.31930), (1000, 0.18203), (1500, 0.10570), (1750, 0.08507), (3000, 0.03454),
)  # fmt: skip
_POWERSLIDE_STEER: Curve = ((0, 0.39235), (2500, 0.12610))
SIDE_GRIP: Curve = ((0, 1.0), (1, 0.2))
_LOOSE_GRIP: Curve = ((0, 0.1), (0.7075, 0.5), (1, 1.0))
POWERSLIDE_GRIP: Curve = ((0, 0.5), (1, 0.9))
POWERSLIDE_SIDE: Final = 0.1


class Wheel(NamedTuple):
    """One wheel: front right, front left, back right, back left."""

    place: Vector
    """Of the suspension's upper end, in the car's axes."""
    rest: float
    """Length of the suspension at rest."""
    radius: float
    scale: float
    """Of the suspension's force."""


class Ray(NamedTuple):
    """A wheel's contact with the floor."""

    start: Vector
    """The suspension's upper end, from the car's centre."""
    contact: Vector
    """The contact point, from the car's centre."""
    reach: float
    """Length from one to the other."""


class Steering(NamedTuple):
    """Engine, brake and steering of one tick, for all wheels."""

    engine: float
    brake: float
    angle: float
    throttle: float


_STILL: Final = Steering(0.0, 0.0, 0.0, 0.0)


@dataclass
class WheelMemory:
    """A memory of what RocketSim's wheels carry on from tick to tick."""

    steering: Steering = _STILL
    grip: list[tuple[float, float]] = field(default_factory=lambda: [(1.0, 1.0)] * 4)
    push: list[float] = field(default_factory=lambda: [0.0] * 4)


def value_of(curve: Curve, at: float) -> float:
    """Return what a curve of straight lines gives; constant beyond its ends."""
    last = curve[0]
    if at <= last[0]:
        return last[1]
    for point in curve[1:]:
        if at <= point[0]:
            return last[1] + (point[1] - last[1]) * (at - last[0]) / (point[0] - last[0])
        last = point
    return last[1]


def wheels_of(config: rsim.CarConfig) -> list[Wheel]:
    """Return the wheels of a car: front right, front left, back right, back left."""
    wheels = []
    for pair, scale in ((config.front_wheels, _FRONT_SCALE), (config.back_wheels, _BACK_SCALE)):
        x, y, z = pair.connection_point_offset.as_tuple()
        rest = pair.suspension_rest_length - TRAVEL
        wheels += [Wheel((x, side * y, z), rest, pair.wheel_radius, scale) for side in (1, -1)]
    return wheels


def rays_to_floor(wheels: Sequence[Wheel], chassis: Chassis, game: bool) -> list[Ray | None]:
    """Return each wheel's contact with the plane z = 0; None where its ray does not reach."""
    forward, right, up = chassis.axes
    rays: list[Ray | None] = []
    for wheel in wheels:
        x, y, z = wheel.place
        start = (
            forward[0] * x + right[0] * y + up[0] * z,
            forward[1] * x + right[1] * y + up[1] * z,
            forward[2] * x + right[2] * y + up[2] * z,
        )
        height = chassis.position[2] + start[2]
        most = wheel.rest + TRAVEL + wheel.radius - (0.0 if game else SHORT)
        if 0 < height < most * up[2]:
            reach = height / up[2]
            rays.append(Ray(start, add(start, up, -reach), reach))
        else:
            rays.append(None)
    return rays


def steering_of(
    throttle: float, steer: float, handbrake: bool, slide: float, speed: float, wheels: int
) -> Steering:
    """Return engine, brake and steering angle.

    Args:
        throttle: 1 while boosting.
        steer: -1 to 1.
        handbrake: Whether it is pressed.
        slide: RocketSim's `handbrake_val`, 0 to 1.
        speed: Forward, uu/s.
        wheels: How many touch.
    """
    fast = abs(speed)
    engine, brake = throttle, 0.0
    if not handbrake:
        if abs(throttle) < _DEAD_ZONE:
            engine, brake = 0.0, 1.0 if fast < _STOPPING else _COASTING
        elif fast > _STOPPING and (throttle > 0) != (speed > 0):
            engine, brake = 0.0, 1.0
    angle = value_of(_STEER, fast)
    if slide:
        angle += (value_of(_POWERSLIDE_STEER, fast) - angle) * slide
    part = 1.0 if wheels >= 3 else 0.25
    return Steering(engine * _ENGINE * value_of(_DRIVE, fast) * part, brake * _BRAKE, angle * steer, throttle)


def axle_of(chassis: Chassis, number: int, angle: float) -> Vector:
    """Return the direction of a wheel's axle, to the right."""
    forward, right, _ = chassis.axes
    if number >= 2 or angle == 0:
        return right
    return add(scaled(right, math.cos(angle)), forward, -math.sin(angle))


def grip_of(
    ray: Ray, axle: Vector, velocity: Vector, spin: Vector, throttle: float, slide: float
) -> tuple[float, float]:
    """Return the shares of friction sideways and along."""
    speed = add(velocity, cross(spin, ray.start))
    side = abs(dot(speed, axle))
    slip = side / (abs(dot(speed, cross(axle, UP))) + side) if side > SLIP else 0.0
    sideways, along = value_of(SIDE_GRIP, slip), 1.0
    if slide:
        sideways *= (POWERSLIDE_SIDE - 1) * slide + 1
        along = (value_of(POWERSLIDE_GRIP, slip) - 1) * slide + 1
    if throttle == 0:
        loose = value_of(_LOOSE_GRIP, UP[2])
        sideways, along = sideways * loose, along * loose
    return sideways, along


def friction_of(
    chassis: Chassis, ray: Ray, axle: Vector, steering: Steering, grip: tuple[float, float],
    rolling: tuple[Vector, Vector], game: bool,
) -> Vector:  # fmt: skip
    """Return the impulse that a wheel's friction gives in a tick.

    Args:
        chassis: As it moves when the sideways friction is computed.
        ray: The wheel's contact.
        axle: Its direction, to the right.
        steering: Engine and brake.
        grip: Shares sideways and along.
        rolling: Velocity and spin of the car when the rolling friction is computed.
        game: Whether sideways is along the axle, as in the game, or along its shadow on the floor.
    """
    if not game:
        axle = unit((axle[0], axle[1], 0.0))
    back = unit((-axle[1], axle[0], 0.0))
    place = ray.contact
    sliding = dot(add(chassis.velocity, cross(chassis.spin, place)), axle)
    sideways = -SIDE * grip[0] * sliding / chassis.yield_at(place, axle)
    if steering.engine:
        along = -steering.engine * TICK_SECONDS
    elif steering.brake:
        speed = dot(add(rolling[0], cross(rolling[1], place)), back)
        along = min(max(-speed * ROLLING, -steering.brake), steering.brake)
    else:
        along = 0.0
    return add(scaled(back, along * grip[1]), axle, sideways)


def suspension_of(
    chassis: Chassis, wheel: Wheel, ray: Ray, velocity: Vector, spin: Vector, pushed: float, game: bool
) -> tuple[float, float]:
    """Return the upward impulse of a wheel's suspension in a tick, and its part that pushes the wheel out.

    Args:
        chassis: The car.
        wheel: The wheel.
        ray: Its contact.
        velocity: The car's, when the suspension is computed.
        spin: The same.
        pushed: The push of the tick before, which RocketSim keeps.
        game: The game's way or RocketSim's.
    """
    place, slope = ray.contact, chassis.axes[2][2]
    speed = add(velocity, cross(spin, place))[2]
    span = ray.reach - wheel.radius
    span = (
        min(span, wheel.rest + TRAVEL) if game else min(max(span, wheel.rest - TRAVEL), wheel.rest + TRAVEL)
    )
    rate, lean = (speed / slope, 1 / slope) if slope > 0.1 else (0.0, 10.0)
    force = (wheel.rest - span) * STIFFNESS * lean - (COMPRESSION if rate < 0 else RELAXATION) * rate
    depth = wheel.rest + wheel.radius - SHORT - ray.reach
    push = 0.0 if game else pushed
    if depth > 0:
        share = GAME_PUSH if game else _ROCKETSIM_PUSH
        push = max((share * depth / TICK_SECONDS - speed) / chassis.yield_at(place, UP), 0.0) / 4
    if force <= 0:
        return (push if game else 0.0), push
    return force * wheel.scale * TICK_SECONDS + push, push
