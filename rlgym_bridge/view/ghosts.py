"""Log RocketSim's bodies as wire frames beside the recorded ones, and the distance between them."""

from typing import Final

import numpy as np
import rerun as rr

from rlgym_bridge.compare.simulated_ghosts import Ghosts
from rlgym_bridge.game import BALL_RADIUS
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.view.scene import BALL_COLOR, boxes, log_moving
from rlgym_bridge.view.time_series import car_color, log_smooth
from rlgym_bridge.view.times import Times, drawn, updates

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
        if name == "ball":
            halves, color = np.full((1, 3), BALL_RADIUS), BALL_COLOR
            shape = rr.Ellipsoids3D.from_fields(colors=_GHOST, line_radii=_LINE, fill_mode="majorwireframe")
        else:
            halves, centers = boxes(int(state.car_hitbox[0, column]))
            color = car_color(recording, column)
            shape = rr.Boxes3D.from_fields(
                centers=centers, colors=_GHOST, radii=_LINE, fill_mode="majorwireframe"
            )
        log_moving(
            stream, f"/match/ghosts/{name}", times, updates(shown, there),
            ghosts.position[:, column], ghosts.rotation[:, column], shape, halves,
        )  # fmt: skip
        log_smooth(stream, f"/distance/{name}", times, shown, there, ghosts.distance[:, column], color)
