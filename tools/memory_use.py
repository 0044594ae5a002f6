"""Memory, handles, threads and children of processes, from Linux' /proc, and how memory grows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil


@dataclass(frozen=True)
class MemoryUse:
    """Memory, handles, threads and children of a process at one time.

    Attributes:
        mb: Memory, the shared pages divided among those who share them (PSS) [MB of 1e6 bytes].
        own_mb: Memory that belongs to no file, such as the heap: what others do leaves it as it is [MB].
        resident_mb: Memory with all shared pages (RSS) [MB].
        handles: Open files and sockets.
        threads: Threads.
        children: Processes that it has started, and these again, that still run.
    """

    mb: float
    own_mb: float
    resident_mb: float
    handles: int
    threads: int
    children: int


def memory_of(pid: int) -> MemoryUse:
    """Return what a process uses now."""
    folder = Path("/proc") / str(pid)
    values = {}
    for line in (folder / "smaps_rollup").read_text().splitlines()[1:]:
        name, _, value = line.partition(":")
        values[name] = int(value.split()[0]) * 1024 / 1e6
    process = psutil.Process(pid)
    living = sum(_is_alive(child) for child in process.children(recursive=True))
    handles = sum(1 for _ in (folder / "fd").iterdir())
    return MemoryUse(
        values["Pss"], values["Anonymous"], values["Rss"], handles, process.num_threads(), living
    )


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended since it was found
        return False


def growth_an_hour(minutes: Sequence[float], megabytes: Sequence[float]) -> float:
    """Fit a line to the later half of the points; return its slope in MB an hour, NaN for too few."""
    first = (minutes[0] + minutes[-1]) / 2.0 if minutes else 0.0
    late = [(x, y) for x, y in zip(minutes, megabytes, strict=True) if x >= first]
    if len(late) < 2:
        return float("nan")
    times, values = np.array(late).T
    return float(np.polyfit(times, values, 1)[0] * 60.0)
