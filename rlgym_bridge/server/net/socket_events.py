"""Wait for events of sockets as precisely as a tick needs it."""

import os
import select
import selectors
import socket
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Final

_SELECT_BELOW: Final = 1024  # file numbers that POSIX's `select` takes
_SHORT_SECONDS: Final = 0.02  # waits below this end when they should, not at the next millisecond


class SocketEvents:
    """The sockets that are watched, each with its owner.

    Linux is asked directly: the standard library's selectors take twice as long, and round up short waits.
    """

    def __init__(self) -> None:
        """Watch nothing yet."""
        self._selector = selectors.DefaultSelector()
        self._owners: dict[int, Any] = {}
        self._number = -1  # of the selector's own file, where `select` takes it
        self._epoll: Any = None
        if hasattr(select, "epoll") and isinstance(self._selector, selectors.EpollSelector):
            self._epoll = select.epoll.fromfd(os.dup(self._selector.fileno()))
            if self._selector.fileno() < _SELECT_BELOW:
                self._number = self._selector.fileno()

    def __bool__(self) -> bool:
        """Tell whether a socket is watched."""
        return bool(self._owners)

    def watch(self, connection: socket.socket, events: int, owner: object) -> None:
        """Watch a socket for `EVENT_READ`, `EVENT_WRITE` or both, 0 for none; `wait` gives back its owner."""
        number = connection.fileno()
        known = number in self._owners
        if not events:
            if known:
                self._selector.unregister(connection)
                del self._owners[number]
            return
        if known:
            self._selector.modify(connection, events)
        else:
            self._selector.register(connection, events)
        self._owners[number] = owner

    def wait(self, timeout: float) -> list[tuple[Any, int]]:
        """Return owners of sockets and their events, after so many seconds at most; 0 or less does not wait.

        A socket that has failed can be read and written, so that both tell of it.
        """
        owners, epoll = self._owners, self._epoll
        if epoll is None:
            return [(owners[key.fd], events) for key, events in self._selector.select(timeout)]
        if timeout <= 0.0:
            timeout = 0.0  # epoll takes less for no end
        elif timeout < _SHORT_SECONDS and self._number >= 0:  # else packets leave up to 1 ms late
            select.select((self._number,), (), (), timeout)
            timeout = 0.0
        return [
            (owners[number], mask if mask == EVENT_READ else _events_of(mask))
            for number, mask in epoll.poll(timeout)
        ]

    def close(self) -> None:
        """Watch nothing any more."""
        self._owners.clear()
        self._selector.close()
        if self._epoll is not None:
            self._epoll.close()


def _events_of(mask: int) -> int:
    """Translate what `epoll` says into events; an error is both."""
    return (EVENT_READ if mask & ~select.EPOLLOUT else 0) | (EVENT_WRITE if mask & ~select.EPOLLIN else 0)
