"""A match for cars that a command plays itself: on the embedded server, or on RLBotServer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rlbot import flat

from rlgym_bridge.cli.real_match import START_SECONDS, running_server
from rlgym_bridge.client.agent_connections import NoServer, start_match
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


@contextmanager
def real_match(match: flat.MatchConfiguration) -> Iterator[tuple[str, int]]:
    """Start a match on RLBotServer; yield its address and port when it has taken the match."""
    server = running_server()
    try:
        start_match(server, match, START_SECONDS)
        yield server
    except NoServer as error:
        raise ServerError(f"{error}; is Rocket League running? Restart RLBotServer and try again") from error
    except OSError as error:
        raise ServerError(
            f"the RLBotServer at {server[0]}:{server[1]} went away: {error}; restart it and try again"
        ) from error
