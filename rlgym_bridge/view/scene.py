"""Log the field, ball, cars and boost pads for Rerun's three-dimensional view."""

import inspect
from typing import Any, Final

import numpy as np
import rerun as rr

from rlgym_bridge import game
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.rotations import to_quaternions
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.camera import MIRROR, log_camera
from rlgym_bridge.view.field import floor_lines, goal_lines, mesh_edges, outline
from rlgym_bridge.view.times import Times, drawn, updates

BALL_COLOR: Final = (255, 30, 190)
TEAM_COLORS: Final = ((60, 130, 255), (255, 130, 30))
_NOSE_COLORS: Final = ((200, 220, 255), (255, 225, 190))
_PAD_FULL: Final = (255, 205, 40)
_PAD_EMPTY: Final = (75, 70, 55)
_PAD_UNKNOWN: Final = (130, 130, 130)
_LINE_COLOR: Final = (150, 160, 165)
_MESH_COLOR: Final = (70, 82, 88)
_FLOOR_COLOR: Final = (28, 36, 34)
_FLOOR_BELOW: Final = 25.0  # uu, so that lines on the floor are seen
_NAME_RADIUS: Final = rr.Radius.ui_points(4.0)
_NAME_ABOVE: Final = (0.0, 0.0, 250.0)  # uu
_LINE: Final = rr.Radius.ui_points(0.9)
_THIN: Final = rr.Radius.ui_points(0.4)
_PAD_RADII: Final = (60.0, 28.0)  # uu: big ones, small ones
_NOSE: Final = (0.12, 0.5, 0.35)  # of the hitbox's half length, width and height
_TRAIL_RADIUS: Final = 12.0  # uu
_TRAIL_TICKS: Final = 6
_IS_OLD: Final = "axis_length" in inspect.signature(rr.Transform3D.__init__).parameters
NO_AXES: Final[dict[str, Any]] = {"axis_length": 0.0} if _IS_OLD else {}
"""For a frame without drawn axes: older versions of Rerun draw them unless their length is 0."""


def log_field(stream: rr.RecordingStream) -> None:
    """Log what does not move, and the camera; raises FileNotFoundError without collision meshes."""
    stream.log("/", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    stream.log("/match", rr.Transform3D(mat3x3=MIRROR, **NO_AXES), static=True)
    stream.log(
        "/match/field/meshes", rr.LineStrips3D(mesh_edges(), colors=_MESH_COLOR, radii=_THIN), static=True
    )
    lines = rr.LineStrips3D(floor_lines(), colors=_LINE_COLOR, radii=_LINE)
    stream.log("/match/field/lines", lines, static=True)
    for team, side in (("blue", -1.0), ("orange", 1.0)):
        color = TEAM_COLORS[team == "orange"]
        goal = rr.LineStrips3D(goal_lines(side), colors=color, radii=_LINE)
        stream.log(f"/match/field/goal/{team}", goal, static=True)
    ground = outline(-_FLOOR_BELOW)[:-1]
    floor = rr.Mesh3D(
        vertex_positions=ground,
        triangle_indices=[(0, one, one + 1) for one in range(1, len(ground) - 1)],
        vertex_colors=[_FLOOR_COLOR] * len(ground),
    )
    stream.log("/match/field/floor", floor, static=True)
    log_camera(stream)


def log_ball(stream: rr.RecordingStream, recording: Recording, times: Times) -> None:
    """Log the ball and its trail."""
    there = drawn(recording, recording.ball_shown)
    rows, here = updates(recording.ball_shown, there)
    if not len(rows):
        return
    log_still_ball(stream)
    positions = recording.state.ball_position[rows]
    columns = rr.Points3D.columns(positions=positions[here]).partition(here.astype(int))
    stream.send_columns("/match/ball", times.at(rows), columns)
    some = np.flatnonzero(here)[::_TRAIL_TICKS]
    stream.send_columns("/match/trail", times.at(rows[some]), rr.Points3D.columns(positions=positions[some]))


def log_still_ball(stream: rr.RecordingStream) -> None:
    """Log what does not change of the ball and its trail."""
    stream.log("/match/ball", rr.Points3D.from_fields(radii=game.BALL_RADIUS, colors=BALL_COLOR), static=True)
    stream.log("/match/trail", rr.Points3D.from_fields(radii=_TRAIL_RADIUS, colors=BALL_COLOR), static=True)


def log_still_car(stream: rr.RecordingStream, state: MatchState, car: int) -> None:
    """Log what does not change of a car, all but its half sizes, and of the name above it."""
    team, name = int(state.car_team[0, car]), state.agents[car]
    body = rr.Boxes3D.from_fields(
        centers=boxes(int(state.car_hitbox[0, car]))[1], colors=[TEAM_COLORS[team], _NOSE_COLORS[team]],
        fill_mode="solid", labels=name, show_labels=False,
    )  # fmt: skip
    log_still_body(stream, f"/match/cars/{name}", body)
    label = rr.Points3D.from_fields(
        radii=_NAME_RADIUS, colors=TEAM_COLORS[team], labels=name, show_labels=True
    )
    stream.log(f"/match/names/{name}", label, static=True)


def log_still_body(stream: rr.RecordingStream, path: str, body: rr.Boxes3D | rr.Ellipsoids3D) -> None:
    """Log what does not change of a frame and the body in it."""
    if NO_AXES:
        stream.log(path, rr.Transform3D.from_fields(**NO_AXES), static=True)
    stream.log(f"{path}/body", body, static=True)


def name_place(positions: np.ndarray) -> np.ndarray:
    """Return where the names of cars are, `(n, 3)` uu: above their positions, `(n, 3)` uu."""
    return positions + np.array(_NAME_ABOVE, np.float32)


def log_car(stream: rr.RecordingStream, recording: Recording, times: Times, car: int) -> None:
    """Log a car: its frame wherever it moves, its box when it comes and goes."""
    state = recording.state
    shown = recording.car_shown[:, car]
    there = drawn(recording, shown, state.car_is_demoed[:, car] > 0)
    rows, here = updates(shown, there)
    if not len(rows):
        return
    log_still_car(stream, state, car)
    log_moving(
        stream, f"/match/cars/{state.agents[car]}", times, (rows, here), state.car_position[:, car],
        state.car_rotation[:, car], rr.Boxes3D, boxes(int(state.car_hitbox[0, car]))[0],
    )  # fmt: skip
    columns = rr.Points3D.columns(positions=name_place(state.car_position[rows[here], car]))
    path = f"/match/names/{state.agents[car]}"
    stream.send_columns(path, times.at(rows), columns.partition(here.astype(int)))


def log_moving(
    stream: rr.RecordingStream, path: str, times: Times, moves: tuple[np.ndarray, np.ndarray],
    positions: np.ndarray, rotations: np.ndarray, kind: type[rr.Boxes3D | rr.Ellipsoids3D],
    halves: np.ndarray,
) -> None:  # fmt: skip
    """Log a frame that moves, and below it a `body` that comes and goes; see `log_still_body`.

    `moves` is what `updates` returned, with a row at least; `positions` `(rows, 3)` uu and `rotations`
    `(rows, 3, 3)` are those of every row of the recording. `halves` `(n, 3)` uu are the body's half sizes.
    """
    rows, here = moves
    moved = rows[here]
    turned = to_quaternions(rotations[moved])[:, [1, 2, 3, 0]].astype(np.float32)
    frame = rr.Transform3D.columns(translation=positions[moved], quaternion=turned)
    stream.send_columns(path, times.at(moved), frame)
    changes = np.concatenate([[True], here[1:] != here[:-1]])
    counts = np.where(here[changes], len(halves), 0)
    sizes = np.tile(halves, (int(here[changes].sum()), 1))
    columns = kind.columns(half_sizes=sizes).partition(counts)
    stream.send_columns(f"{path}/body", times.at(rows[changes]), columns)


def boxes(hitbox: int) -> tuple[np.ndarray, np.ndarray]:
    """Return half sizes and centres in car coordinates, `(2, 3)` uu each, of a hitbox and the nose on it."""
    box = game.HITBOXES[hitbox]
    half = np.array([box.length, box.width, box.height]) / 2
    centre = np.array([box.offset_x, 0.0, box.offset_z])
    nose = half * _NOSE
    tip = np.add(centre, (half[0], 0.0, 0.0))
    return np.stack([half, nose]), np.stack([centre, tip])


def log_pads(stream: rr.RecordingStream, recording: Recording, times: Times) -> None:
    """Log the boost pads: bright while they can be taken, dark while not, grey where nobody recorded it."""
    log_still_pads(stream)
    taken = recording.state.pad_timer > 0
    if not taken.any() and not isinstance(recording, MatchRecording):
        stream.log("/match/pads", rr.Points3D.from_fields(colors=_PAD_UNKNOWN), static=True)
        return
    rows = np.flatnonzero(np.concatenate([[True], (taken[1:] != taken[:-1]).any(1)]))
    columns = rr.Points3D.columns(colors=pad_colors(taken[rows]).reshape(-1, 3)).partition(
        np.full(len(rows), game.PAD_COUNT)
    )
    stream.send_columns("/match/pads", times.at(rows), columns)


def log_still_pads(stream: rr.RecordingStream) -> None:
    """Log what does not change of the boost pads."""
    big = np.array([pad in game.BIG_PADS for pad in range(game.PAD_COUNT)])
    positions = np.column_stack(
        [np.array(game.PAD_POSITIONS), np.where(big, game.BIG_PAD_Z, game.SMALL_PAD_Z)]
    )
    still = rr.Points3D.from_fields(positions=positions, radii=np.where(big, *_PAD_RADII))
    stream.log("/match/pads", still, static=True)


def pad_colors(taken: np.ndarray) -> np.ndarray:
    """Return colours `(..., pads, 3)` uint8, 0 to 255, of pads that are taken or not, `(..., pads)` bool."""
    return np.where(taken[..., None], _PAD_EMPTY, _PAD_FULL).astype(np.uint8)
