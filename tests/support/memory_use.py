"""Memory, handles, threads and children of processes, from Linux' /proc, and how memory grows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil


@dataclass(frozen=True)
class MemoryUse:
    """What a process uses at a time.

    Attributes:
        mb: Memory, the shared pages divided among those who share them (PSS) [MB of 1e6 bytes].
        resident_mb: Memory with all shared pages (RSS) [MB].
        handles: Open files and sockets.
        threads: Threads.
        children: Processes that it has started, and these again, that still run.
    """

    mb: float
    resident_mb: float
    handles: int
    threads: int
    children: int


def memory_of(pid: int) -> MemoryUse:
    """Return what a process uses now.

    Raises:
        OSError: It has ended, or this is not Linux.
        psutil.Error: It has ended.
    """
    folder = Path("/proc") / str(pid)
    values = {}
    for line in (folder / "smaps_rollup").read_text().splitlines()[1:]:
        name, _, value = line.partition(":")
        values[name] = int(value.split()[0]) * 1024 / 1e6
    process = psutil.Process(pid)
    living = [child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    handles = sum(1 for _ in (folder / "fd").iterdir())
    return MemoryUse(values["Pss"], values["Rss"], handles, process.num_threads(), len(living))


def growth_an_hour(minutes: Sequence[float], megabytes: Sequence[float]) -> float:
    """Fit a line to the later half of the points.

    Args:
        minutes: Times of the points [min].
        megabytes: Memory at these times [MB].

    Returns:
        The growth [MB an hour]; NaN with less than two points in the later half.
    """
    first = (minutes[0] + minutes[-1]) / 2.0 if minutes else 0.0
    late = [(x, y) for x, y in zip(minutes, megabytes, strict=True) if x >= first]
    if len(late) < 2:
        return float("nan")
    times, values = np.array(late).T
    return float(np.polyfit(times, values, 1)[0] * 60.0)
