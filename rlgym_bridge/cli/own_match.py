"""A match for cars that a command plays itself: on the embedded server, or on RLBotServer."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rlbot import flat
from rlbot.interface import SocketRelay

from rlgym_bridge.cli.real_match import START_SECONDS, running_server
from rlgym_bridge.client.seats import NoServer
from rlgym_bridge.server import ConfigError, MatchCalledOff, MatchServer, ServerError

_LOG = logging.getLogger("rlgym_bridge.rlbot")  # `real_match` has it say warnings only

_LOOK_SECONDS = 0.2  # between two looks whether the connection is still there
_AGAIN = "is Rocket League running? Restart RLBotServer and try again"


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
    ip, port = running_server()
    taken = threading.Event()
    relay = SocketRelay("", logger=_LOG)
    # rlbot's own background thread would keep the process alive for as long as the server is.
    listener = threading.Thread(target=_listen, args=(relay, taken), name="relay", daemon=True)
    try:
        relay.connect(
            wants_match_communications=False,
            wants_ball_predictions=False,
            close_between_matches=False,
            rlbot_server_ip=ip,
            rlbot_server_port=port,
        )
        listener.start()
        relay.start_match(match)
        relay.send_msg(flat.InitComplete())
        _wait_for(taken, listener, f"{ip}:{port}")
        yield ip, port
    except OSError as error:
        raise ServerError(f"the RLBotServer at {ip}:{port} went away: {error}; {_AGAIN}") from error
    except NoServer as error:
        raise ServerError(f"{error}; {_AGAIN}") from error
    finally:
        with suppress(OSError):  # the server may be gone; what went wrong before is to be told
            if relay.is_connected and relay.socket is not None:
                relay.send_msg(flat.DisconnectSignal())
                relay.socket.shutdown(socket.SHUT_RDWR)  # wakes the listener


def _listen(relay: SocketRelay, taken: threading.Event) -> None:
    """Take in all that comes; ends with the connection, or where a message cannot be read."""
    with suppress(EOFError, OSError, flat.InvalidFlatbuffer):
        while not isinstance(flat.CorePacket.unpack(relay.read_message()).message, flat.MatchConfiguration):
            pass
        taken.set()
        while True:
            relay.read_message()  # a server whose messages nobody takes would stop sending


def _wait_for(taken: threading.Event, listener: threading.Thread, server: str) -> None:
    """Wait until the server has taken the match, for as long as it may."""
    deadline = time.monotonic() + START_SECONDS
    while not taken.wait(_LOOK_SECONDS):
        if not listener.is_alive() and not taken.is_set():
            raise ServerError(
                f"the RLBotServer at {server} closed the connection, or sent what cannot be read, before it "
                f"took the match; {_AGAIN}"
            )
        if time.monotonic() >= deadline:
            raise ServerError(
                f"the RLBotServer at {server} did not take the match within {START_SECONDS:g} s: is Rocket "
                f"League installed, and not held up by a window of its launcher?"
            )
