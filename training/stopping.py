"""Ctrl-C as a wish that is granted at the end of an iteration, so that nothing half done is saved."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class StopAsked:
    """True once Ctrl-C was pressed or the process was asked to end; a context manager.

    A second Ctrl-C interrupts at once. Outside the main thread it is never true: signals do not go there.
    """

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        """Say whether to stop."""
        return self._asked

    def __enter__(self) -> Self:
        """Begin to listen."""
        if threading.current_thread() is threading.main_thread():
            self._before = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Put back what listened before."""
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
