"""Start processes on the cores that may be used, end them, and keep two from writing to one folder."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any, Final, Self

from threadpoolctl import threadpool_limits

from rlgym_bridge.training.settings import SettingsError
from rlgym_bridge.user_input.durable_files import make_folder
from rlgym_bridge.user_input.failures import Failure
from rlgym_bridge.user_input.stop_signals import without_interrupts

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CGROUP: Final = Path("/proc/self/cgroup")


def count_usable_cores(groups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> int:
    """Count the cores that this process may use, by affinity and containers' quotas; parts count as one."""
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


def _use_one_thread() -> None:
    """Let matrix products of this process use one thread: on a busy machine more take ten times as long."""
    import_module("numpy")  # only what is loaded is limited
    threadpool_limits(1, user_api="blas")


KILLED: Final = (
    "a process that played was killed: is there too little memory? A script that plays needs "
    'if __name__ == "__main__": above its calls, since each process imports it'
)


@contextmanager
def open_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that end at once on an error or Ctrl-C; raises Failure where one was killed."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _use_one_thread)
    try:
        yield pool
    except BaseException as error:
        with without_interrupts():  # else Python waits for the pool at its end, where Ctrl-C is a traceback
            for process in list((pool._processes or {}).values()):  # there is no public way
                process.kill()
            pool.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise Failure(KILLED) from error
        raise
    pool.shutdown()


IMPATIENT_SECONDS: Final = 3.0

ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Ctrl-C, another program's wish, a closed terminal: they may come to all processes of a terminal."""


class StopAsked:
    """True once Ctrl-C was pressed or the process was asked to end; a context manager.

    Another Ctrl-C interrupts at once, but not within `IMPATIENT_SECONDS`: whoever presses twice does not want
    to lose the checkpoint. Outside the main thread it is never true: signals do not go there.
    """

    def __init__(self) -> None:
        self._asked, self._since = False, 0.0
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self._asked

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._ask) for one in ENDING}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if not self._asked:
            self._asked, self._since = True, time.monotonic()
            print("stopping: this iteration ends, then a checkpoint is written", file=sys.stderr)
        elif time.monotonic() - self._since > IMPATIENT_SECONDS:
            self._restore()
            raise KeyboardInterrupt

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


class Locked:
    """A folder that no other process of ours writes to; a context manager. It ends with the process, too.

    `work` is what is done there, for the error and the name of the lock's file. To enter raises SettingsError
    where another process works there, or it cannot be written to.
    """

    def __init__(self, folder: Path, work: str = "training") -> None:
        self._folder, self._work = folder, work
        self._file: Any = None

    def __enter__(self) -> Self:
        try:
            make_folder(self._folder)
            self._file = (self._folder / f"{self._work}.lock").open("a+b")
        except OSError as error:
            raise SettingsError(
                f"{self._folder} cannot be written to: {error.strerror}, expected a folder of yours"
            ) from error
        try:
            _lock(self._file)
        except OSError as error:
            self._file.close()
            raise SettingsError(
                f"another {self._work} writes to {self._folder}: stop it, or name another folder with --out"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


if os.name == "nt":
    import msvcrt

    def _lock(file: Any) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]

else:
    import fcntl

    def _lock(file: Any) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
