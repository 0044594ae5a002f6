"""Let Ctrl-C, or another program, stop a long work without a KeyboardInterrupt."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at Ctrl-C, when the process is asked to end and when its terminal is closed.

    A second time ends it at once.

    A KeyboardInterrupt would do less: raised while Python cleans up an object, it is lost.
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
            signal.signal(ending, signal.SIG_DFL)
        stop()

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
