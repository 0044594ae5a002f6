"""Step many Rocket League matches at once: RocketSim 3 with numpy arrays.

controls (matches, cars, ticks, 8) -> Matches.step -> buffer (matches, size), events
buffer -> Observer, Rewards -> observations (matches, cars, numbers), rewards
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
    BallFlights,
    Layout,
    MatchError,
    Matches,
    Observer,
    Rewards,
    add_rewards,
    meshes_loaded,
    pad_positions,
    step_groups,
)

del _processor


def _words(error: BaseException) -> str:
    return str(error.args[0])


MatchError.__str__ = _words  # type: ignore[method-assign]  # its other arguments may be long lists

__version__ = VERSION
_MESHES = 16  # files that a soccar field is made of
INTERFACE = 3
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
"""One event: match, tick of the step from 0, kind, car, other (-1: none), and numbers by the kind (rest 0).

| kind | car | other | numbers |
|---|---|---|---|
| TOUCH | touched the ball | | place, then place relative to the ball's centre before the tick, uu |
| BUMP, DEMOLITION | did it | was hit | place, uu |
| PAD | took it | the pad, as `pad_timer` counts | |
| LANDING | landed on its wheels | | how many wheels touch |
| BOUNCE | | | place on the field, uu, and normal: 10 uu/s or more against it |
| GOAL | scored | passed | team that scored (0 blue, 1 orange), speed in uu/s |
| SHOT | shot | passed | speed in uu/s |
| SAVE | saved | | |
"""

TOUCH, BUMP, DEMOLITION, PAD, LANDING, BOUNCE, GOAL, SHOT, SAVE = (number for _, number in KINDS)

__all__ = [
    "BOUNCE", "BUMP", "DEMOLITION", "EVENT", "GOAL", "INTERFACE", "KINDS", "LANDING", "PAD", "SAVE", "SHOT",
    "SOURCE_HASH", "TOUCH", "BallFlights", "Layout", "MatchError", "Matches", "Observer", "Rewards",
    "add_rewards", "crash_folder", "load_meshes", "meshes_loaded", "new_states", "pad_positions",
    "source_hash", "step_groups", "views",
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

    Where they are loaded already, this does nothing, whatever folder is given.

    Args:
        folder: Has `soccar/*.cmf`; None takes those that come with `rlgym-rocket-league`.

    Raises:
        FileNotFoundError: They are not there, or cannot be read; the message says what to install.
    """
    if meshes_loaded():
        return
    if folder is None:
        spec = importlib.util.find_spec("rlgym")
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        found = [Path(place, "rocket_league", "sim", "collision_meshes") for place in places]
        folder = next((path for path in found if path.is_dir()), Path("collision_meshes"))
    soccar = Path(folder, "soccar")
    files = len(list(soccar.glob("*.cmf")))
    if files < _MESHES:
        raise FileNotFoundError(
            f"{soccar} has {files} collision meshes, expected {_MESHES} files *.cmf; they come with: "
            "pip install rlgym-rocket-league"
        )
    try:
        _native.load_meshes(folder)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{soccar} has collision meshes that cannot be read, expected the {_MESHES} of: "
            f"pip install --force-reinstall rlgym-rocket-league ({error})"
        ) from None


def new_states(layout: Layout, matches: int) -> np.ndarray:
    """Return states that `Matches.put` takes: the game's rules, all bodies at the centre, no boost.

    Follow them with `Matches.kickoff`, or write places into their `views` first.

    Args:
        layout: Of the matches; one without a field leaves that field out.
        matches: Number of states.

    Returns:
        `(matches, layout.size)` float32.
    """
    states = np.zeros((matches, layout.size), np.float32)
    values = {"gravity": 1, "boost_consumption": 1, "dodge_deadzone": 0.5, "car_bump_victim": -1}
    for name, view in views(layout, states).items():
        view[...] = np.eye(3) if name.endswith("rotation") else values.get(name, 0)
        if name == "car_team":
            view[:, layout.blue :] = 1
    return states


def views(layout: Layout, buffer: np.ndarray) -> dict[str, np.ndarray]:
    """Return the fields of a buffer as named views.

    Args:
        layout: Of the matches.
        buffer: `(matches, layout.size)` float32.

    Returns:
        Views `(matches, *shape)` by name, those of cars `(matches, cars, *shape)`; `frame` and
        `car_player_id` are int32. To write into a view changes the buffer.

    Raises:
        ValueError: The buffer has another dtype, shape or order, in which views would be copies.
    """
    cars = layout.blue + layout.orange
    if buffer.dtype != np.float32 or buffer.shape[1:] != (layout.size,) or not buffer.flags.c_contiguous:
        order = "" if buffer.flags.c_contiguous else ", not C-contiguous"
        raise ValueError(
            f"buffer is {buffer.dtype}{list(buffer.shape)}{order}, "
            f"expected a C-contiguous numpy array float32[matches, {layout.size}]"
        )
    of_cars = buffer[:, layout.car_start : layout.car_start + cars * layout.car_stride]
    of_cars = of_cars.reshape(len(buffer), cars, layout.car_stride)
    found = {}
    for name, (column, shape) in layout.fields.items():
        part = of_cars if name.startswith("car_") else buffer
        view = part[..., column : column + int(np.prod(shape, dtype=int))].reshape(*part.shape[:-1], *shape)
        found[name] = view.view(np.int32) if name in ("frame", "car_player_id") else view
    return found
