"""A match for cars that a command plays itself: on the embedded server, or on RLBotServer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rlbot import flat

from rlgym_bridge.cli.real_match import REFUSED, START_SECONDS, running_server
from rlgym_bridge.client.agent_connections import OWN_SECONDS, NoServer, is_own_server, start_match
from rlgym_bridge.server import ConfigError, MatchCalledOff, MatchServer, ServerError


@contextmanager
def sim_match(server: MatchServer, match: flat.MatchConfiguration) -> Iterator[None]:
    """Play a match on the embedded server, in a thread of its own."""
    errors: list[Exception] = []

    def play() -> None:
        try:
            server.play(match)
        except (ConfigError, MatchCalledOff, ServerError) as error:
            errors.append(error)

    thread = threading.Thread(target=play, name="match", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.stop()
        thread.join(10.0)
    if errors:
        raise errors[0]


class RunningServer(NamedTuple):
    """A server that plays a match.

    Attributes:
        address: Its address and port.
        own: Whether it is this project's match server in RLBotServer's place.
    """

    address: tuple[str, int]
    own: bool


@contextmanager
def real_match(match: flat.MatchConfiguration) -> Iterator[RunningServer]:
    """Start a match on RLBotServer, or on what runs in its place; yield it when it has taken the match."""
    server = running_server()
    own = is_own_server(server)
    try:
        start_match(server, match, min(START_SECONDS, OWN_SECONDS) if own else START_SECONDS)
        yield RunningServer(server, own)
    except NoServer as error:
        hint = REFUSED if own else "is Rocket League running? Restart RLBotServer and try again"
        raise ServerError(f"{error}; {hint}") from error
    except OSError as error:
        raise ServerError(
            f"the RLBotServer at {server[0]}:{server[1]} went away: {error}; restart it and try again"
        ) from error
