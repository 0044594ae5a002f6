"""Check whether this machine has what training and matches need, and say what to do where it has not."""

import os
import platform
import re
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from rlgym_bridge.policy.matrix_kernels import processor_flags
from rlgym_bridge.user_input.extras import explain_install, explain_native, native_folder

SERVER_PORT: Final = 23234
"""Port of RLBotServer [RLBot core]."""

_PYTHONS: Final = ((3, 11), (3, 12))
_CONNECT_SECONDS: Final = 0.5
_NEEDED: Final = (
    "numpy", "rlgym", "RocketSim", "rlbot", "mcap", "safetensors", "threadpoolctl", "rich", "msgspec",
    "tomli_w", "psutil",
)  # fmt: skip
"""Packages that every command needs, by the names that are imported."""

_EXTRAS: Final = {
    "train": ("train bots", ("torch", "tensorboard", "openskill", "matplotlib")),
    "view": ("look at recordings and matches", ("rerun", "pyarrow")),
    "replay": ("read .replay files", ("subtr_actor",)),
    "ray": ("train on several machines", ("ray",)),
    "rllib": ("train with RLlib", ("ray", "msgpack_numpy")),
}


@dataclass(frozen=True)
class Check:
    """The finding of one look at the machine.

    Attributes:
        name: Of what was looked at.
        state: "fine"; "missing" for what some commands need; "wrong" for what has to be mended; "note" else.
        found: What there is.
        advice: What to do; empty where nothing is to be done.
    """

    name: str
    state: Literal["fine", "missing", "note", "wrong"]
    found: str
    advice: str = ""


def check_machine() -> Iterator[Check]:
    """Look at this machine: Python, packages, the simulator, RLBotServer, the game. Nothing is changed."""
    for look in (_python, _packages, _rlbot, _numpy, _simulator, _rocketsim3, _shipped_bot, _processor):
        yield _guarded(look)
    yield from map(_extra, _EXTRAS)
    yield _guarded(_torch)
    yield _guarded(_server)
    yield _guarded(_game)


def _guarded(look: Callable[[], Check]) -> Check:
    """Return a check, whatever a broken installation raises."""
    try:
        return look()
    except Exception as error:
        name = getattr(look, "__name__", "").strip("_")
        return Check(name, "wrong", f"{type(error).__name__}: {error}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _python() -> Check:
    found = f"{platform.python_version()} ({platform.system()} {platform.machine()}), {sys.executable}"
    if sys.version_info[:2] not in _PYTHONS or sys.maxsize < 1 << 32:
        return Check(
            "Python", "wrong", found, "install Python 3.11 or 3.12, 64 bit, and make a new environment"
        )
    if sys.prefix == sys.base_prefix:
        advice = "make an environment of its own: python -m venv .venv"
        return Check("Python", "note", f"{found}, no virtual environment", advice)
    return Check("Python", "fine", found)


def _packages() -> Check:
    missing = [one for one in _NEEDED if not _is_there(one)]
    if missing:
        return Check("packages", "wrong", f"{', '.join(missing)} not installed", explain_install())
    return Check("packages", "fine", "all that every command needs")


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # it is marked as missing, or half imported
        return False


def _rlbot() -> Check:
    version, schema = _version("rlbot"), _version("rlbot-flatbuffers")
    if version is None or version.startswith(("0.", "1.")):
        found = "not installed" if version is None else f"{version}, which is RLBot v4"
        return Check("rlbot", "wrong", found, 'pip install "rlbot>=2.0.0b56" (plain "rlbot" is v4)')
    return Check("rlbot", "fine", f"{version}, schema {schema}")


def _numpy() -> Check:
    version, arrow = _version("numpy"), _version("pyarrow")
    if version is None or not version.startswith("1."):
        found = version or "not installed"
        return Check("numpy", "wrong", found, 'pip install "numpy>=1.26,<2" (RLGym needs a version below 2)')
    if arrow is not None and int(arrow.partition(".")[0]) >= 26:
        advice = 'pip install "pyarrow<26"'
        return Check("numpy", "wrong", f"{version} beside pyarrow {arrow}, which needs numpy 2", advice)
    return Check("numpy", "fine", version)


def _simulator() -> Check:
    from rlgym_bridge.game import BLUE, ORANGE
    from rlgym_bridge.sim.arena import make_arena, meshes_folder

    arena, _ = make_arena([BLUE, ORANGE])
    arena.step(1)
    return Check("RocketSim", "fine", f"{_version('rocketsim')}, meshes in {meshes_folder()}")


def _rocketsim3() -> Check:
    if not _is_there("rocketsim_batch"):
        found = "rocketsim_batch not installed; RocketSim 2.2.1 plays and trains"
        return Check("RocketSim 3", "missing", found, f"for --simulator rocketsim3: {explain_native()}")
    module: Any = import_module("rocketsim_batch")
    found = f"rocketsim_batch {module.__version__}, interface {module.INTERFACE}"
    folder = native_folder()
    fits = ""
    if folder is not None and hasattr(module, "SOURCE_HASH"):
        if module.source_hash(folder) != module.SOURCE_HASH:
            found += f", a stale build: the sources in {folder} have changed since"
            return Check("RocketSim 3", "wrong", found, explain_native())
        fits = f", built of the sources in {folder}"
    from rlgym_bridge.sim.arena import meshes_folder
    from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator

    try:
        make_simulator(ROCKETSIM3, 1, 1, 1)
    except Exception as error:
        return Check("RocketSim 3", "wrong", f"{found}, but: {error}", explain_native())
    return Check("RocketSim 3", "fine", f"{found}{fits}, meshes in {meshes_folder()}")


def _shipped_bot() -> Check:
    from rlgym_bridge.cli.shipped import find_shipped_folder

    try:
        return Check("shipped bot", "fine", str(find_shipped_folder() / "bot"))
    except ValueError:
        return Check(
            "shipped bot", "note", "not there", "name bots: rlgym-bridge match --blue BOT --orange BOT"
        )


def _processor() -> Check:
    from threadpoolctl import threadpool_info

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kernels = [one.get("architecture") for one in threadpool_info() if one["user_api"] == "blas"]
    named = next((str(one) for one in kernels if one), "unknown")
    found = f"{usable} cores, matrix products for {named}"
    if named == "Prescott" and "avx2" in processor_flags():
        advice = (
            "unset OPENBLAS_CORETYPE, and import rlgym_bridge before numpy: networks are four times slower"
        )
        return Check("processor", "note", found, advice)
    return Check("processor", "fine", found)


def _extra(extra: str) -> Check:
    purpose, modules = _EXTRAS[extra]
    missing = [one for one in modules if not _is_there(one)]
    if missing:
        found = f"{', '.join(missing)} not installed"
        return Check(f"extra {extra}", "missing", found, f"to {purpose}: {explain_install(extra)}")
    return Check(f"extra {extra}", "fine", f"to {purpose}")


def _torch() -> Check:
    if not _is_there("torch"):
        return Check("torch", "missing", "not installed", explain_install("train"))
    import torch

    if torch.cuda.is_available():
        return Check("torch", "fine", f"{torch.__version__}, trains on {torch.cuda.get_device_name()}")
    built = "" if torch.version.cuda else ", a build for processors alone"
    return Check("torch", "fine", f"{torch.__version__}, trains on the processor{built}")


def _server() -> Check:
    text = os.environ.get("RLBOT_SERVER_PORT") or str(SERVER_PORT)
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        found = f"RLBOT_SERVER_PORT is {text!r}"
        return Check("RLBotServer", "wrong", found, "set it to a TCP port, 1 to 65535, or unset it")
    port = int(text)
    host = os.environ.get("RLBOT_SERVER_IP") or "127.0.0.1"
    process = _process("rlbotserver")
    try:
        with socket.create_connection((host, port), _CONNECT_SECONDS):
            found = f"something listens on {host}:{port}" + (f", {process}" if process else "")
            return Check("RLBotServer", "fine", found)
    except OSError as error:
        if process:
            advice = (
                f"is it still starting? Its port is RLBOT_SERVER_PORT's, {SERVER_PORT} if that is not set"
            )
            return Check("RLBotServer", "wrong", f"{process}, but {host}:{port} says: {error}", advice)
        installed = _installed_server()
        advice = (
            "start RLBot before a match in the real game"
            if installed
            else "for the real game: https://rlbot.org"
        )
        return Check("RLBotServer", "note", f"not running; {installed or 'not found'}", advice)


def _installed_server() -> str:
    """Return where RLBot's installer puts its server; empty where it is not."""
    folders = [os.environ.get(one) for one in ("LOCALAPPDATA", "XDG_DATA_HOME")]
    folders.append(str(Path.home() / ".local" / "share"))
    for folder in filter(None, folders):
        for file in sorted(Path(folder).glob("RLBot*/bin/RLBotServer*")):
            return str(file)
    return ""


def _game() -> Check:
    running = _process("rocketleague")
    return Check("Rocket League", "fine" if running else "note", running or "not running")


def _process(name: str) -> str:
    """Return the name and number of a running program; empty where there is none."""
    if not _is_there("psutil"):
        return ""
    import psutil

    for one in psutil.process_iter(["name", "pid"]):
        if re.sub(r"[^a-z]", "", str(one.info["name"]).lower()).startswith(name):
            return f"{one.info['name']} runs as process {one.info['pid']}"
    return ""
