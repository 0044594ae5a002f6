"""Turn angles into rotations and back, as RocketSim does.

A rotation is nine numbers, row by row; its columns are forward, right and up in world axes.
"""

import math
from collections.abc import Sequence


def rotation_of(pitch: float, yaw: float, roll: float) -> tuple[float, ...]:
    """Return the rotation of RLBot's angles in radians."""
    cp, sp = math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    cr, sr = math.cos(roll), math.sin(roll)
    return (
        cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy,
        cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy,
        sp, -cp * sr, cp * cr,
    )  # fmt: skip


def angles_of(numbers: Sequence[float], at: int = 0) -> tuple[float, float, float]:
    """Return pitch, yaw and roll in radians of the rotation that begins at a place among numbers."""
    rise = numbers[at + 6]
    if not -1.0 <= rise <= 1.0:  # by rounding
        rise = math.copysign(1.0, rise)
    yaw, roll = math.atan2(numbers[at + 3], numbers[at]), math.atan2(-numbers[at + 7], numbers[at + 8])
    return math.asin(rise), yaw, roll
