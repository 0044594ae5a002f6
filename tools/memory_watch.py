"""Memory over an hour of a recorded match in real time, and of a training."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from tests.support.processes import child
from tools.memory_use import growth_an_hour, memory_of

_END_SECONDS: Final = 300.0  # for a process that was asked to end: a match merges its recordings

TRAINING: Final = """
collectors = 1
threads = 1
matches = 32
policy_layers = [64, 64]
critic_layers = [64, 64]
checkpoint_every = 200_000
"""
"""Settings of the training."""


@dataclass
class MemoryWatch:
    """Memory of a command's processes over time.

    Attributes:
        name: Of the command.
        points: One each half a minute: `minute`, and memory of its own by process, see `MemoryUse` [MB].
        handles: Open handles of the command's own process, at the same times.
        ended: How the command ended: "stopped" where its time was over, else its exit code.
        late: Share of packets that the server made late; None for a training.
        packets: Packets that the server made; None for a training.
    """

    name: str
    points: list[dict[str, float]] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)
    ended: str = ""
    late: float | None = None
    packets: int | None = None

    @property
    def growth(self) -> dict[str, float]:
        """Growth by process over the later half [MB an hour]."""
        roles = {role for point in self.points for role in point} - {"minute"}
        found = {}
        for role in sorted(roles):
            seen = [point for point in self.points if role in point]
            found[role] = growth_an_hour([p["minute"] for p in seen], [p[role] for p in seen])
        return found

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "name": self.name, "growth_mb_an_hour": self.growth, "ended": self.ended, "late": self.late,
            "packets": self.packets, "points": self.points, "handles": self.handles,
        }  # fmt: skip


def watch_match(
    folder: Path, minutes: float, every: float, report: Callable[[MemoryWatch], None]
) -> MemoryWatch:
    """Play a match of Chaser against itself in real time, recorded, and watch its processes."""
    result = folder / "result.json"
    command = [
        sys.executable, "-m", "rlgym_bridge.cli", "match", "--blue", "chaser", "--orange", "chaser",
        "--pace", "realtime", "--seconds", str(int(minutes * 60.0) + 600), "--quiet",
        "--record", str(folder / "match.mcap"), "--json", str(result),
    ]  # fmt: skip
    watch = watch_command("long match", command, folder, minutes, every, "bot", report)
    if result.is_file():
        played = json.loads(result.read_text())
        watch.packets = played["ticks"]
        watch.late = played["server_late"] / played["ticks"]
    return watch


def watch_training(
    folder: Path, minutes: float, every: float, report: Callable[[MemoryWatch], None]
) -> MemoryWatch:
    """Train with one collector, and watch both processes."""
    settings = folder / "small.toml"
    settings.write_text(TRAINING)
    command = [
        sys.executable, "-m", "rlgym_bridge.cli", "train", str(settings), "--out", str(folder / "run"),
        "--steps", "2000000000", "--quiet",
    ]  # fmt: skip
    return watch_command("trainer", command, folder, minutes, every, "collector", report)


def watch_command(
    name: str, command: Sequence[str], folder: Path, minutes: float, every: float, role: str,
    report: Callable[[MemoryWatch], None],
) -> MemoryWatch:  # fmt: skip
    """Run a command for some minutes, note the memory of its processes, and end it as Ctrl-C does."""
    watch = MemoryWatch(name)
    began = time.monotonic()
    with child(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        while (seconds := time.monotonic() - began) < minutes * 60.0 and process.poll() is None:
            with suppress(OSError, psutil.Error, KeyError):  # one of them ends at this moment
                _look(watch, process.pid, role, seconds / 60.0)
                report(watch)
            with suppress(subprocess.TimeoutExpired):
                process.wait(min(every, max(0.0, minutes * 60.0 - seconds)))
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            watch.ended = "stopped" if process.poll() is not None else "had to be killed"
        else:
            watch.ended = f"exit code {process.returncode} before its time"
    return watch


def _look(watch: MemoryWatch, pid: int, role: str, minute: float) -> None:
    """Add a point; shells and Python's own helper processes are left out."""
    main = memory_of(pid)
    point = {"minute": minute, "main": main.own_mb}
    number = 0
    for process in sorted(psutil.Process(pid).children(recursive=True), key=lambda one: one.pid):
        words = " ".join(process.cmdline())
        if process.name() in ("sh", "dash", "bash") or "resource_tracker" in words or "processes.py" in words:
            continue
        if process.status() != psutil.STATUS_ZOMBIE:
            number += 1
            point[f"{role} {number}"] = memory_of(process.pid).own_mb
    watch.points.append(point)
    watch.handles.append(main.handles)
