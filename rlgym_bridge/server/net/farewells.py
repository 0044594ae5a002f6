"""Wait for clients that were told to go to close their connections."""

import socket
import time
from selectors import EVENT_READ
from typing import Final

from rlgym_bridge.server.net.socket_events import SocketEvents

_FAREWELL_SECONDS: Final = 2.0  # a client has this long to close after a DisconnectSignal


class Farewells:
    """Connections that were told to go and are still open.

    Args:
        sockets: Where they are watched.
    """

    def __init__(self, sockets: SocketEvents) -> None:
        self._sockets = sockets
        self._until: dict[socket.socket, float] = {}  # who leaves first stands first

    def __len__(self) -> int:
        """Return how many are still open."""
        return len(self._until)

    def __contains__(self, connection: socket.socket) -> bool:
        """Tell whether a connection was told to go and is still open."""
        return connection in self._until

    @property
    def connections(self) -> list[socket.socket]:
        """List those that are still open."""
        return list(self._until)

    def begin(self, connection: socket.socket) -> None:
        """Say that nothing more will be sent, and wait for the other side to close.

        Raises:
            OSError: It has closed already.
        """
        connection.shutdown(socket.SHUT_WR)
        self._sockets.watch(connection, EVENT_READ, connection)
        self._until[connection] = time.perf_counter() + _FAREWELL_SECONDS

    def hear(self, connection: socket.socket) -> None:
        """Take in what comes from a connection and ignore it; close it where the other side has closed."""
        if connection not in self._until:
            return  # it was lost since it had something to say
        try:
            gone = not connection.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            gone = True
        if gone:
            self._close(connection)

    def make_room(self) -> bool:
        """Close the connection that has lingered longest; tell whether there was one."""
        connection = next(iter(self._until), None)
        if connection is not None:
            self._close(connection)
        return connection is not None

    def end_late(self) -> None:
        """Close the connections whose time is over."""
        while self._until and time.perf_counter() > next(iter(self._until.values())):
            self.make_room()

    def _close(self, connection: socket.socket) -> None:
        del self._until[connection]
        self._sockets.watch(connection, 0, None)
        connection.close()
