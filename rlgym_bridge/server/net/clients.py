"""Accept clients, dispatch their messages, and close their connections."""

import errno
import logging
import math
import socket
import time
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE
from typing import Final

from rlbot import flat

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server.client_log import begin_limits, client_log, end_limits
from rlgym_bridge.server.game.packer import framed
from rlgym_bridge.server.net.admission import Admission
from rlgym_bridge.server.net.connected_client import Client, Handler, time_budget
from rlgym_bridge.server.net.wire import ClientLink, SocketEvents, WireError

_FAREWELL_SECONDS: Final = 2.0  # a client has this long to close after a DisconnectSignal


class Farewells:
    """Connections that were told to go and are still open."""

    def __init__(self, sockets: SocketEvents) -> None:
        self._sockets = sockets
        self.until: dict[socket.socket, float] = {}  # when each is closed; who leaves first stands first

    def begin(self, connection: socket.socket) -> None:
        """Say that nothing more will be sent, and wait for the other side to close; OSError if it has."""
        connection.shutdown(socket.SHUT_WR)
        self._sockets.watch(connection, EVENT_READ, connection)
        self.until[connection] = time.perf_counter() + _FAREWELL_SECONDS

    def hear(self, connection: socket.socket) -> None:
        """Take in what comes from a connection and ignore it; close it where the other side has closed."""
        if connection not in self.until:
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
        connection = next(iter(self.until), None)
        if connection is not None:
            self._close(connection)
        return connection is not None

    def end_late(self) -> None:
        """Close the connections whose time is over."""
        while self.until and time.perf_counter() > next(iter(self.until.values())):
            self.make_room()

    def _close(self, connection: socket.socket) -> None:
        del self.until[connection]
        self._sockets.watch(connection, 0, None)
        connection.close()


_log = client_log(__name__)

_MOST_CONNECTIONS: Final = 240  # with those at the door 256: a process of macOS may open as many files
_MOST_AT_DOOR: Final = 16  # who have connected while all places were taken
_FAREWELL_STEP: Final = 0.02
_NO_HANDLE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_DEAF_SECONDS: Final = 1.0  # between two attempts to accept where there is no handle
_OTHERS_SECONDS: Final = 0.002  # of a tick's 8.3 ms, for the messages of all who drive no car
_AT_ONCE_SECONDS: Final = 0.001  # then it is the next one's turn


class Clients:
    """All connections, served by one selector.

    At most 256 are open at a time. Newcomers get the places of those who linger after a goodbye, then of
    those who have said nothing. Where all have spoken, a newcomer waits until it is known who it is: one that
    this process has started gets the place of a client without a car, all others are turned away.

    The messages of a client take a limited time of each tick, beside the first one of a client that drives
    cars: what is more waits, in its connection at last, where the client notices.

    `handlers` act on messages, by their type; others are accepted and ignored. `on_gone` is called with a
    client that has left and why.
    """

    def __init__(
        self,
        listener: socket.socket,
        handlers: dict[type, Handler],
        on_gone: Callable[[Client, str], None],
        admission: Admission,
    ) -> None:
        self.handlers = handlers
        self.on_gone = on_gone
        self.hear_until = math.inf  # when all but answers begin to wait for the next tick, `perf_counter`'s
        self.audience: list[Client] = []  # those who get packets
        self.wants_prediction = False
        self.listener = listener
        self._clients: dict[socket.socket, Client] = {}
        self._admission = admission
        self._at_door: set[socket.socket] = set()
        self._backlog: set[ClientLink] = set()  # those for which messages wait to be sent
        self._slow: list[Client] = []  # those that are watched for room to write
        self._resting: dict[Client, None] = {}  # not heard before the next tick; who is next stands first
        self._others = time_budget(_OTHERS_SECONDS)
        self._tick, self._tick_at, self._woken = 0, 0.0, 0
        self._deaf_until: float | None = None  # when to accept again, where it failed
        self._sockets = SocketEvents()
        self._leaving = Farewells(self._sockets)
        self._sockets.watch(listener, EVENT_READ, listener)
        begin_limits()

    @property
    def everyone(self) -> list[Client]:
        """List the connected clients."""
        return list(self._clients.values())

    def refresh(self) -> None:
        """Find out anew who gets packets, after a client has come, gone or got ready."""
        self.audience = [client for client in self._clients.values() if client.ready]
        self.wants_prediction = any(client.wants_prediction for client in self.audience)

    def begin_tick(self) -> float:
        """Give all clients the time of another tick; return the time now, on `time.perf_counter`'s clock."""
        self._tick += 1
        self.hear_until = math.inf
        self._tick_at = time.perf_counter()
        return self._tick_at

    def broadcast(self, data: bytes, prediction: bytes = b"") -> None:
        """Send a framed packet to the audience, after the ball's prediction where a client wants it."""
        both = prediction + data
        for client in self.audience:
            client.link.send(both if client.wants_prediction else data)
        self.lose_broken()

    def lose_broken(self) -> None:
        """Part with those of the audience whose connection broke while something was sent to them."""
        for client in [one for one in self.audience if one.link.broken]:
            self._lose(client, "the connection broke")

    def pump(self, timeout: float) -> None:
        """Wait until something comes, `timeout` seconds at most, and take it in."""
        if self._backlog or self._slow:
            self._watch_for_room([one for one in self._clients.values() if one.link in self._backlog])
        if self._resting:
            timeout = self._wake(timeout)
        if self._deaf_until is not None and not self._listen_again(timeout):
            return
        for owner, events in self._sockets.wait(timeout):
            if owner is self.listener:
                self._accept()
            elif owner.__class__ is not Client:
                if callable(owner):
                    owner()
                else:  # a connection that was told to go
                    self._leaving.hear(owner)
            elif owner.link.socket in self._clients:  # else it was lost since it had something to say
                if events & EVENT_READ:
                    owner.link.read()
                    self._hear(owner)
                if events & EVENT_WRITE:
                    owner.link.flush()
        if self._leaving.until:
            self._leaving.end_late()

    def watch(self, connection: socket.socket, heard: Callable[[], None]) -> None:
        """Have a function called by `pump` when a socket that is no client's can be read."""
        self._sockets.watch(connection, EVENT_READ, heard)

    def dismiss(self, client: Client, reason: str) -> None:
        """Tell a client to go; it is left to close the connection."""
        link = client.link
        if self._clients.pop(link.socket, None) is None:
            return
        link.send(framed(flat.DisconnectSignal()))
        try:
            self._leaving.begin(link.socket)
        except OSError:  # it has gone already
            client.watch(self._sockets, 0)
            link.close()
        self._gone(client, reason, logging.DEBUG)

    def see_off(self) -> None:
        """Wait until those who are dismissed by now have closed, two seconds at most."""
        leaving = set(self._leaving.until)
        while not leaving.isdisjoint(self._leaving.until):
            self.pump(_FAREWELL_STEP)

    def close(self) -> None:
        """Send everyone home and stop listening."""
        for client in self.everyone:
            self.dismiss(client, "the server closes")
        self.see_off()
        for connection in (*self._clients, *self._leaving.until, *self._at_door):  # they came meanwhile
            connection.close()
        self.listener.close()
        self._sockets.close()
        end_limits()

    def _accept(self) -> None:
        """Accept those who wait, for a part of a tick; the next `pump` takes the others."""
        until = time.perf_counter() + _AT_ONCE_SECONDS
        while self._accept_next() and time.perf_counter() < until:
            pass

    def _accept_next(self) -> bool:
        try:
            connection, address = self.listener.accept()
        except OSError as error:
            if error.errno in _NO_HANDLE:
                self._wait_for_handle(error)
            return False  # nobody waits, or it has gone again before it was taken
        full = len(self._clients) + len(self._leaving.until) >= _MOST_CONNECTIONS
        full = full and not (self._leaving.make_room() or self._part_with_silent())
        try:
            client = Client(ClientLink(connection, f"client {address[0]}:{address[1]}", self._backlog))
            if not full:
                client.watch(self._sockets, EVENT_READ)
        except OSError:  # gone again
            connection.close()
            return True
        if full:
            return self._ask_at_door(client)
        self._clients[connection] = client
        self.refresh()
        return True

    def _ask_at_door(self, client: Client) -> bool:
        """Find out whether this process started a newcomer without a place; tell whether another may come."""
        connection = client.link.socket
        if not self._admission.find_out(client, lambda: self._answer_at_door(client), far=False):
            connection.close()
            return True
        self._at_door.add(connection)
        has_room = len(self._at_door) < _MOST_AT_DOOR
        if not has_room:  # the others wait in the system's queue
            self._sockets.watch(self.listener, 0, self.listener)
        return has_room

    def _answer_at_door(self, client: Client) -> None:
        """Let a newcomer in, in the place of a client without a car, or turn it away."""
        connection = client.link.socket
        if connection not in self._at_door:
            return  # the server has closed
        self._at_door.discard(connection)
        if self._deaf_until is None:
            self._sockets.watch(self.listener, EVENT_READ, self.listener)
        full = len(self._clients) + len(self._leaving.until) >= _MOST_CONNECTIONS
        if full and not (self._admission.has_started(client) and self._part_with_stranger()):
            _log.error("more than %d connections: %s turned away", _MOST_CONNECTIONS, client.link.name)
            connection.close()
            return
        self._clients[connection] = client
        try:
            client.watch(self._sockets, EVENT_READ)
        except OSError:
            self._lose(client, "the connection broke")
        self.refresh()

    def _part_with_stranger(self) -> bool:
        """Close the connection of a client without a car, silent and old ones first, if there is one."""
        others = [
            one for one in self._clients.values() if not one.seats and not self._admission.has_started(one)
        ]  # fmt: skip
        if others:
            stranger = min(others, key=lambda one: one.agent_id is not None)
            self._lose(stranger, "a bot of the match needs its place")
        return bool(others)

    def _part_with_silent(self) -> bool:
        """Close the connection that has said nothing for longest; tell whether there was one."""
        started = self._admission.has_started
        silent = next((one for one in self._clients.values() if not (one.has_spoken or started(one))), None)
        if silent is not None:
            self._lose(silent, "it said nothing, and others wait for its place")
        return silent is not None

    def _wait_for_handle(self, error: OSError) -> None:
        """Make room, or stop accepting for a while: who waits for it would wake `pump` again and again."""
        if self._leaving.make_room():
            return
        _log.error(
            "no client can be accepted: %s; expected a free handle: close clients, or allow this process "
            "more open files. Trying again in %g s", error, _DEAF_SECONDS,
        )  # fmt: skip
        self._sockets.watch(self.listener, 0, self.listener)
        self._deaf_until = time.perf_counter() + _DEAF_SECONDS

    def _listen_again(self, timeout: float) -> bool:
        """Accept again when it is time; False where there was nobody else to wait for, and that is over."""
        assert self._deaf_until is not None
        if time.perf_counter() > self._deaf_until:
            self._sockets.watch(self.listener, EVENT_READ, self.listener)
            self._deaf_until = None
        elif not self._sockets:  # Windows does not wait for nothing
            time.sleep(max(timeout, 0.0))
            return False
        return True

    def _watch_for_room(self, slow: list[Client]) -> None:
        """Watch those clients, and no others, for room to send what waits for them."""
        if slow == self._slow:
            return
        both, self._slow = {*self._slow, *slow}, slow
        for client in both:
            if client.link.socket in self._clients:
                self._watch_as_due(client)

    def _watch_as_due(self, client: Client) -> None:
        read = 0 if client in self._resting else EVENT_READ
        client.watch(self._sockets, read | (EVENT_WRITE if client in self._slow else 0))

    def _wake(self, timeout: float) -> float:
        """Hear those who rested until this tick; return how long to wait at most."""
        now = time.perf_counter()
        if now - self._tick_at >= TICK_SECONDS:
            self.begin_tick()
        if self._woken != self._tick:
            self._woken = self._tick
            for client in list(self._resting):
                if (client.budget if client.cars else self._others).left_at(self._tick) > 0.0:
                    del self._resting[client]
                    self._hear(client)
                    if client not in self._resting and client.link.socket in self._clients:
                        self._watch_as_due(client)
        return min(timeout, max(self._tick_at + TICK_SECONDS - now, 0.0)) if self._resting else timeout

    def _hear(self, client: Client) -> None:
        """Take in the messages that were read from a client, as far as its time in this tick goes."""
        link = client.link
        if link.has_message and client.cars and client.heard_tick != self._tick:
            client.heard_tick = self._tick  # the usual case, an answer to the packet, needs no clock
            more = self._take(client)
            if not (more or link.broken):
                return
            if link.socket not in self._clients:
                return
        budget = client.budget if client.cars else self._others
        left = budget.left_at(self._tick)
        began = now = time.perf_counter()
        end = min(began + left, began + _AT_ONCE_SECONDS, self.hear_until)
        while link.has_message and now < end:
            self._take(client)
            now = time.perf_counter()
            if link.socket not in self._clients:
                break  # dismissed by this message: what follows does not count
        budget.left -= now - began
        if link.socket not in self._clients:
            return
        if link.has_message or budget.left <= 0.0:
            if not self._resting:
                self._woken = self._tick
            self._resting[client] = None
            self._watch_as_due(client)
        elif link.broken:
            self._lose(client, "the connection was closed")

    def _take(self, client: Client) -> bool:
        """Take in one message that was read from a client; tell whether there are more of them."""
        message: object = None
        try:
            message = client.link.take_message()
            client.has_spoken = True
            script = client.script if client.ready else None
            handler = self.handlers.get(type(message))
            if handler is not None:
                handler(client, message)
            if script is not None and not script.answered:
                script.reply(time.perf_counter())
        except WireError as error:
            _log.error("%s; disconnected", error)
            self._lose(client, "it sent something undecodable")
        except Exception:  # a mistake of ours costs this client its connection, and nobody else anything
            _log.exception("%s sent a %s that failed", client.link.name, type(message).__name__)
            self._lose(client, "its message failed")
        return client.link.has_message

    def _lose(self, client: Client, reason: str) -> None:
        if self._clients.pop(client.link.socket, None) is not None:
            client.watch(self._sockets, 0)
            client.link.close()
            self._gone(client, reason)

    def _gone(self, client: Client, reason: str, level: int = logging.INFO) -> None:
        self._resting.pop(client, None)
        self._backlog.discard(client.link)
        _log.log(level, "%s left: %s", client.link.name, reason)
        self.refresh()
        self.on_gone(client, reason)
