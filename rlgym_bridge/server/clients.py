"""The open connections: who comes, who speaks, who leaves."""

import logging
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.server.roster import SCRIPT_TEAM, Seat
from rlgym_bridge.server.wire import Session, WireError, framed

_log = logging.getLogger(__name__)

_FAREWELL_SECONDS: Final = 2.0  # a client has this long to close after a DisconnectSignal
_MOST_CLIENTS: Final = 256  # `select` takes file numbers below 1024 on POSIX, 512 sockets on Windows
_FAREWELL_STEP: Final = 0.02


@dataclass(eq=False)
class Client:
    """A connected client.

    Attributes:
        session: Its connection.
        agent_id: What it announced; "" for match managers and observers, None before that.
        closes_between_matches: Whether it is disconnected when a match starts or is stopped.
        seats: What it drives; changed by `sit`.
        cars: Indices of the cars among them.
        ready: It has sent InitComplete, so it gets packets.
        informed: It has been sent the match configuration.
        warned_of: What has been said in the log about it, once and no more.
    """

    session: Session
    agent_id: str | None = None
    closes_between_matches: bool = True
    seats: tuple[Seat, ...] = ()
    cars: frozenset[int] = frozenset()
    ready: bool = False
    informed: bool = False
    warned_of: set[str] = field(default_factory=set)

    def sit(self, seats: Sequence[Seat]) -> None:
        """Give the client these seats and no others."""
        self.seats = tuple(seats)
        self.cars = frozenset(seat.index for seat in seats if seat.team != SCRIPT_TEAM)


Handler = Callable[[Client, Any], None]


class Clients:
    """All connections, served by one `select`.

    Attributes:
        everyone: The connected clients, in the order in which they came.
        audience: Those who get packets.
        handlers: What to do with a message, by its type; others are accepted and ignored.
        on_gone: Called with a client that has left and why.
    """

    def __init__(
        self,
        listener: socket.socket,
        handlers: dict[type, Handler],
        on_gone: Callable[[Client, str], None],
    ) -> None:
        """Serve those who connect to `listener`."""
        self.handlers = handlers
        self.on_gone = on_gone
        self.audience: list[Client] = []
        self._listener = listener
        self._clients: dict[socket.socket, Client] = {}
        self._leaving: dict[socket.socket, float] = {}  # until when
        self._sockets: list[socket.socket] = [listener]

    @property
    def everyone(self) -> list[Client]:
        """List the connected clients."""
        return list(self._clients.values())

    def refresh(self) -> None:
        """Find out anew who listens, after a client has come, gone or got ready."""
        self._sockets = [self._listener, *self._clients, *self._leaving]
        self.audience = [client for client in self._clients.values() if client.ready]

    def broadcast(self, data: bytes) -> None:
        """Send a framed message to the audience."""
        broken = False
        for client in self.audience:
            client.session.send(data)
            broken |= client.session.broken
        if broken:
            self.lose_broken()

    def lose_broken(self) -> None:
        """Part with those of the audience whose connection broke while something was sent to them."""
        for client in [one for one in self.audience if one.session.broken]:
            self._lose(client, "the connection broke")

    def pump(self, timeout: float) -> None:
        """Wait until something comes, `timeout` seconds at most, and take it in."""
        slow = [one.session.socket for one in self.audience if one.session.waiting]
        readable, writable, _ = select.select(self._sockets, slow, (), timeout)
        for connection in readable:
            client = self._clients.get(connection)
            if client is not None:
                self._hear(client)
            elif connection is self._listener:
                self._accept()
            elif connection in self._leaving:
                self._hear_leaving(connection)
        for connection in writable:
            client = self._clients.get(connection)
            if client is not None:
                client.session.flush()
        if self._leaving:
            self._give_up_leaving()

    def dismiss(self, client: Client, reason: str) -> None:
        """Tell a client to go; it is left to close the connection."""
        session = client.session
        if self._clients.pop(session.socket, None) is None:
            return
        session.send(framed(flat.DisconnectSignal()))
        try:
            session.socket.shutdown(socket.SHUT_WR)
            self._leaving[session.socket] = time.perf_counter() + _FAREWELL_SECONDS
        except OSError:  # it has gone already
            session.close()
        self._gone(client, reason)

    def see_off(self) -> None:
        """Wait until those who were dismissed have closed, two seconds at most."""
        while self._leaving:
            self.pump(_FAREWELL_STEP)

    def close(self) -> None:
        """Send everyone home and stop listening."""
        for client in self.everyone:
            self.dismiss(client, "the server closes")
        self.see_off()
        self._listener.close()

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError:  # gone again before it was taken
            return
        if len(self._clients) >= _MOST_CLIENTS:
            _log.error("more than %d connections: client %s:%s turned away", _MOST_CLIENTS, *address[:2])
            connection.close()
            return
        session = Session(connection, f"client {address[0]}:{address[1]}")
        self._clients[connection] = Client(session)
        self.refresh()

    def _hear(self, client: Client) -> None:
        session = client.session
        try:
            messages = session.receive()
        except WireError as error:
            _log.error("%s; disconnected", error)
            self._lose(client, "it sent something undecodable")
            return
        for message in messages:
            if session.socket not in self._clients:
                return  # dismissed by the message before: what follows does not count
            handler = self.handlers.get(type(message))
            if handler is not None:
                handler(client, message)
        if session.broken:
            self._lose(client, "the connection was closed")

    def _lose(self, client: Client, reason: str) -> None:
        if self._clients.pop(client.session.socket, None) is not None:
            client.session.close()
            self._gone(client, reason)

    def _gone(self, client: Client, reason: str) -> None:
        _log.info("%s left: %s", client.session.name, reason)
        self.refresh()
        self.on_gone(client, reason)

    def _hear_leaving(self, connection: socket.socket) -> None:
        try:
            gone = not connection.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            gone = True
        if gone:
            self._forget_leaving(connection)

    def _give_up_leaving(self) -> None:
        now = time.perf_counter()
        for connection, deadline in list(self._leaving.items()):
            if now > deadline:
                self._forget_leaving(connection)

    def _forget_leaving(self, connection: socket.socket) -> None:
        del self._leaving[connection]
        connection.close()
        self.refresh()
