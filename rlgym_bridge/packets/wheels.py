"""Find which wheels touch the flat floor, from the car's pose one tick before.

RocketSim casts a ray down from each wheel's mount at the start of a tick. Over the flat floor the ray's
length is simple geometry. In 30,000 car ticks of 2v2 play near the floor it gave every contact but those
on other cars (measured, RocketSim 2.2.1). On walls and ramps the air state is used instead.
"""

from rlgym_bridge.game import WHEELS

_FLAT_X, _FLAT_Y, _FLAT_CORNER = 3700.0, 4700.0, 7400.0  # uu; inside, no ramp is near
_REACH_Z = 100.0  # uu; above, no wheel of an upright car reaches the floor
_UPRIGHT = 0.3  # least z of the car's up direction

_MOUNTS = tuple(
    tuple((x, side * y, z, reach) for (x, y, z, reach) in (wheels.front, wheels.back) for side in (1.0, -1.0))
    for wheels in WHEELS
)


def floor_contact(pose: tuple[float, ...], hitbox: int) -> tuple[float, ...] | None:
    """Return which wheels touch the floor in the tick after a pose.

    Args:
        pose: Position x, y, z in uu, then the rotation matrix row by row.
        hitbox: Index of the car's hitbox in `game.HITBOXES`.

    Returns:
        0 or 1 for front left, front right, back left, back right. None where the floor is not flat, or
        the car is not upright or not near the floor.
    """
    x, y, z = pose[:3]
    up = pose[11]
    if z > _REACH_Z or up < _UPRIGHT or abs(x) > _FLAT_X or abs(y) > _FLAT_Y:
        return None
    if abs(x) + abs(y) > _FLAT_CORNER:
        return None
    forward, right = pose[9], pose[10]
    a, b, c, d = _MOUNTS[hitbox]
    return (
        1.0 if z + forward * a[0] + right * a[1] + up * a[2] <= up * a[3] else 0.0,
        1.0 if z + forward * b[0] + right * b[1] + up * b[2] <= up * b[3] else 0.0,
        1.0 if z + forward * c[0] + right * c[1] + up * c[2] <= up * c[3] else 0.0,
        1.0 if z + forward * d[0] + right * d[1] + up * d[2] <= up * d[3] else 0.0,
    )
