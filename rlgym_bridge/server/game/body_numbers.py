"""Name the numbers of a match's state that the server reads in every tick, and read them from its row."""

import struct
from math import prod
from typing import Final

from rlgym_bridge.state import CAR_FIELDS, layout_of

_READ: Final = (
    "position", "rotation", "linear_velocity", "angular_velocity", "boost_amount", "demo_respawn_timer",
    "wheels_with_contact", "has_jumped", "is_jumping", "jump_time", "has_flipped", "has_double_jumped",
    "air_time_since_jump", "flip_time", "flip_torque", "on_ground", "is_demoed", "is_supersonic",
)  # fmt: skip
_FIELDS: Final = [(field, prod(field.shape)) for field in CAR_FIELDS]

CAR_NUMBERS: Final = struct.Struct(
    "<" + "".join(f"{width}f" if field.name in _READ else f"{4 * width}x" for field, width in _FIELDS)
)
"""Reads a car's numbers from its part of a row of `MatchState`: half of them, which takes half the time."""


def _find_places() -> dict[str, int]:
    places, place = {}, 0
    for field, width in _FIELDS:
        if field.name in _READ:
            places[field.name] = place
            place += width
    return places


CAR: Final = _find_places()
"""Place of each field's first number among those of a car; the first four lie as those of the ball."""

BALL_NUMBERS: Final = struct.Struct("<18f")
"""Reads the ball: position, rotation, linear and angular velocity."""

BALL_OFFSET: Final = 4 * layout_of(0, 0).column("ball_position")
"""Bytes before the ball in a row."""


def car_offset(blue: int, orange: int, place: int) -> int:
    """Return the bytes before a car's part in a row."""
    layout = layout_of(blue, orange)
    return 4 * (layout.car_start + place * layout.car_stride)
