"""Write a table's columns into the fields of a state, in the state's units and axes."""

from typing import Final

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.tables.bodies import Body, Number
from rlgym_bridge.recording.tables.cells import Cells
from rlgym_bridge.rotations import from_euler, from_quaternions
from rlgym_bridge.state import MatchState

_LIMITS: Final = {
    "position": (10_000.0, "uu"),
    "velocity": (7_000.0, "uu/s"),
    "forward_speed": (7_000.0, "uu/s"),
    "angular_velocity": (20.0, "rad/s"),
}
"""Longest vectors of a game: beyond them a column or a scale is not what the map says."""
_UNEVEN: Final = 0.05  # of a matrix: recorded rotations are rounded


def fill_ball(state: MatchState, rows: np.ndarray, cells: Cells, body: Body) -> None:
    """Write the ball of a table's rows into a state.

    Args:
        state: A state with a match for each row of the recording.
        rows: Matches of the state to write, `(table rows,)` int64.
        cells: Numbers of the table.
        body: Columns of the ball; positions in uu, velocities in uu/s and rad/s.
    """
    state.ball_known[rows] = 1
    vectors = _vectors(cells, body)
    state.ball_position[rows] = vectors["position"]
    state.ball_linear_velocity[rows] = vectors["velocity"]
    state.ball_angular_velocity[rows] = vectors["angular_velocity"]
    state.ball_rotation[rows] = vectors["rotation"]


def fill_car(state: MatchState, rows: np.ndarray, car: int, cells: Cells, body: Body) -> None:
    """Write a car of a table's rows into a state, with its controls.

    A car on the ground gets four wheels with contact: a table does not say which.

    Args:
        state: A state with a match for each row of the recording.
        rows: Matches of the state to write, `(table rows,)` int64.
        car: The car's place in the state.
        cells: Numbers of the table.
        body: Columns of the car; positions in uu, velocities in uu/s and rad/s.
    """
    vectors = _vectors(cells, body)
    state.car_player_id[:, car], state.car_team[:, car], state.car_hitbox[:, car] = (
        car,
        body.team,
        body.hitbox,
    )
    state.car_position[rows, car] = vectors["position"]
    state.car_linear_velocity[rows, car] = vectors["velocity"]
    state.car_angular_velocity[rows, car] = vectors["angular_velocity"]
    state.car_rotation[rows, car] = vectors["rotation"]
    for name, number in body.state.items():
        values = take(cells, number, f"{name} of {body.name}")
        if name == "boost_amount":
            _check(cells, values, f"{name} of {body.name}", 0, 100, "boost")
        getattr(state, "car_" + name)[rows, car] = values
        if name == "on_ground":
            state.car_wheels_with_contact[rows, car] = values[:, None]
    for name, number in body.controls.items():
        values = take(cells, number, f"{name} of {body.name}")
        _check(cells, values, f"{name} of {body.name}", -1, 1, "of a control")
        state.car_controls[rows, car, CONTROL_NAMES.index(name)] = values


def take(cells: Cells, number: Number, what: str) -> np.ndarray:
    """Return a number of every row, `(rows,)`.

    Raises:
        ValueError: See `Cells.numbers`.
    """
    if number.column is None:
        return np.full(len(cells.rows), number.add)
    return cells.numbers(number.column, what) * number.scale + number.add


def _vectors(cells: Cells, body: Body) -> dict[str, np.ndarray]:
    """Return position, velocity, angular velocity `(rows, 3)` and rotation `(rows, 3, 3)`, 0 where absent."""
    found: dict[str, np.ndarray] = {}
    for name, numbers in body.vectors.items():
        values = np.stack([take(cells, one, f"{name} of {body.name}") for one in numbers], -1)
        if name in _LIMITS:
            most, unit = _LIMITS[name]
            _check(cells, np.linalg.norm(values, axis=-1), f"{name} of {body.name}", 0, most, unit)
        found[name] = values
    rows = len(cells.rows)
    found["rotation"] = _rotation(cells, body, found) if rows else np.zeros((0, 3, 3))
    if "forward_speed" in found:
        found["velocity"] = found["rotation"][..., 0] * found["forward_speed"]
    for name in ("velocity", "angular_velocity"):
        found.setdefault(name, np.zeros((rows, 3)))
    return found


def _rotation(cells: Cells, body: Body, vectors: dict[str, np.ndarray]) -> np.ndarray:
    if "euler" in vectors:
        return from_euler(vectors["euler"] * (np.pi / body.half_turn))
    if "quaternion" in vectors:
        lengths = np.linalg.norm(vectors["quaternion"], axis=-1)
        _check(cells, lengths, f"quaternion of {body.name}", 1 - _UNEVEN, 1 + _UNEVEN, "long")
        return from_quaternions(vectors["quaternion"])
    if "matrix" not in vectors:
        return np.zeros((len(cells.rows), 3, 3))
    matrix = vectors["matrix"].reshape(-1, 3, 3)
    uneven = np.abs(np.swapaxes(matrix, -1, -2) @ matrix - np.eye(3)).max((-1, -2))
    _check(cells, uneven, f"matrix of {body.name}: M^T M - 1", 0, _UNEVEN, "")
    return matrix


def _check(cells: Cells, values: np.ndarray, what: str, low: float, high: float, unit: str) -> None:
    """Make sure that numbers lie where a game has them."""
    wrong = np.flatnonzero(~((values >= low - 1e-3) & (values <= high + 1e-3)))
    if wrong.size:
        row = int(wrong[0])
        unit = f" {unit}" if unit else ""
        raise ValueError(
            f"{cells.place(row)}, {what}: {values[row]:g}{unit}, expected {low:g} to "
            f"{high:g}; is it the right column, and its scale right?"
        )
