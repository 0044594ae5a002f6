"""The standard field as lines: the collision meshes that RocketSim plays in, and its floor's paint."""

from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.user_input.extras import meshes_folder

_UNIT: Final = 50.0  # uu in a unit of the meshes [RocketSim, BT_TO_UU]
_CORNER: Final = 1152.0  # uu that the diagonal corners cut off each wall [corner planes of the meshes]
_CENTRE_CIRCLE: Final = 1000.0  # uu, roughly that of the game's floor paint
_CREASE: Final = np.cos(np.radians(2.0))  # triangles that meet flatter than this are one face
_WELD: Final = 1.0  # uu: vertices closer than this are one, between meshes too


def read_mesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a collision mesh: corners, ramps and goals; RocketSim adds floor, walls and ceiling.

    A file (.cmf) is little endian: int32 triangles, int32 vertices, int32 indices of a triangle's vertices,
    float32 x y z of each vertex in units of 50 uu. Return `(vertices, 3)` float32 in uu and `(triangles, 3)`
    int32. Raises OSError, or ValueError if the length is not what its head says.
    """
    data = path.read_bytes()
    head = np.frombuffer(data[:8], "<i4")
    if len(head) != 2 or head.min() < 0 or len(data) != 8 + 12 * int(head.sum()):
        raise ValueError(
            f"{path} is no collision mesh: {len(data)} bytes do not fit its head {head.tolist()}; "
            f"install rlgym-rocket-league again"
        )
    triangles = np.frombuffer(data, "<i4", 3 * int(head[0]), 8).reshape(-1, 3)
    vertices = np.frombuffer(data, "<f4", offset=8 + 12 * int(head[0])).reshape(-1, 3)
    if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(vertices):
        raise ValueError(f"{path} is no collision mesh: a triangle has a vertex that is not there")
    return vertices * np.float32(_UNIT), triangles


def mesh_edges(folder: Path | None = None) -> np.ndarray:
    """Return the edges, `(edges, 2, 3)` float32 uu, at which the meshes of a folder bend or end.

    Without a folder they are those of the standard field. Raises FileNotFoundError if there are no meshes;
    ValueError if a file is no mesh.
    """
    folder = meshes_folder() / "soccar" if folder is None else folder
    meshes = [read_mesh(path) for path in sorted(folder.glob("*.cmf"))]
    if not meshes:
        raise FileNotFoundError(f"no .cmf in {folder}; install rlgym-rocket-league again")
    counts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes)])
    points = np.concatenate([vertices for vertices, _ in meshes])
    corners = np.concatenate([one + first for (_, one), first in zip(meshes, counts, strict=False)])
    _, first, same = np.unique(np.round(points / _WELD), axis=0, return_index=True, return_inverse=True)
    points, corners = points[first], same.reshape(-1)[corners]
    return np.asarray(points[_creases(points, corners)])


def _creases(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return `(edges, 2)` indices of points: the edges that do not lie within a plane."""
    first, second, third = points[corners].transpose(1, 0, 2)
    normals = np.cross(second - first, third - first)
    lengths = np.linalg.norm(normals, axis=1)
    corners, normals = corners[lengths > 0], normals[lengths > 0] / lengths[lengths > 0, None]
    edges = np.sort(corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    owner = np.repeat(np.arange(len(corners)), 3)
    found, place, count = np.unique(edges, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(place.reshape(-1), kind="stable")
    begins = np.cumsum(count) - count
    flat = np.zeros(len(found), bool)
    pairs = np.flatnonzero(count == 2)
    one, other = (normals[owner[order[begins[pairs] + side]]] for side in (0, 1))
    flat[pairs] = np.abs((one * other).sum(1)) > _CREASE
    return np.asarray(found[~flat])


def outline(height: float = 0.0) -> np.ndarray:
    """Return the closed line, `(9, 3)` uu, along the walls of the field without its goals."""
    x, y = game.SIDE_WALL_X, game.BACK_WALL_Y
    quarter = np.array([(x, y - _CORNER), (x - _CORNER, y)])
    turns = [quarter, quarter[::-1] * (-1, 1), -quarter, quarter[::-1] * (1, -1)]
    points = np.concatenate(turns)
    ring = np.concatenate([points, points[:1]])
    return np.column_stack([ring, np.full(len(ring), height)])


def floor_lines() -> list[np.ndarray]:
    """Return outlines of floor and ceiling, half-way line and centre circle: `(n, 3)` uu each."""
    angles = np.linspace(0, 2 * np.pi, 49)
    circle = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(49)]) * _CENTRE_CIRCLE
    half = np.array([(-game.SIDE_WALL_X, 0, 0), (game.SIDE_WALL_X, 0, 0)])
    return [outline(), outline(game.CEILING_Z), half, circle]


def goal_lines(side: float) -> list[np.ndarray]:
    """Return mouth and net of a goal, `(n, 3)` uu each; `side` is -1 for blue's, 1 for orange's."""
    w, h = game.GOAL_WIDTH / 2, game.GOAL_HEIGHT
    frame = np.array([(-w, 0, 0), (-w, 0, h), (w, 0, h), (w, 0, 0), (-w, 0, 0)])
    mouth, back = (np.add(frame, (0, side * depth, 0)) for depth in (game.BACK_WALL_Y, game.GOAL_BACK_Y))
    return [mouth, back, *(np.array([one, other]) for one, other in zip(mouth[:4], back[:4], strict=True))]
