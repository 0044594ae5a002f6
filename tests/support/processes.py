"""Starts the processes of tests and benchmarks, and ends each with all that it has started.

    owner -> child, marked by an environment variable -> what it starts inherits the mark
    owner's end, however it comes -> its guard, a process of its own -> ends whatever bears the owner's mark

By the mark those are found as well whose parent has gone or that lead a session of their own, as bots do.
"""

import itertools
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import psutil

MARK: Final = "RLGYM_BRIDGE_TESTS_STARTED"
"""Environment variable: whose process it is, owner/child/owner of the child's children/..."""

RUN_SECONDS: Final = 240.0
"""Longest run of a program where nothing else is said: less than pytest's limit for a test."""

_PATIENCE: Final = 5.0  # s in which a process ends that was asked to, or killed
_ASK_SECONDS: Final = 0.02
_APART: Final[dict[str, Any]] = (
    {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    if sys.platform == "win32"
    else {"start_new_session": True}
)  # a Ctrl-C in the terminal is not for the guard

_numbers = itertools.count()
_guards: list[subprocess.Popen[bytes]] = []  # kept, for the pipe closes with this process


@contextmanager
def child(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process, and end it with all that it has started when the block is left."""
    mark = f"{guard()}/{next(_numbers)}"
    env = {**(options.pop("env", None) or os.environ), MARK: mark}
    process = subprocess.Popen([str(word) for word in command], env=env, **options)
    try:
        yield process
    finally:
        _end(mark)
        process.kill()  # nothing where it has ended; its environment may not be ours to read
        process.wait(_PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):  # what was to be written has no reader any more
                    stream.close()


def run_to_end(
    command: Sequence[str | Path], *, seconds: float = RUN_SECONDS, check: bool = False, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end.

    Args:
        command: Program and arguments.
        seconds: After which it is ended, with all that it has started.
        check: Raise where its exit code is not 0.
        options: Of `subprocess.Popen`; what it prints is caught as text unless they say otherwise.

    Returns:
        As `subprocess.run`.

    Raises:
        subprocess.TimeoutExpired: It takes longer, or leaves behind somebody who holds its output open.
        subprocess.CalledProcessError: Its exit code is not 0, and `check` is set.
    """
    caught = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with child(command, **(caught | options)) as process:
        out, errors = process.communicate(timeout=seconds)
    if check and process.returncode:
        failed = subprocess.CalledProcessError(process.returncode, process.args, out, errors)
        failed.add_note(f"it said: {(errors or out or '')[-2000:]}")
        raise failed
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


@cache
def guard() -> str:
    """Have all that this process starts from now on ended when it ends itself, killed or not."""
    mark = os.environ[MARK] = f"{os.environ.get(MARK, '')}/{uuid.uuid4().hex}"
    env = {name: value for name, value in os.environ.items() if name != MARK}
    _guards.append(
        subprocess.Popen(
            [sys.executable, "-I", __file__, mark], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=env, **_APART,
        )
    )  # fmt: skip
    return mark


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes that run and bear a mark, or one that begins with it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it ended meanwhile, or is somebody else's
            its = process.environ().get(MARK, "")
            if (its == mark or its.startswith(f"{mark}/")) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _end(mark: str) -> None:
    """Ask processes to end, and kill them where they do not."""
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in marked(mark):
            with suppress(psutil.Error):
                end(process)
        deadline = time.monotonic() + _PATIENCE
        while marked(mark) and time.monotonic() < deadline:
            time.sleep(_ASK_SECONDS)


def _watch() -> None:
    """Wait until the owner has gone: then nobody holds the other end of this process's input."""
    sys.stdin.buffer.read()
    _end(sys.argv[1])


if __name__ == "__main__":
    _watch()
