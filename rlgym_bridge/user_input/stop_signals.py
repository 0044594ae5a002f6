"""Let Ctrl-C, or another program, stop a long work without a KeyboardInterrupt, and end processes."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at Ctrl-C, when the process is asked to end and when its terminal is closed.

    A second time kills all that it has started, and ends it at once with exit status 1. A KeyboardInterrupt
    would do less: raised while Python cleans up an object, it is lost.
    """
    names = ("SIGINT", "SIGTERM", "SIGBREAK", "SIGHUP")  # SIGINT too: background jobs of a shell ignore it
    before = {
        number: signal.getsignal(number)
        for name in names
        if (number := getattr(signal, name, None)) is not None
    }
    if before.get(hang_up := getattr(signal, "SIGHUP", None)) is signal.SIG_IGN:
        del before[hang_up]  # nohup: the command goes on when its terminal is closed

    def handle(number: int, _: object) -> None:
        for ending in before:
            signal.signal(ending, _end_at_once)
        stop()

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(number: int, _: object) -> None:
    """Kill the processes that this one has started, and end it; nothing is cleaned up."""
    signal.signal(number, signal.SIG_IGN)  # one more would end it before the others
    for child in psutil.Process().children(recursive=True):  # bots have sessions of their own
        with suppress(psutil.Error):
            child.kill()
    os._exit(1)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C for a moment, in which this process ends others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def apart(*flags: str) -> dict[str, Any]:
    """Return arguments of `Popen` for a process that Ctrl-C in this one's terminal does not reach.

    Args:
        flags: Further creation flags of Windows, by their names in `subprocess`.
    """
    names = ("CREATE_NEW_PROCESS_GROUP", *flags)
    number = sum(getattr(subprocess, name, 0) for name in names)
    return {"start_new_session": True} if os.name != "nt" else {"creationflags": number}


def await_end(process: "subprocess.Popen[Any]", seconds: float) -> None:
    """Wait for the end of a process, and kill it if that takes longer."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
