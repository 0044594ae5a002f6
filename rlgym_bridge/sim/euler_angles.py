"""Turn angles into rotations and back, as RocketSim does.

A rotation is nine numbers, row by row; its columns are forward, right and up in world axes.
"""

import math
from collections.abc import Sequence
from typing import Final

_STEEP: Final = 0.99  # sine of the pitch from which its float32 no longer tells it to 1e-6


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
    if not -_STEEP < rise < _STEEP:
        return _steep_angles_of(*numbers[at : at + 7])
    yaw, roll = math.atan2(numbers[at + 3], numbers[at]), math.atan2(-numbers[at + 7], numbers[at + 8])
    return math.asin(rise), yaw, roll


def _steep_angles_of(
    forward_x: float, right_x: float, up_x: float, forward_y: float, right_y: float, up_y: float, rise: float
) -> tuple[float, float, float]:
    """Return the angles of a rotation near vertical, where yaw and roll turn about almost the same axis.

    The few digits that float32 has there leave yaw uncertain. Roll is measured from that same yaw, so that
    both together are as exact as elsewhere.
    """
    level = math.hypot(forward_x, forward_y)
    if level == 0.0:  # any yaw will do
        forward_x = 1.0
    roll = math.atan2(forward_x * up_y - forward_y * up_x, forward_x * right_y - forward_y * right_x)
    return math.atan2(rise, level), math.atan2(forward_y, forward_x), roll
