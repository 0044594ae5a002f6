"""Send and receive the messages of one client over TCP, on sockets that never block.

Every message is a length (two bytes, unsigned, big-endian) and that many bytes of flatbuffer.
"""

import errno
import ipaddress
import os
import select
import selectors
import socket
import struct
import sys
from collections import deque
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.result import ServerError
from rlgym_bridge.user_input.message_limits import TO_SERVER, check_message, kind_of

_SELECT_BELOW: Final = 1024  # file numbers that POSIX's `select` takes
_SHORT_SECONDS: Final = 0.02  # waits below this end when they should, not at the next millisecond


class SocketEvents:
    """The sockets that are watched, each with its owner.

    Linux is asked directly: the standard library's selectors take twice as long, and round up short waits.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._owners: dict[int, Any] = {}
        self._number = -1  # of the selector's own file, where `select` takes it
        self._epoll: Any = None
        if hasattr(select, "epoll") and isinstance(self._selector, selectors.EpollSelector):
            self._epoll = select.epoll.fromfd(os.dup(self._selector.fileno()))
            if self._selector.fileno() < _SELECT_BELOW:
                self._number = self._selector.fileno()

    def __bool__(self) -> bool:
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


MAX_QUEUED: Final = 60  # messages kept for a client that does not read [RLBot core]
_READ_SIZE: Final = 65536
_SHORT_BYTES: Final = 256  # a message of this decodes to 30 kB at most
_DRAWINGS: Final = 6  # the kind of `flat.RenderGroup`
_WAITING_CONNECTIONS: Final = 1024  # a system may keep fewer; those beyond wait a second to ask again

_log = client_log(__name__)

_QUESTION: Final = struct.Struct("=IHHII BBBBI 2s2s16s16s III")  # nlmsghdr, inet_diag_req_v2 [linux]
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20  # the kind of the question, and of the answer
_UNREAD_AT: Final = 16 + 56  # of `idiag_rqueue` in the answer: nlmsghdr, then a part of inet_diag_msg [linux]


class WireError(ValueError):
    """A client sent bytes that are no message of the protocol."""


def listen(host: str, port: int) -> socket.socket:
    """Open the server's non-blocking socket, on any free port for 0; a ServerError says why it cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # On Windows SO_REUSEADDR would let two servers share a port; elsewhere it only allows
    # a quick restart.
    exclusive = getattr(socket, "SO_EXCLUSIVEADDRUSE", None) if sys.platform == "win32" else None
    option = socket.SO_REUSEADDR if exclusive is None else exclusive
    listener.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        listener.bind((host, port))
        listener.listen(_WAITING_CONNECTIONS)
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise ServerError(
                f"port {port} on {host} is in use, expected a free one: stop what uses it, such as "
                f"RLBotServer or another match server, or choose another port (0: any free one)"
            ) from error
        raise ServerError(f"cannot listen on {host} port {port}: {error}") from error
    listener.setblocking(False)
    return listener


def is_this_machine(address: str) -> bool:
    """Tell whether those alone can connect to a numeric address who are on this machine."""
    return ipaddress.ip_address(address).is_loopback


class ClientLink:
    """One connected client: complete messages in, whole messages out.

    Messages that wait for the client to read put the link in the backlog; `dropped` counts those that it did
    not read. A link is broken where nothing more can be sent or received.
    """

    def __init__(self, connection: socket.socket, name: str, backlog: set["ClientLink"]) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.name = name
        self.dropped = 0
        self.broken = False
        self.has_message = False
        self._received = b""
        self._start = 0  # of what has not been taken of it
        self._end = 0  # of the oldest message in it, where there is a whole one
        self._backlog = backlog
        self._begun = b""  # rest of a message of which the first bytes are already sent
        self._queue: deque[bytes] = deque()
        self._last_payload = b""
        self._last_message: object = None

    def is_read(self) -> bool | None:
        """Tell whether the client has read all that it was sent; None if the system does not tell."""
        if self.waiting:
            self.flush()
            if self.waiting:
                return False
        unread = count_unread(self.socket)
        return None if unread is None else unread == 0

    @property
    def waiting(self) -> bool:
        """Tell whether messages wait for the client to read."""
        return bool(self._begun or self._queue)

    def send(self, data: bytes) -> None:
        """Send a framed message, if not empty, or queue it; the newest is dropped if the queue is full."""
        if self._begun or self._queue:
            self.flush()
        if not data or self.broken:
            return
        if self._begun or self._queue:
            if len(self._queue) >= MAX_QUEUED:
                if self.dropped == 0:
                    _log.warning("%s does not read; its newest messages are dropped", self.name)
                self.dropped += 1
            else:
                self._queue.append(data)
            return
        self._begun = self._write(data)
        if self._begun:
            self._backlog.add(self)

    def send_together(self, messages: list[bytes]) -> None:
        """Send framed messages so that they arrive as one, as far as the system lets them."""
        if self.waiting:
            for message in messages:  # each counts in the queue
                self.send(message)
        else:
            self.send(b"".join(messages))

    def flush(self) -> None:
        """Send what waits, as far as the client takes it."""
        while self._begun or self._queue:
            self._begun = self._write(self._begun or self._queue.popleft())
            if self._begun:
                return
        self._backlog.discard(self)

    def _write(self, data: bytes) -> bytes:
        """Return what of `data` the system did not take."""
        try:
            sent = self.socket.send(data)
        except (BlockingIOError, InterruptedError):
            return data
        except OSError:
            self.broken = True
            self._queue.clear()
            return b""
        return b"" if sent == len(data) else data[sent:]

    def read(self) -> None:
        """Take in bytes that have arrived; `broken` is set where the client has closed the connection."""
        try:
            data = self.socket.recv(_READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.broken = True
            return
        if self._received:
            data = self._received[self._start :] + data
            self._start = 0
        self._received = data
        if len(data) >= 2:
            self._end = end = 2 + (data[0] << 8 | data[1])
            self.has_message = len(data) >= end

    def take_message(self) -> object:
        """Return the oldest message that has been read, only where `has_message`.

        A `flat.RenderGroup` stays the bytes that came, since hardly anybody looks at drawings.

        Raises:
            WireError: Bytes that cannot be decoded: the client is not to be trusted any more.
        """
        data, end = self._received, self._end
        payload = data[self._start + 2 : end]
        if end == len(data):
            self._received, self._start, self.has_message = b"", 0, False
        else:
            self._start = end
            if len(data) - end >= 2:
                self._end = end = end + 2 + (data[end] << 8 | data[end + 1])
            self.has_message = self._start < end <= len(data)
        if payload == self._last_payload and payload:
            return self._last_message  # bots repeat their controls, mostly for 8 ticks
        return self._decode(payload)

    def _decode(self, payload: bytes) -> object:
        try:
            if len(payload) > _SHORT_BYTES:
                if kind_of(payload) == _DRAWINGS:
                    return payload
                check_message(payload, TO_SERVER)
            message = flat.InterfacePacket.unpack(payload).message
        except ValueError as error:
            reason = str(error).splitlines()[-1].strip()
            raise WireError(
                f"{self.name} sent {len(payload)} bytes that are no RLBot v5 message ({reason}); "
                f"expected an InterfacePacket of rlbot 2.0.0b56 or a compatible version"
            ) from error
        if message.__class__ is flat.RenderGroup:
            return payload
        self._last_payload, self._last_message = payload, message
        return message

    def close(self) -> None:
        """Close the connection at once."""
        self.broken = True
        self.socket.close()


def count_unread(connection: socket.socket) -> int | None:
    """Return how many bytes the other end of a TCP connection has not read; None off Linux."""
    if sys.platform != "linux":
        return None
    try:
        ends = [connection.getpeername(), connection.getsockname()]  # as the other end has them
        addresses = [plain_address(end[0]) for end in ends]
        family = socket.AF_INET if addresses[0].version == 4 else socket.AF_INET6
        question = _QUESTION.pack(
            _QUESTION.size, _SOCK_DIAG_BY_FAMILY, 1, 0, 0, family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF,
            *(end[1].to_bytes(2, "big") for end in ends), *(address.packed for address in addresses),
            0, 0xFFFFFFFF, 0xFFFFFFFF,
        )  # fmt: skip
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.setblocking(False)
            kernel.send(question)
            answer = kernel.recv(4096)
    except OSError:  # the connection has gone, or the system forbids the question
        return None
    if len(answer) < _UNREAD_AT + 4 or int.from_bytes(answer[4:6], sys.byteorder) != _SOCK_DIAG_BY_FAMILY:
        return None  # the other end is on another machine, or in another network namespace
    return int.from_bytes(answer[_UNREAD_AT : _UNREAD_AT + 4], sys.byteorder)


def plain_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return a numeric address, of version 4 where it is one in the form of version 6."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address
