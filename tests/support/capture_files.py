"""Captures of the real game at 120 Hz, CSV tables as BakkesMod recorders write them: a row a tick.

Columns: t, ball_x ... ball_wz, x, y, z, qx, qy, qz, qw, vx ... wz, boost, throttle, steer, pitch, yaw, roll,
jump, boosting, handbrake; those of a second car begin with c1_. A row's inputs drive the tick that begins
with it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Recording, TimeBase
from rlgym_bridge.recording.tables.column_map import read_columns
from rlgym_bridge.recording.tables.table_recording import read_table

_BODY = """
position = ["{0}x", "{0}y", "{0}z"]
velocity = ["{0}vx", "{0}vy", "{0}vz"]
angular_velocity = ["{0}wx", "{0}wy", "{0}wz"]
"""
_CAR = """
quaternion = ["{0}qw", "{0}qx", "{0}qy", "{0}qz"]
state = {{ boost_amount = "{0}boost" }}
controls = {{ throttle = "{0}throttle", steer = "{0}steer", pitch = "{0}pitch", yaw = "{0}yaw", \
roll = "{0}roll", jump = "{0}jump", boost = "{0}boosting", handbrake = "{0}handbrake" }}
"""
KEYBOARD_DODGES = {"clean-dodge": (778, {"pitch": -1.0})}
"""Inputs that a capture does not hold: on a keyboard a dodge's forward part follows throttle, not pitch.
File, tick of the press, controls."""


def read_capture(path: Path, folder: Path) -> Recording:
    """Read a capture, its times as whole ticks."""
    second = "c1_x" in path.read_text().split("\n", 1)[0]
    text = 'inputs = "sent"\nheader = true\n[time]\nseconds = "t"\n[ball]' + _BODY.format("ball_")
    for prefix in ("", "c1_")[: 1 + second]:
        text += "[[car]]" + _BODY.format(prefix) + _CAR.format(prefix)
    columns = folder / f"{path.stem}.toml"
    columns.write_text(text)
    recording = read_table(path, read_columns(columns))
    recording = replace(
        recording, tick=np.round(recording.seconds * 120).astype(np.int64), clock=TimeBase.TICKS
    )
    if path.stem in KEYBOARD_DODGES:
        tick, controls = KEYBOARD_DODGES[path.stem]
        for name, value in controls.items():
            row = recording.tick == tick
            recording.state.car_controls[row, 0, CONTROL_NAMES.index(name)] = value
    return recording
