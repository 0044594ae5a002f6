"""Take orders of clients to the server: start a match, stop it, set its state, shut down."""

from collections.abc import Callable
from dataclasses import dataclass

from rlbot import flat

from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.net.admission import Admission
from rlgym_bridge.server.net.connected_client import Client, Handler
from rlgym_bridge.user_input.arguments import shorten_text

_log = client_log(__name__)


@dataclass(frozen=True)
class Order:
    """An order of a client to the server.

    Attributes:
        start: Match to play; None to stop.
        shut_down: Leave `serve_forever`.
    """

    start: flat.MatchConfiguration | None = None
    shut_down: bool = False


class Orders:
    """The latest order, and whose orders count.

    Attributes:
        latest: The latest order; whoever acts on it sets it to None.
        read_match: Returns the match of a client, a configuration or the path of a file. Raises a ValueError
            or OSError that says why it cannot be played. None where clients may not start matches.
        sets_states: Whether the match lets clients set its state.
        take_state: Called with a state that a client sets; returns False for an invalid one.
        take_input: Called with the index of a car and controls; returns False where they cannot be taken.
        on_state: Called with the client whose state, or input for a car of others, was taken.
    """

    def __init__(self, admission: Admission) -> None:
        """Begin without an order; `admission` says whose orders count."""
        self._admission = admission
        self.latest: Order | None = None
        self.read_match: Callable[[flat.MatchConfiguration | str], flat.MatchConfiguration] | None = None
        self.sets_states = False
        self.take_state: Callable[[flat.DesiredGameState], bool] | None = None
        self.take_input: Callable[[int, flat.ControllerState], bool] | None = None
        self.on_state: Callable[[Client], None] | None = None

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message that is an order."""
        return {
            flat.StartCommand: lambda client, message: self._take_match(client, message.config_path),
            flat.MatchConfiguration: self._take_match,
            flat.StopCommand: self._on_stop,
            flat.DesiredGameState: self._on_state,
            flat.ConsoleCommand: self._on_console_command,
        }

    def _take_match(self, client: Client, match: flat.MatchConfiguration | str) -> None:
        if self.read_match is None:
            client.warn_once(
                "%s starts another match: ignored, this server plays only the match it was started with"
            )
            return
        try:
            self.latest = Order(start=self.read_match(match))
        except (ValueError, OSError) as error:  # the match that is played goes on
            _log.error("cannot start the match of %s: %s", client.link.name, error)

    def _on_stop(self, client: Client, message: flat.StopCommand) -> None:
        if self._admission.takes_order(client, "stops the match", lambda: self._on_stop(client, message)):
            self.latest = Order(shut_down=message.shutdown_server)

    def _on_console_command(self, client: Client, message: flat.ConsoleCommand) -> None:
        client.warn_once(
            "%s sends console commands (%s): ignored, there is no game", shorten_text(message.command)
        )

    def drive(self, client: Client, message: flat.PlayerInput) -> bool:
        """Take an input for a car of others, as RLBot's core does with state setting on.

        It answers no packet.
        """
        if self.take_input is None or not self.sets_states:
            return False
        if not client.seats and not self._admission.takes_order(client, "drives cars", lambda: None):
            return False
        if not self.take_input(message.player_index, message.controller_state):
            return False
        if self.on_state is not None:
            self.on_state(client)
        return True

    def _on_state(self, client: Client, message: flat.DesiredGameState) -> None:
        if self.take_state is None:
            return
        if not self.sets_states:
            client.warn_once("%s sets the state: ignored, the match does not have enable_state_setting")
            return
        if not client.seats and not self._admission.takes_order(
            client, "sets the state", lambda: self._on_state(client, message)
        ):
            return
        if not self.take_state(message):
            client.warn_once("%s sets a state with a value that is not finite or beyond 1e6: nothing is set")
        elif self.on_state is not None:
            self.on_state(client)
