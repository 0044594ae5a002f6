"""Step many Rocket League matches at once: RocketSim 3 with numpy arrays.

controls (matches, cars, ticks, 8) -> Matches.step -> buffer (matches, size), events
"""

import importlib.util
import tempfile
from pathlib import Path

import numpy as np

from rocketsim_batch import _processor  # first: it checks the processor

# isort: split
from rocketsim_batch import _native
from rocketsim_batch._native import (
    KINDS,
    SOURCE_HASH,
    VERSION,
    Layout,
    MatchError,
    Matches,
    meshes_loaded,
    pad_positions,
    step_groups,
)

del _processor

__version__ = VERSION
INTERFACE = 1
"""Number of this module's interface: it rises when a caller has to change."""

crash_folder: Path | None = Path(tempfile.gettempdir(), "rocketsim-batch")
"""Folder in which each panic of a match leaves a file; None leaves none."""

EVENT = np.dtype(
    [
        ("match", "<u4"),
        ("tick", "<u4"),
        ("kind", "<i2"),
        ("car", "<i2"),
        ("other", "<i2"),
        ("numbers", "<f4", 6),
    ]
)
"""One event: match, tick of the step, kind, car, other car or pad (-1: none), and numbers."""

TOUCH, BUMP, DEMOLITION, PAD, LANDING, BOUNCE, GOAL, SHOT, SAVE = (number for _, number in KINDS)

__all__ = [
    "BOUNCE", "BUMP", "DEMOLITION", "EVENT", "GOAL", "INTERFACE", "KINDS", "LANDING", "PAD", "SAVE", "SHOT",
    "SOURCE_HASH", "TOUCH", "Layout", "MatchError", "Matches", "crash_folder", "load_meshes", "meshes_loaded",
    "pad_positions", "source_hash", "step_groups", "views",
]  # fmt: skip


def source_hash(folder: str | Path) -> str:
    """Return the hash of the sources in a checkout, which `SOURCE_HASH` equals where the build is fresh.

    Args:
        folder: Has `Cargo.lock`, `.cargo/config.toml` and `src/*.rs`.
    """
    folder = Path(folder)
    value = 0xCBF29CE484222325  # 64-bit FNV-1a, as in build.rs
    files = [folder / "Cargo.lock", folder / ".cargo" / "config.toml", *sorted((folder / "src").glob("*.rs"))]
    for file in files:
        for byte in file.name.encode() + b"\0" + file.read_bytes().replace(b"\r", b"") + b"\0":
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def load_meshes(folder: str | Path | None = None) -> None:
    """Load the collision meshes of the soccar field, once in a process.

    Args:
        folder: Has `soccar/*.cmf`; None takes those that come with `rlgym-rocket-league`.

    Raises:
        FileNotFoundError: They are not there; the message says what to install.
    """
    if meshes_loaded():
        return
    if folder is None:
        spec = importlib.util.find_spec("rlgym")
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        found = [Path(place, "rocket_league", "sim", "collision_meshes") for place in places]
        folder = next((path for path in found if path.is_dir()), Path("collision_meshes"))
    _native.load_meshes(folder)


def views(layout: Layout, buffer: np.ndarray) -> dict[str, np.ndarray]:
    """Return the fields of a buffer as named views.

    Args:
        layout: Of the matches.
        buffer: `(matches, layout.size)` float32.

    Returns:
        Views `(matches, *shape)` by name, those of cars `(matches, cars, *shape)`; `frame` and
        `car_player_id` are int32.
    """
    cars = layout.blue + layout.orange
    of_cars = buffer[:, layout.car_start : layout.car_start + cars * layout.car_stride]
    of_cars = of_cars.reshape(len(buffer), cars, layout.car_stride)
    found = {}
    for name, (column, shape) in layout.fields.items():
        part = of_cars if name.startswith("car_") else buffer
        view = part[..., column : column + int(np.prod(shape, dtype=int))].reshape(*part.shape[:-1], *shape)
        found[name] = view.view(np.int32) if name in ("frame", "car_player_id") else view
    return found
