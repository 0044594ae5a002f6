"""Finish the iteration and save a checkpoint on SIGINT."""

import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Final, Self

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
        """Say whether to stop."""
        return self._asked

    def __enter__(self) -> Self:
        """Begin to listen."""
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._ask) for one in ENDING}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Put back what listened before."""
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
