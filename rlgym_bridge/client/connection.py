"""Send and receive the messages of one connection to a server.

Every message is a length (two bytes, unsigned, big-endian) and that many bytes of flatbuffer.
"""

import socket
import time
from typing import Final

from rlbot import flat

_CHUNK: Final = 1 << 16


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
        self._pending = bytearray()

    def send(self, *messages: object) -> None:
        """Send messages in one system call."""
        data = b""
        for message in messages:
            payload = flat.InterfacePacket(message).pack()  # type: ignore[arg-type]
            data += len(payload).to_bytes(2, "big") + payload
        self._socket.sendall(data)

    def receive(self, seconds: float) -> bytes | None:
        """Return the next message's payload; None where none came in time.

        Args:
            seconds: How long to wait.

        Raises:
            EOFError: The server closed the connection.
        """
        deadline = time.monotonic() + seconds
        while True:
            size = int.from_bytes(self._pending[:2], "big") + 2
            if len(self._pending) >= max(2, size):
                payload = bytes(self._pending[2:size])
                del self._pending[:size]
                return payload
            if not self._read(max(0.0, deadline - time.monotonic())):
                return None

    def fileno(self) -> int:
        """Return the socket's number, for `select`."""
        return self._socket.fileno()

    def _read(self, seconds: float) -> bool:
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(_CHUNK)
        except (BlockingIOError, TimeoutError):
            return False
        finally:
            self._socket.settimeout(5.0)
        if not data:
            raise EOFError("it closed the connection")
        self._pending += data
        return True

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
