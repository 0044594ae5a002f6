"""Take orders of clients to the server: start a match, stop it, shut down."""

import logging
from dataclasses import dataclass

from rlbot import flat

from rlgym_bridge.server.connected_client import Client, Handler

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Order:
    """An order of a client to the server.

    Attributes:
        start: Match to play: a configuration, or the path of a file; None to stop.
        shut_down: Leave `serve_forever`.
    """

    start: flat.MatchConfiguration | str | None = None
    shut_down: bool = False


class Orders:
    """The latest order, and whose orders count.

    Attributes:
        latest: The latest order; whoever acts on it sets it to None.
        takes_matches: Whether clients may start a match; stop they always may.
    """

    def __init__(self) -> None:
        """Begin without an order."""
        self.latest: Order | None = None
        self.takes_matches = False

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message that is an order."""
        return {
            flat.StartCommand: self._on_start,
            flat.MatchConfiguration: self._on_configuration,
            flat.StopCommand: self._on_stop,
        }

    def _on_start(self, client: Client, message: flat.StartCommand) -> None:
        self._take_match(client, message.config_path)

    def _on_configuration(self, client: Client, message: flat.MatchConfiguration) -> None:
        self._take_match(client, message)

    def _take_match(self, client: Client, match: flat.MatchConfiguration | str) -> None:
        if self.takes_matches:
            self.latest = Order(start=match)
        else:
            _log.warning(
                "%s starts another match: ignored, this server plays only the match it was started with",
                client.link.name,
            )

    def _on_stop(self, _: Client, message: flat.StopCommand) -> None:
        self.latest = Order(shut_down=message.shutdown_server)
