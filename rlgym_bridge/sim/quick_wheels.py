"""Suspension and friction of a car's wheels as the game has them, in fewer steps of Python.

The arithmetic and its order are those of `wheel_forces`; see there for units and constants.
"""

import math
from collections.abc import Sequence
from typing import Final

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.sim.chassis import Axes, Chassis
from rlgym_bridge.sim.vectors import Vector, length
from rlgym_bridge.sim.wheel_forces import (
    COMPRESSION,
    GAME_PUSH,
    POWERSLIDE_SIDE,
    RELAXATION,
    ROLLING,
    SHORT,
    SIDE,
    SLIP,
    STIFFNESS,
    TRAVEL,
    Steering,
    Wheel,
)

Touch = tuple[int, Vector, Vector, float]
"""Number of a wheel on the floor; its suspension's upper end and its contact point from the car's centre; its
reach."""

_SPARE: Final = 1.0  # uu, so that rounding leaves no wheel out
_Axle = tuple[float, float, float, float, float, float]  # to the right, and back


class QuickWheels:
    """The wheels of one car.

    Args:
        wheels: Front right, front left, back right, back left.
        inertia: Inverse inertia about the car's axes, per unit of mass.
    """

    def __init__(self, wheels: Sequence[Wheel], inertia: Vector) -> None:
        self._inertia = inertia
        self._wheels = [
            (number, *wheel.place, wheel.rest + TRAVEL + wheel.radius) for number, wheel in enumerate(wheels)
        ]
        self._springs = [(wheel.rest, wheel.rest + TRAVEL, wheel.radius, wheel.scale) for wheel in wheels]
        self._highest = _SPARE + max(
            length(wheel.place) + wheel.rest + TRAVEL + wheel.radius for wheel in wheels
        )

    def find(self, height: float, axes: Axes) -> list[Touch]:
        """Return the wheels that touch the plane z = 0, of a car in uu above it."""
        touches: list[Touch] = []
        if height > self._highest:
            return touches
        (f0, f1, f2), (r0, r1, r2), (u0, u1, u2) = axes
        for number, x, y, z, most in self._wheels:
            s2 = f2 * x + r2 * y + u2 * z
            high = height + s2
            if 0 < high < most * u2:
                s0, s1 = f0 * x + r0 * y + u0 * z, f1 * x + r1 * y + u1 * z
                reach = high / u2
                back = -reach
                contact = (s0 + u0 * back, s1 + u1 * back, s2 + u2 * back)
                touches.append((number, (s0, s1, s2), contact, reach))
        return touches

    def drive(self, chassis: Chassis, touches: Sequence[Touch], steering: Steering, slide: float) -> None:
        """Let suspension and friction act on a car.

        Args:
            chassis: The car after jump and dodge.
            touches: Its wheels on the floor.
            steering: Of this tick.
            slide: RocketSim's `handbrake_val`, 0 to 1.
        """
        right = _with_back(chassis.axes[1])
        front = right
        if steering.angle:
            front = _with_back(_steered(chassis.axes, steering.angle))
        velocity, spin = chassis.velocity, chassis.spin
        grips = [
            _grip(touch[1], right if touch[0] >= 2 else front, velocity, spin, slide) for touch in touches
        ]
        self._lift(chassis, touches)
        self._rub(chassis, touches, (front, front, right, right), steering, grips, velocity, spin)

    def _lift(self, chassis: Chassis, touches: Sequence[Touch]) -> None:
        """Let the suspension of each wheel push; all of them by the car's motion before."""
        (f0, f1, f2), (r0, r1, r2), (u0, u1, u2) = chassis.axes
        ix, iy, iz = self._inertia
        v0, v1, v2 = chassis.velocity
        w0, w1, w2 = chassis.spin
        old0, old1, old2, slope = w0, w1, v2, u2
        lean = 1 / slope if slope > 0.1 else 10.0
        for number, _, (p0, p1, _), reach in touches:
            rest, longest, radius, scale = self._springs[number]
            speed = old2 + (old0 * p1 - old1 * p0)
            span = reach - radius
            if span > longest:
                span = longest
            rate = speed / slope if slope > 0.1 else 0.0
            force = (rest - span) * STIFFNESS * lean - (COMPRESSION if rate < 0 else RELAXATION) * rate
            depth, lift = rest + radius - SHORT - reach, 0.0
            if depth > 0:
                x = ix * (f0 * p1 - f1 * p0)
                y = iy * (r0 * p1 - r1 * p0)
                z = iz * (u0 * p1 - u1 * p0)
                gives = 1 + ((f0 * x + r0 * y + u0 * z) * p1 - (f1 * x + r1 * y + u1 * z) * p0)
                lift = max((GAME_PUSH * depth / TICK_SECONDS - speed) / gives, 0.0) / 4
            if force > 0:
                lift = force * scale * TICK_SECONDS + lift
            m0, m1 = p1 * lift, p0 * lift
            x, y, z = ix * (f0 * m0 - f1 * m1), iy * (r0 * m0 - r1 * m1), iz * (u0 * m0 - u1 * m1)
            v2 += lift
            w0 += f0 * x + r0 * y + u0 * z
            w1 += f1 * x + r1 * y + u1 * z
            w2 += f2 * x + r2 * y + u2 * z
        chassis.velocity, chassis.spin = (v0 + 0.0, v1 + 0.0, v2), (w0, w1, w2)

    def _rub(
        self, chassis: Chassis, touches: Sequence[Touch], axles: Sequence[_Axle], steering: Steering,
        grips: Sequence[tuple[float, float]], begun: Vector, turning: Vector,
    ) -> None:  # fmt: skip
        """Let the friction of each wheel push; all of them by the car's motion after the suspension."""
        (f0, f1, f2), (r0, r1, r2), (u0, u1, u2) = chassis.axes
        ix, iy, iz = self._inertia
        v0, v1, v2 = chassis.velocity
        w0, w1, w2 = chassis.spin
        n0, n1, n2, q0, q1, q2 = v0, v1, v2, w0, w1, w2
        engine, brake = (-steering.engine * TICK_SECONDS if steering.engine else 0.0), steering.brake
        for (number, _, (p0, p1, p2), _), (side, ahead) in zip(touches, grips, strict=True):
            a0, a1, a2, b0, b1, b2 = axles[number]
            m0, m1, m2 = p1 * a2 - p2 * a1, p2 * a0 - p0 * a2, p0 * a1 - p1 * a0
            x = ix * (f0 * m0 + f1 * m1 + f2 * m2)
            y = iy * (r0 * m0 + r1 * m1 + r2 * m2)
            z = iz * (u0 * m0 + u1 * m1 + u2 * m2)
            t0, t1, t2 = f0 * x + r0 * y + u0 * z, f1 * x + r1 * y + u1 * z, f2 * x + r2 * y + u2 * z
            gives = 1 + (
                (t1 * p2 - t2 * p1) * a0 + (t2 * p0 - t0 * p2) * a1 + (t0 * p1 - t1 * p0) * a2
            )  # fmt: skip
            sliding = (
                (v0 + (w1 * p2 - w2 * p1)) * a0 + (v1 + (w2 * p0 - w0 * p2)) * a1
                + (v2 + (w0 * p1 - w1 * p0)) * a2
            )  # fmt: skip
            sideways = -SIDE * side * sliding / gives
            along = engine
            if not engine and brake:
                s0, s1, s2 = turning
                speed = (
                    (begun[0] + (s1 * p2 - s2 * p1)) * b0 + (begun[1] + (s2 * p0 - s0 * p2)) * b1
                    + (begun[2] + (s0 * p1 - s1 * p0)) * b2
                )  # fmt: skip
                along = min(max(-speed * ROLLING, -brake), brake)
            along *= ahead
            i0, i1, i2 = b0 * along + a0 * sideways, b1 * along + a1 * sideways, b2 * along + a2 * sideways
            down = -(u0 * p0 + u1 * p1 + u2 * p2)
            p0, p1, p2 = p0 + u0 * down, p1 + u1 * down, p2 + u2 * down
            m0, m1, m2 = p1 * i2 - p2 * i1, p2 * i0 - p0 * i2, p0 * i1 - p1 * i0
            x = ix * (f0 * m0 + f1 * m1 + f2 * m2)
            y = iy * (r0 * m0 + r1 * m1 + r2 * m2)
            z = iz * (u0 * m0 + u1 * m1 + u2 * m2)
            n0, n1, n2 = n0 + i0, n1 + i1, n2 + i2
            q0 += f0 * x + r0 * y + u0 * z
            q1 += f1 * x + r1 * y + u1 * z
            q2 += f2 * x + r2 * y + u2 * z
        chassis.velocity, chassis.spin = (n0, n1, n2), (q0, q1, q2)


def _steered(axes: Axes, angle: float) -> Vector:
    """Return the direction of a front wheel's axle, to the right."""
    (f0, f1, f2), (r0, r1, r2), _ = axes
    cosine, sine = math.cos(angle), -math.sin(angle)
    return r0 * cosine + f0 * sine, r1 * cosine + f1 * sine, r2 * cosine + f2 * sine


def _with_back(axle: Vector) -> _Axle:
    """Return an axle with the direction along the floor in which its wheels roll, backwards."""
    a0, a1, a2 = axle
    size = math.sqrt(a1 * a1 + a0 * a0)
    if size > 0:
        share = 1 / size
        return a0, a1, a2, -a1 * share, a0 * share, 0.0 * share
    return a0, a1, a2, -a1, a0, 0.0


def _grip(start: Vector, axle: _Axle, velocity: Vector, spin: Vector, slide: float) -> tuple[float, float]:
    """Return the shares of friction sideways and along, as `wheel_forces.grip_of`."""
    p0, p1, p2 = start
    w0, w1, w2 = spin
    a0, a1, a2 = axle[:3]
    s0, s1 = velocity[0] + (w1 * p2 - w2 * p1), velocity[1] + (w2 * p0 - w0 * p2)
    side = abs(s0 * a0 + s1 * a1 + (velocity[2] + (w0 * p1 - w1 * p0)) * a2)
    slip = side / (abs(s0 * a1 - s1 * a0) + side) if side > SLIP else 0.0
    sideways = 1.0 + (0.2 - 1.0) * slip
    if not slide:
        return sideways, 1.0
    return sideways * ((POWERSLIDE_SIDE - 1) * slide + 1), (0.5 + (0.9 - 0.5) * slip - 1) * slide + 1
