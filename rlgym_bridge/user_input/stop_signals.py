"""Let Ctrl-C, or another program, stop a long work without a KeyboardInterrupt."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at Ctrl-C and when the process is asked to end; a second time ends it at once.

    A KeyboardInterrupt would do less: raised while Python cleans up an object, it is lost.
    """
    names = ("SIGINT", "SIGTERM", "SIGBREAK")  # SIGINT too: background jobs of a shell ignore it
    before = {
        number: signal.getsignal(number)
        for name in names
        if (number := getattr(signal, name, None)) is not None
    }

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
