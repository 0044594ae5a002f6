"""Captures of the real game at 120 Hz, CSV tables as BakkesMod recorders write them: a row a tick.

Columns: t, ball_x ... ball_wz, x, y, z, qx, qy, qz, qw, vx ... wz, boost, throttle, steer, pitch, yaw, roll,
jump, boosting, handbrake; those of a second car begin with c1_. A row's inputs drive the tick that begins
with it.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, GRAVITY, TICK_SECONDS
from rlgym_bridge.recording.recording import Recording, TimeBase
from rlgym_bridge.recording.tables.table_recording import read_table

_KINK = 20.0  # uu/s in a tick beyond gravity
_NEAR = 250.0  # uu between the middles of ball and car
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


@dataclass(frozen=True)
class Capture:
    """A capture: its name, its rows, and the ticks in which a car hits the ball."""

    name: str
    recording: Recording
    hits: np.ndarray


def load_capture(path: Path) -> Capture:
    """Read a capture, its times as whole ticks."""
    second = "c1_x" in path.read_text().split("\n", 1)[0]
    text = 'inputs = "sent"\nheader = true\n[time]\nseconds = "t"\n[ball]' + _BODY.format("ball_")
    for prefix in ("", "c1_")[: 1 + second]:
        text += "[[car]]" + _BODY.format(prefix) + _CAR.format(prefix)
    with tempfile.TemporaryDirectory() as folder:
        columns = Path(folder, "columns.toml")
        columns.write_text(text)
        recording = read_table(path, columns)
    tick = np.round(recording.seconds * 120).astype(np.int64)
    recording = replace(recording, tick=tick, clock=TimeBase.TICKS)
    recording.segment[:] = 0  # a car at rest is no hole
    if path.stem in KEYBOARD_DODGES:
        press, controls = KEYBOARD_DODGES[path.stem]
        for name, value in controls.items():
            recording.state.car_controls[tick == press, 0, CONTROL_NAMES.index(name)] = value
    return Capture(path.stem, recording, _hits_of(recording))


def _hits_of(recording: Recording) -> np.ndarray:
    state, tick = recording.state, recording.tick
    change = np.diff(state.ball_linear_velocity.astype(float), axis=0)
    flies = state.ball_position[:-1, 2] > 30
    change[:, 2] += np.where(flies, GRAVITY * TICK_SECONDS * np.diff(tick), 0.0)
    kink = np.append(False, np.linalg.norm(change, axis=1) > _KINK)
    near = np.linalg.norm(state.car_position - state.ball_position[:, None], axis=2) < _NEAR
    return tick[kink & near.any(1)]
