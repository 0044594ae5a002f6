"""Send and receive the messages of one connection to a server.

Every message is a length (two bytes, unsigned, big-endian) and that many bytes of flatbuffer.
"""

import select
import socket
import time
from typing import Final

from rlbot import flat

_CHUNK: Final = 1 << 16
_SEND_SECONDS: Final = 5.0  # to wait for a server that does not read


def framed(message: object) -> bytes:
    """Return a message as it is sent: its length, and its flatbuffer."""
    payload = flat.InterfacePacket(message).pack()  # type: ignore[arg-type]
    return len(payload).to_bytes(2, "big") + payload


class Connection:
    """One connection to a server.

    Args:
        server: Address and port.

    Raises:
        OSError: The server cannot be reached.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self._socket = socket.create_connection(server, timeout=5.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)  # with a timeout, each call would cost three system calls
        self._pending = bytearray()

    def send(self, *messages: object) -> None:
        """Send messages in one system call.

        Raises:
            OSError: The connection is broken, or the server has not read for 5 s.
        """
        self.send_bytes(b"".join(map(framed, messages)))

    def send_bytes(self, data: bytes) -> None:
        """Send messages as `framed` returns them.

        Raises:
            OSError: The connection is broken, or the server has not read for 5 s.
        """
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                if not select.select([], [self._socket], [], _SEND_SECONDS)[1]:
                    raise TimeoutError(f"the server has not read for {_SEND_SECONDS:g} s") from None

    def receive(self, seconds: float) -> bytes | None:
        """Return the next message's payload; None where none came in time.

        Args:
            seconds: How long to wait.

        Raises:
            EOFError: The server closed the connection.
        """
        deadline = time.monotonic() + seconds
        while True:
            size = self._size()
            if len(self._pending) >= max(2, size):
                payload = bytes(self._pending[2:size])
                del self._pending[:size]
                return payload
            if not self._read(max(0.0, deadline - time.monotonic())):
                return None

    def receive_all(self) -> list[bytes]:
        """Return the payloads of all messages that have come, up to 64 kB of them, without waiting.

        Raises:
            EOFError: The server closed the connection, and all that came before has been returned.
        """
        if len(self._pending) < 2 or len(self._pending) < self._size():
            self._read(0.0)
        payloads = []
        while len(self._pending) >= 2 and len(self._pending) >= (size := self._size()):
            payloads.append(bytes(self._pending[2:size]))
            del self._pending[:size]
        return payloads

    def fileno(self) -> int:
        """Return the socket's number, for `select`."""
        return self._socket.fileno()

    def _size(self) -> int:
        """Return the size of the message that has begun to come, with its length."""
        return int.from_bytes(self._pending[:2], "big") + 2

    def _read(self, seconds: float) -> bool:
        if seconds > 0.0 and not select.select([self._socket], [], [], seconds)[0]:
            return False
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        if not data:
            raise EOFError("it closed the connection")
        self._pending += data
        return True

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
