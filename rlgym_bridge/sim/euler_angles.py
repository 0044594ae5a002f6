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


def angles_of(rotation: Sequence[float]) -> tuple[float, float, float]:
    """Return pitch, yaw and roll in radians."""
    rise = min(1.0, max(-1.0, rotation[6]))
    return (
        math.asin(rise), math.atan2(rotation[3], rotation[0]), math.atan2(-rotation[7], rotation[8])
    )  # fmt: skip
