"""Notice a bot that connects to RLBot's default port, whatever port it was told."""

import socket
from contextlib import suppress

from rlbot.interface import RLBOT_SERVER_PORT


class DefaultPortWatch:
    """Listens on RLBot's default port of this machine while that is free.

    Attributes:
        port: RLBot's default port.
    """

    port = RLBOT_SERVER_PORT

    def __init__(self) -> None:
        """Begin to listen; where another program does, nothing is noticed."""
        self._listener: socket.socket | None = None
        with suppress(OSError):
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._listener.setblocking(False)

    def was_found(self) -> bool:
        """Tell whether somebody has connected."""
        if self._listener is None:
            return False
        with suppress(OSError):
            self._listener.accept()[0].close()
            return True
        return False

    def close(self) -> None:
        """Listen no more."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
