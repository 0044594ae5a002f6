"""Wait for events of sockets as precisely as a tick needs it."""

import select
import selectors
from typing import Final

_SELECT_BELOW: Final = 1024  # file numbers that POSIX's `select` takes
_SHORT_SECONDS: Final = 0.02  # waits below this end when they should, not at the next millisecond

Events = list[tuple[selectors.SelectorKey, int]]


def wait_finely(selector: selectors.BaseSelector, timeout: float) -> Events:
    """Wait for events, as `selector.select` does, without rounding short waits up to a millisecond.

    Args:
        selector: Where the sockets are registered.
        timeout: Seconds at most.
    """
    number = _poll_number(selector) if 0.0 < timeout < _SHORT_SECONDS else None
    if number is not None:  # else packets leave up to 1 ms late
        select.select((number,), (), (), timeout)
        timeout = 0.0
    return selector.select(timeout)


def _poll_number(selector: selectors.BaseSelector) -> int | None:
    """Return the file number of a selector that rounds waits, where `select` takes it; else None."""
    epoll = getattr(selectors, "EpollSelector", None)
    if epoll is None or not isinstance(selector, epoll):
        return None
    number: int = selector.fileno()
    return number if number < _SELECT_BELOW else None
