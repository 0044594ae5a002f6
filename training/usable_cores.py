"""Count the processor cores that this process may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CGROUP: Final = Path("/proc/self/cgroup")


def count_usable_cores(groups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> int:
    """Count the cores that this process may use: by its affinity, and by the quota of its containers.

    A quota of one and a half cores counts as two: two processes use all of it, one would not.

    Args:
        groups: Folder of Linux's control groups; it need not be there.
        own: File that names the control groups of this process; it need not be there.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(cores) for cores in _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """Yield the quotas of a process's control group and of those around it, in cores."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        # The second version of control groups has one tree, the first one has one for each controller.
        trees = [groups] if not controllers else [groups / controllers, groups / "cpu"]
        for tree in trees:
            path = PurePosixPath(name.lstrip("/"))
            for folder in (tree / path, *(tree / parent for parent in path.parents)):
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    """Yield the quota that a control group has itself, if it has one."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
        if float(quota) > 0 and float(period) > 0:
            yield float(quota) / float(period)
    except (OSError, ValueError):  # none: "max", or no such file
        return
