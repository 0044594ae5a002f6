"""Frames that the server sends to the page in the browser, as bytes.

A frame is one state of a match. All numbers are little-endian, without padding:

| part | bytes | fields |
|---|---|---|
| head | 32 | u8 kind (1), phase, flags, cars; u32 tick; f32 speed, clock, countdown |
|  |  | u16 goals of blue, of orange; u32 input; f32 time |
| ball | 68 | f32 position 3, velocity 3, spin 3, quaternion 4, landing 3, seconds until it |
| each car | 56 | f32 position 3, quaternion 4, velocity 3, boost, steer, throttle; u32 flags |
| pads | 5 | one bit for each of the 34 pads: 1 where it can be taken, the least significant bit first |

Lengths are in uu, speeds in uu/s, spin in rad/s, times in seconds. A quaternion (w, x, y, z) turns a body's
axes forward, right and up into the game's. Cars stand blue first, as in `MatchState`. `input` is the number
of the latest input message that acted. A landing is NaN while the ball is on the floor.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.rotations import to_quaternions
from rlgym_bridge.state import MatchState

FRAME: Final = 1
"""The first byte of a frame."""

PAUSED, OVERTIME, GOAL_REPLAY, WAITING, CHANGED = 1, 2, 4, 8, 16
"""Bits of a frame's flags; `CHANGED`: rewound, or a body or driver was changed."""

PHASES: Final = (
    "inactive", "countdown", "kickoff", "active", "goal", "replay", "paused", "ended",
)  # fmt: skip
"""Names of `game.Phase`'s numbers for the page."""

NO_LANDING: Final = (np.nan,) * 4
"""The landing of a ball that does not come down, or of which nobody knows."""

_PAD_BYTES: Final = (game.PAD_COUNT + 7) // 8
_WHEEL_RADII: Final = (12.5, 15.0)  # uu, of front and back wheels as they are drawn
_STANDING_Z: Final = 17.0  # uu, height of a standing car

_HEAD: Final = [
    ("kind", "u1"), ("phase", "u1"), ("flags", "u1"), ("cars", "u1"), ("tick", "<u4"), ("speed", "<f4"),
    ("clock", "<f4"), ("countdown", "<f4"), ("score", "<u2", 2), ("input", "<u4"), ("time", "<f4"),
]  # fmt: skip
_BALL: Final = np.dtype([
    ("position", "<f4", 3), ("velocity", "<f4", 3), ("spin", "<f4", 3), ("quaternion", "<f4", 4),
    ("landing", "<f4", 4),
])  # fmt: skip
_CAR: Final = np.dtype([
    ("position", "<f4", 3), ("quaternion", "<f4", 4), ("velocity", "<f4", 3), ("boost", "<f4"),
    ("steer", "<f4"), ("throttle", "<f4"), ("flags", "<u4"),
])  # fmt: skip


_INPUT_AT: Final = 24  # bytes of the head before the input's number


@cache
def frame_type(cars: int) -> np.dtype:
    """Return the numpy dtype of a frame with so many cars."""
    return np.dtype([*_HEAD, ("ball", _BALL), ("car", _CAR, cars), ("pads", "u1", _PAD_BYTES)])


def pack_frames(
    state: MatchState, landing: Sequence[float] | np.ndarray = NO_LANDING, **head: Any
) -> np.ndarray:
    """Pack N states as frames, `(N,)` of the dtype `frame_type(cars)`; `tobytes` of one of them is sent.

    `landing` is where the ball lands (uu) and in how many seconds: `(4,)` or `(N, 4)`, NaN for nowhere.
    `head` has numbers of the head by the names above, one each or `(N,)`: of `game.Phase`, of `PAUSED` and
    the others, a tick that rises, seconds of the game in a second, on the clock, until GO and since the
    beginning; `score` `(2,)` or `(N, 2)`.
    """
    cars = state.layout.cars
    frames = np.zeros(state.matches, frame_type(cars))
    frames["kind"], frames["cars"] = FRAME, cars
    for name, numbers in head.items():
        frames[name] = numbers
    ball, car = frames["ball"], frames["car"]
    ball["position"], ball["velocity"] = state.ball_position, state.ball_linear_velocity
    turned = np.concatenate([state.ball_rotation[:, None], state.car_rotation], 1)
    turned = to_quaternions(turned.reshape(-1, 3, 3)).reshape(state.matches, 1 + cars, 4)
    ball["spin"], ball["quaternion"] = state.ball_angular_velocity, turned[:, 0]
    ball["landing"] = landing
    car["position"], car["quaternion"] = state.car_position, turned[:, 1:]
    car["velocity"], car["boost"] = state.car_linear_velocity, state.car_boost_amount
    controls = state.car_controls
    car["throttle"], car["steer"] = controls[..., 0], controls[..., 1]
    car["flags"] = car_flags(state)
    frames["pads"] = np.packbits(state.pad_timer <= 0.0, axis=-1, bitorder="little")
    return frames


def with_input(frame: bytes, number: int) -> bytes:
    """Return a packed frame that names another input as the latest that acted."""
    return frame[:_INPUT_AT] + number.to_bytes(4, "little") + frame[_INPUT_AT + 4 :]


def car_flags(state: MatchState) -> np.ndarray:
    """Return the flags of each car, `(matches, cars)` uint32.

    1 on the ground, 2 boosting, 4 supersonic, 8 demolished, 16 jumped, 32 double jumped or dodged, 64
    handbrake.
    """
    flipped = np.maximum(state.car_has_double_jumped, state.car_has_flipped)
    bits = (
        state.car_on_ground, state.car_is_boosting, state.car_is_supersonic, state.car_is_demoed,
        state.car_has_jumped, flipped, state.car_controls[..., game.CONTROL_NAMES.index("handbrake")],
    )  # fmt: skip
    flags = np.zeros(flipped.shape, np.uint32)
    for number, bit in enumerate(bits):
        flags += (bit > 0) * np.uint32(1 << number)
    return flags


def describe_car(name: str, team: int, hitbox: int, human: bool) -> dict[str, Any]:
    """Return what the page is told of a car: name, team, box, wheels, and whether a human drives it now."""
    box = game.HITBOXES[hitbox]
    wheels = [
        [x, side * y, radius - _STANDING_Z, radius]
        for (x, y, _, _), radius in zip(game.WHEELS[hitbox], _WHEEL_RADII, strict=True)
        for side in (-1.0, 1.0)
    ]
    return {
        "name": name, "team": team, "hitbox": [box.length, box.width, box.height],
        "offset": [box.offset_x, 0.0, box.offset_z], "wheels": wheels, "human": human,
    }  # fmt: skip


def make_setup(mode: str, cars: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return the first message to a page: what it shows, and everything that does not change.

    `mode` is "play", "watch", "view" or "train"; `cars` are those of `describe_car`, in the order of frames.
    """
    pads = [[x, y, 0.0, float(pad in game.BIG_PADS)] for pad, (x, y) in enumerate(game.PAD_POSITIONS)]
    return {
        "type": "setup", "mode": mode, "title": "", "phases": list(PHASES), "cars": cars,
        "pads": pads, "seat": None, "length_s": None, "policies": [],
        "drivers": [], "take_over": False, "rate": game.TICKS_PER_SECOND,
    } | more  # fmt: skip
