"""Write a recording as a file for Rerun, with what RocketSim simulates beside it."""

from pathlib import Path
from typing import Final
from uuid import uuid4

import numpy as np
import rerun as rr

from rlgym_bridge.game import BALL_RADIUS
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.view import scene
from rlgym_bridge.view.blueprint import blueprint
from rlgym_bridge.view.log_drawings import log_drawings
from rlgym_bridge.view.simulated_ghosts import Ghosts, ghosts
from rlgym_bridge.view.time_series import car_color, log_curves, log_smooth
from rlgym_bridge.view.times import APPLICATION, Times, drawn, rising_times, updates


def write_rrd(recording: Recording, path: Path, compare: bool = False, simulator: str | None = None) -> None:
    """Write a recording as `.rrd`, over any file, with the layout in which the viewer opens it.

    `compare` adds what a simulator makes of the recorded inputs. Raises FileNotFoundError without collision
    meshes, ValueError for a recording without rows or an unknown simulator, OSError.
    """
    if not len(recording.tick):
        raise ValueError(f"{recording.source} has no rows, expected some to look at")
    stream = rr.RecordingStream(APPLICATION, recording_id=uuid4())
    written = rr.binary_stream(stream)  # not `save`: Rerun would say a full disk in its log alone
    stream.send_blueprint(blueprint(recording, compare), make_active=True)
    log_recording(stream, recording)
    if compare:
        log_ghosts(stream, recording, rising_times(recording), ghosts(recording, simulator=simulator))
    data = written.read(flush=True) or b""
    stream.disconnect()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def log_recording(stream: rr.RecordingStream, recording: Recording) -> None:
    """Log field, bodies, curves and drawings; raises FileNotFoundError without collision meshes."""
    stream.send_recording_name(recording.source)
    times = rising_times(recording)
    scene.log_field(stream)
    scene.log_pads(stream, recording, times)
    scene.log_ball(stream, recording, times)
    for car in range(recording.state.layout.cars):
        scene.log_car(stream, recording, times, car)
    log_curves(stream, recording, times)
    if isinstance(recording, MatchRecording):
        log_drawings(stream, recording, times)


_GHOST: Final = (235, 235, 235)
_LINE: Final = rr.Radius.ui_points(0.6)


def log_ghosts(stream: rr.RecordingStream, recording: Recording, times: Times, ghosts: Ghosts) -> None:
    """Log ghosts below /match/ghosts and their distances below /distance."""
    state = recording.state
    color: tuple[int, ...]
    shape: rr.Boxes3D | rr.Ellipsoids3D
    for column, name in enumerate((*state.agents, "ball")):
        shown = ghosts.there[:, column]
        there = drawn(recording, shown)
        moves = updates(shown, there)
        if not len(moves[0]):
            continue
        if name == "ball":
            halves, color = np.full((1, 3), BALL_RADIUS), scene.BALL_COLOR
            shape = rr.Ellipsoids3D.from_fields(colors=_GHOST, line_radii=_LINE, fill_mode="majorwireframe")
        else:
            halves, centers = scene.boxes(int(state.car_hitbox[0, column]))
            color = car_color(state, column)
            shape = rr.Boxes3D.from_fields(
                centers=centers, colors=_GHOST, radii=_LINE, fill_mode="majorwireframe"
            )
        scene.log_still_body(stream, f"/match/ghosts/{name}", shape)
        scene.log_moving(
            stream, f"/match/ghosts/{name}", times, moves, ghosts.position[:, column],
            ghosts.rotation[:, column], type(shape), halves,
        )  # fmt: skip
        log_smooth(stream, f"/distance/{name}", times, shown, there, ghosts.distance[:, column], color)
