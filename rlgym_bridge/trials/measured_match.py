"""Start a match for cars that a script plays: on the embedded server, or on RLBotServer."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from rlbot import flat
from rlbot.managers import MatchManager

from rlgym_bridge.live.agent_connections import OWN_SECONDS, NoServer, is_own_server, start_match
from rlgym_bridge.live.play import server_address
from rlgym_bridge.server import ConfigError, MatchCalledOff, MatchServer, ServerError

START_SECONDS: Final = 180.0  # in which the real game has to start, load the map and send something
LAUNCH_SECONDS: Final = 60.0  # in which an RLBotServer that was started here has to listen
REFUSED: Final = (
    "it is this project's own match server, whose log says why. It plays no Psyonix bots and humans unless "
    "it was started with --allow-idle: for them start RLBotServer with the real game"
)
"""The reason that this project's server in RLBotServer's place does not take a match."""

_SIM_PATIENCE: Final = 20.0  # s for each step of the embedded server's handshake
_RETRY_SECONDS: Final = 0.2


class MeasuredServer(NamedTuple):
    """A server that plays a match."""

    address: tuple[str, int]
    own: bool  # whether it is this project's match server, perhaps in RLBotServer's place
    patience: float  # seconds to wait for each step


@contextmanager
def measured_match(match: flat.MatchConfiguration, server: MatchServer | None) -> Iterator[MeasuredServer]:
    """Start a match, and end it with the context.

    The embedded server plays it in a thread of its own; None is RLBotServer, or what runs in its place. A
    ConfigError says that it does not play such a match, a ServerError that there is none, or that it refused.
    """
    if server is None:
        with _match_on_rlbot(match) as running:
            yield running
        return
    errors: list[Exception] = []

    def play() -> None:
        try:
            server.play(match)
        except (ConfigError, MatchCalledOff, ServerError) as error:
            errors.append(error)

    with server:
        thread = threading.Thread(target=play, name="match", daemon=True)
        thread.start()
        try:
            yield MeasuredServer((server.host, server.port), True, _SIM_PATIENCE)
        finally:
            server.stop()
            thread.join(10.0)
        if errors:
            raise errors[0]


@contextmanager
def _match_on_rlbot(match: flat.MatchConfiguration) -> Iterator[MeasuredServer]:
    address = running_server()
    own = is_own_server(address)
    try:
        start_match(address, match, min(START_SECONDS, OWN_SECONDS) if own else START_SECONDS)
        yield MeasuredServer(address, own, START_SECONDS)
    except NoServer as error:
        hint = REFUSED if own else "is Rocket League running? Restart RLBotServer and try again"
        raise ServerError(f"{error}; {hint}") from error
    except OSError as error:
        raise ServerError(
            f"the RLBotServer at {address[0]}:{address[1]} went away: {error}; restart it and try again"
        ) from error


def running_server() -> tuple[str, int]:
    """Return address and port of a running RLBotServer, starting an installed one where none runs.

    A ConfigError says that the environment has no valid address, a ServerError why there is no server.
    """
    try:
        ip, port = server_address()
    except ValueError as error:
        raise ConfigError(str(error)) from None
    try:
        with socket.create_connection((ip, port), timeout=2.0):
            return ip, port
    except OSError:
        pass  # none there: look for one that is installed
    manager = MatchManager()
    try:
        manager.ensure_server_started()  # type: ignore[no-untyped-call]
    except (OSError, TypeError) as error:  # TypeError: rlbot without LOCALAPPDATA
        raise ServerError(
            f"no RLBotServer runs at {ip}:{port}, and none is installed here ({error}). The real game needs "
            f"Rocket League and RLBot v5 (rlbot.org): start RLBotServer first, or set RLBOT_SERVER_IP and "
            f"RLBOT_SERVER_PORT. Without the game, play with --server sim"
        ) from error
    address = ip, int(manager.rlbot_server_port)
    _await_listening(address)
    return address


def _await_listening(address: tuple[str, int]) -> None:
    """Wait until a server that has just been started can be reached: its launcher returns before."""
    deadline = time.monotonic() + LAUNCH_SECONDS
    while True:
        try:
            with socket.create_connection(address, timeout=2.0):
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise ServerError(
                    f"RLBotServer was started, but cannot be reached at {address[0]}:{address[1]} within "
                    f"{LAUNCH_SECONDS:g} s: {error}. Start it by hand to see what it says"
                ) from error
            time.sleep(_RETRY_SECONDS)
