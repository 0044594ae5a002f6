"""A server in RLBotServer's place, in a thread, with rlbot's own match manager."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rlbot import flat
from rlbot.managers import MatchManager

from rlgym_bridge.server import MatchServer


@contextmanager
def serve(**settings: float) -> Iterator[MatchManager]:
    """Serve for ever in lockstep; the manager is connected, and ends the server."""
    with MatchServer(pace="lockstep", **settings) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        manager = MatchManager()
        manager.connect_and_run(
            wants_match_communications=False, wants_ball_predictions=False, close_between_matches=False,
            rlbot_server_port=server.port, background_thread=True,
        )  # fmt: skip
        yield manager
        manager.rlbot_interface.stop_match(shutdown_server=True)
        thread.join(20.0)
        assert not thread.is_alive()
    manager.rlbot_interface.is_connected = False


def start(manager: MatchManager, match: flat.MatchConfiguration, *names: str) -> None:
    """Start a match and wait for a packet of it: MatchManager's own wait may miss one of two seconds."""
    manager.start_match(match, wait_for_start=False, ensure_server_started=False)
    wait_for(lambda: manager.packet and [one.name for one in manager.packet.players] == list(names))


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
