"""Convert RLBot's rotators to the rotation matrices that RLGym uses."""

from math import cos, nan, sin
from operator import attrgetter

from rlbot import flat

_ANGLES = attrgetter("pitch", "yaw", "roll")
_NOWHERE = (nan,) * 9


def matrix(rotation: flat.Rotator) -> tuple[float, ...]:
    """Return the nine numbers of a rotation matrix, row by row.

    Args:
        rotation: Pitch (up positive), yaw (from +x towards +y) and roll (right side down positive)
            in radians.

    Returns:
        Rows x, y, z of the columns forward, right, up, without unit. What float32 angles cost an element is
        below 1e-6 where the server takes them as this project's does. It is up to 3e-4 within a degree of
        vertical where each was taken by itself. NaN where an angle is infinite or NaN.
    """
    pitch, yaw, roll = _ANGLES(rotation)
    try:
        cp, sp, cy, sy, cr, sr = cos(pitch), sin(pitch), cos(yaw), sin(yaw), cos(roll), sin(roll)
    except ValueError:  # an angle is infinite
        return _NOWHERE
    crsp, srsp = cr * sp, sr * sp
    return (
        cp * cy, cy * srsp - cr * sy, -cy * crsp - sr * sy,
        cp * sy, sy * srsp + cr * cy, -sy * crsp + sr * cy,
        sp, -cp * sr, cp * cr,
    )  # fmt: skip
