"""`rlgym-bridge doctor`: say whether this machine has what is needed, and what to do where it has not.

What a broken installation may lack is imported late: `commands.explain_broken` looks here, too.
"""

import argparse
import dataclasses
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from rlgym_bridge.policy.matrix_kernels import processor_flags
from rlgym_bridge.user_input.extras import (
    EXTRAS,
    explain_install,
    explain_native,
    meshes_folder,
    native_folder,
    versions_of,
)

SERVER_PORT: Final = 23234
"""Port of RLBotServer [RLBot core]."""

_PYTHONS: Final = ((3, 11), (3, 12))
_CONNECT_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 10.0  # in which a program says its version
_CORE: Final = 16
"""Release candidate of RLBot core from which every launcher starts the game without Easy Anti-Cheat.

Steam's does from 15 on, Legendary's and Heroic's from 16 on [RLBot core, pull requests 172 and 174].
"""

_NEEDED: Final = (
    "numpy", "rlgym", "RocketSim", "rlbot", "mcap", "safetensors", "threadpoolctl", "rich", "msgspec",
    "tomli_w", "psutil",
)  # fmt: skip
"""Packages that every command needs, by the names that are imported."""


@dataclass(frozen=True)
class Check:
    """The finding of one look at the machine."""

    name: str  # of what was looked at
    # "fine"; "missing" for what some commands need; "wrong" for what has to be mended; "note" else
    state: Literal["fine", "missing", "note", "wrong"]
    found: str  # what there is
    advice: str = ""  # what to do; empty where nothing is to be done


def check_machine() -> Iterator[Check]:
    """Look at this machine: Python, packages, the simulator, RLBotServer, the game. Nothing is changed."""
    for look in (_python, _packages, _rlbot, _numpy, _simulator, _rocketsim3, _shipped_bot, _processor):
        yield _guarded(look)
    yield from map(_extra, EXTRAS)
    yield _guarded(_torch)
    yield _guarded(_server)
    yield from check_game()


def check_game() -> Iterator[Check]:
    """Look at RLBotServer's version and at how the game was started: either may keep bots out."""
    yield _guarded(_core)
    yield _guarded(_game)


def _guarded(look: Callable[[], Check]) -> Check:
    """Return a check, whatever a broken installation raises."""
    try:
        return look()
    except Exception as error:
        name = getattr(look, "__name__", "").strip("_")
        return Check(name, "wrong", f"{type(error).__name__}: {error}")


def _version(package: str) -> str | None:
    return versions_of(package).get(package)


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
    from rlgym_bridge.sim.arena import make_arena

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
    from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator

    try:
        make_simulator(ROCKETSIM3, 1, 1, 1)
        meshes = meshes_folder()
    except Exception as error:
        # where the meshes are missing it says itself what to do
        advice = "" if isinstance(error, FileNotFoundError) else explain_native()
        return Check("RocketSim 3", "wrong", f"{found}, but: {error}", advice)
    return Check("RocketSim 3", "fine", f"{found}{fits}, meshes in {meshes}")


def _shipped_bot() -> Check:
    from rlgym_bridge.server.lineup import find_shipped_folder

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
    purpose, modules = EXTRAS[extra]
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


def _core() -> Check:
    """Ask the RLBotServer that runs, or the installed one, for its version."""
    files = [str(one["exe"]) for one in _running("rlbotserver") if one["exe"]]
    file = next((one for one in files if "rlbotserver" in Path(one).name.lower()), "") or _installed_server()
    name = "RLBot core"
    if not file:
        return Check(name, "note", "no RLBotServer to ask for its version")
    try:
        said = subprocess.run(
            [file, "--version"], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            errors="replace", timeout=_ANSWER_SECONDS, check=False,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, "note", f"{file} did not say its version: {error}")
    version = re.match(r"RLBotServer v(\S+)", said)
    if version is None:
        return Check(name, "note", f"{file} --version says {said[:40]!r}, expected RLBotServer v...")
    candidate = re.fullmatch(r"5\.0\.0-rc\.?(\d+)", version[1])
    if "beta" in version[1] or (candidate is not None and int(candidate[1]) < _CORE):
        advice = (
            f"open RLBot's launcher, which updates it: before rc.{_CORE} it starts the game with "
            "Easy Anti-Cheat from some launchers"
        )
        return Check(name, "wrong", f"{version[1]}, {file}", advice)
    return Check(name, "fine", f"{version[1]}, {file}")


def _installed_server() -> str:
    """Return where RLBot's installer puts its server; empty where it is not."""
    folders = [os.environ.get(one) for one in ("LOCALAPPDATA", "XDG_DATA_HOME")]
    folders.append(str(Path.home() / ".local" / "share"))
    for folder in filter(None, folders):
        for file in sorted(Path(folder).glob("RLBot*/bin/RLBotServer*")):
            return str(file)
    return ""


def _game() -> Check:
    """Look whether the game runs, and whether it was started for bots."""
    running = _running("rocketleague")
    found = _process("rocketleague")
    words = [str(word).lower() for one in running for word in (one["name"], *(one["cmdline"] or ()))]
    if any("rocketleague_eac" in word for word in words):
        found += ", with Easy Anti-Cheat"
    elif any(one["cmdline"] for one in running) and not any("-rlbot" in word for word in words):
        found += ", without -rlbot"
    else:
        return Check("Rocket League", "fine" if running else "note", found or "not running")
    return Check("Rocket League", "note", found, "close it before a match with bots: RLBot starts it anew")


def _process(name: str) -> str:
    """Return the name and number of a running program; empty where there is none."""
    running = _running(name)
    return f"{running[0]['name']} runs as process {running[0]['pid']}" if running else ""


def _running(name: str) -> list[dict[str, Any]]:
    """Return name, pid, exe and cmdline of the running programs whose names begin so; exe may be None."""
    if not _is_there("psutil"):
        return []
    import psutil

    every = (one.info for one in psutil.process_iter(["name", "pid", "exe", "cmdline"]))
    return [one for one in every if re.sub(r"[^a-z]", "", str(one["name"]).lower()).startswith(name)]


STATUS: Final = "0 nothing is wrong, 1 something is, 2 bad usage or input"
_STYLES: Final = {"fine": "green", "missing": "yellow", "note": "", "wrong": "bold red"}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Check what this machine has: Python, packages and their versions, the simulator, extras, "
        "RLBotServer, the game. Nothing is changed. What is missing is needed by some commands alone."
    )


def run(options: argparse.Namespace) -> int:
    """Look, and print a table."""
    from rich.markup import escape

    from rlgym_bridge.cli import options as shared
    from rlgym_bridge.cli import output_files

    output_files.check_outputs(options.json)
    checks = list(check_machine())
    table = shared.make_table("", "state", "found")
    for one in checks:
        advice = f"\n[italic]{escape(one.advice)}[/]" if one.advice else ""
        state = f"[{_STYLES[one.state]}]{one.state}[/]" if _STYLES[one.state] else one.state
        table.add_row(one.name, state, escape(one.found) + advice)
    shared.console_of(options).print(table)
    output_files.write_json(options.json, {"checks": [dataclasses.asdict(one) for one in checks]})
    return int(any(one.state == "wrong" for one in checks))
