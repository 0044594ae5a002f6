"""RLBot's rotator to the rotation matrix that RLGym uses."""

from math import cos, sin

from rlbot import flat


def matrix(rotation: flat.Rotator) -> tuple[float, ...]:
    """Return the nine numbers of the rotation matrix, row by row.

    Args:
        rotation: Pitch (up positive), yaw (from +x towards +y) and roll (right side down positive)
            in radians.

    Returns:
        Rows x, y, z of the columns forward, right, up. Angles in float32 cost up to 3e-4 in an element
        within a degree of vertical, elsewhere 1e-5.
    """
    pitch, yaw, roll = rotation.pitch, rotation.yaw, rotation.roll
    cp, sp, cy, sy, cr, sr = cos(pitch), sin(pitch), cos(yaw), sin(yaw), cos(roll), sin(roll)
    return (
        cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy,
        cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy,
        sp, -cp * sr, cp * cr,
    )  # fmt: skip
