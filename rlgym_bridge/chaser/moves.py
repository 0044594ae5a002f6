"""Name the 90 actions by what they do."""

from math import asin, atan2, hypot
from typing import Final

from rlgym_bridge.chaser.perception import SeenCar, clamp, dot, from_above
from rlgym_bridge.components.actions import LookupTableAction

DODGES: Final = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""(pitch, roll) of eight dodges: forward, then in steps of 45 degrees to the right."""

_ROWS: Final = {tuple(row): index for index, row in enumerate(LookupTableAction.make_lookup_table().tolist())}


def ground(throttle: int, steer: int, boost: bool = False, handbrake: bool = False) -> int:
    """Return the action of a driving car."""
    return _ROWS[1 if boost else throttle, steer, 0, steer, 0, 0, int(boost), int(handbrake)]


def air(pitch: int, yaw: int, roll: int) -> int:
    """Return the action of a flying car."""
    return _ROWS[0, yaw, pitch, yaw, roll, 0, 0, 0] if pitch or roll else ground(1, yaw)


def jump(pitch: int = 0, roll: int = 0) -> int:
    """Return the action that jumps, or dodges where a direction is given."""
    return _ROWS[0, 0, pitch, 0, roll, 1, 0, int((pitch, roll) != (0, 0))]


def sign(value: float, dead_zone: float) -> int:
    """Return the sign of a value, 0 inside the dead zone."""
    return 0 if abs(value) < dead_zone else 1 if value > 0 else -1


def level_out(me: SeenCar) -> int:
    """Return the action that turns a car in the air to land on its wheels, nose along its velocity."""
    if me.position[2] < 60 and me.up[2] < -0.3 and hypot(*me.velocity) < 200:
        return jump()  # lies on its roof: the game turns it over
    moves = hypot(*me.velocity[:2]) > 300
    roll_error = atan2(me.right[2], me.up[2])
    yaw_error = from_above(me, me.velocity[0], me.velocity[1]) if moves and abs(roll_error) < 0.7 else 0.0

    def stick(error: float, rate: float) -> int:
        return sign(error - 0.25 * rate, 0.15)  # s, rad: damped, and quiet when nearly there

    pitch = stick(-asin(clamp(me.forward[2], -1, 1)), -dot(me.spin, me.right))
    yaw = stick(yaw_error, dot(me.spin, me.up)) if abs(roll_error) < 0.7 else 0
    return air(pitch, yaw, stick(roll_error, -dot(me.spin, me.forward)))
