"""Advise how to install what is missing; load `rocketsim_batch` and find the collision meshes."""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[2]
_CPU_TORCH: Final = "pip install torch --index-url https://download.pytorch.org/whl/cpu"
_OF_EXTRA: Final = re.compile(r"(?P<what>[^;]+?)\s*;.*extra\s*==\s*['\"](?P<extra>\w+)['\"]")

MESHES_VARIABLE: Final = "RLGYM_BRIDGE_MESHES"
"""Names the folder of collision meshes where `rlgym-rocket-league`, which brings them, is not installed."""

EXTRAS: Final = {
    "train": ("train bots", ("torch", "tensorboard", "matplotlib")),
    "wandb": ("send curves to Weights & Biases", ("wandb",)),
    "view": ("look at recordings and matches", ("rerun", "rerun_sdk", "pyarrow")),
    "play": ("play and watch in the browser", ("aiohttp",)),
    "replay": ("read .replay files", ("subtr_actor",)),
    "ray": ("train on several machines", ("ray",)),
    "rllib": ("train with RLlib", ("ray", "gymnasium", "msgpack_numpy")),
}
"""Purpose of each extra, and the packages that it installs by the names that are imported."""

_INTERFACE: Final = 3  # of rocketsim_batch that this project is written for


def explain_missing(package: str | None) -> str | None:
    """Return which extra installs a package that could not be imported; None where none does."""
    root = (package or "").partition(".")[0]
    for extra, (_, packages) in EXTRAS.items():
        if root in packages:
            return f"{root} is not installed, expected the extra {extra}: {explain_install(extra)}"
    return None


def explain_install(*extras: str) -> str:
    """Return the command that installs extras of `pyproject.toml`, or else what every command needs.

    The name of this package alone would not do: the package index may have another one of its name.
    """
    if (_ROOT / "constraints.txt").is_file():
        what = f'".[{",".join(extras)}]"' if extras else "."
        return f"pip install -c constraints.txt -e {what} (in the folder {_ROOT}){_torch_hint(extras)}"
    metadata = import_module("importlib.metadata")  # not earlier: it imports what the current folder may have
    try:
        lines = metadata.requires("rlgym-bridge") or []
    except metadata.PackageNotFoundError:
        lines = []
    found = [(line, _OF_EXTRA.fullmatch(line)) for line in lines]
    needed = dict.fromkeys(its["what"] for _, its in found if its and its["extra"] in extras)
    if not extras:
        needed = dict.fromkeys(line for line, its in found if not its)
    packages = " ".join(f'"{name}"' for name in needed)
    command = (
        f"pip install {packages}" if packages else f"install the extra {','.join(extras)} of its project"
    )
    return command + _torch_hint(extras)


def versions_of(*packages: str) -> dict[str, str]:
    """Return the versions of packages by their names at the index, of those that are installed."""
    metadata = import_module("importlib.metadata")
    found: dict[str, str] = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def native_folder() -> Path | None:
    """Return the folder with the sources of `rocketsim_batch`; None without a checkout of this project."""
    folder = _ROOT / "native"
    return folder if (folder / "Cargo.toml").is_file() else None


def explain_native() -> str:
    """Return how to install `rocketsim_batch`, which steps RocketSim 3."""
    if native_folder() is None:
        return "pip install the wheel rocketsim_batch-*.whl of a release of this project"
    return (
        f"make native, or pip install ./native (in the folder {_ROOT}; it needs Rust 1.95: https://rustup.rs)"
    )


@cache
def load_native() -> Any:
    """Return the module `rocketsim_batch`; raises ImportError if it is missing or of another interface."""
    import rocketsim_batch

    if rocketsim_batch.INTERFACE != _INTERFACE:
        raise ImportError(
            f"rocketsim_batch has interface {rocketsim_batch.INTERFACE}, expected {_INTERFACE}; "
            f"build it anew: {explain_native()}"
        )
    return rocketsim_batch


def meshes_folder() -> Path:
    """Return the folder of the collision meshes, whose folder `soccar` has 16 files of the standard arena.

    It is the one that `RLGYM_BRIDGE_MESHES` names, or else the one of the package `rlgym-rocket-league`.
    Raises FileNotFoundError if there is none, or it has no folder `soccar`.
    """
    named = os.environ.get(MESHES_VARIABLE)
    folder = Path(named) if named else _packaged_meshes()
    if folder is None or not (folder / "soccar").is_dir():
        came = f"{MESHES_VARIABLE} names {folder}" if named else f"looked in {folder or 'no folder'}"
        raise FileNotFoundError(
            f"RocketSim needs the collision meshes: {came}, expected a folder with soccar/ in it. "
            "Install the package that brings them: pip install --no-deps rlgym-rocket-league==2.0.1, "
            f"or let {MESHES_VARIABLE} name a folder that has them"
        )
    return folder


def _packaged_meshes() -> Path | None:
    try:
        spec = find_spec("rlgym.rocket_league.sim")
    except ModuleNotFoundError:  # there is no rlgym.rocket_league
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "collision_meshes"


def _torch_hint(extras: Sequence[str]) -> str:
    """Say how to get torch without gigabytes of CUDA's libraries, which pip's own brings on Linux."""
    if (
        sys.platform != "linux"
        or not {"train", "ray", "rllib"} & set(extras)
        or find_spec("torch") is not None
    ):
        return ""
    return f"; before that `{_CPU_TORCH}` takes torch's CPU build, without it CUDA comes, several GB"
