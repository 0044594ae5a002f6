"""A server with more visitors than file handles: `python -m tests.support.crowded_server serve|play|starve`.

It runs in a process of its own because it changes that process's limit on open files.
"""

import resource
import sys
import threading
import time

import pytest
from rlbot import flat

from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.wire import listen
from tests.support.raw_client import RawClient
from tests.support.short_waits import shorten_farewell
from tests.support.stepped_match import match_of, player

GOODBYES = 400  # more than may be open at a time
HANDLES = 4096
"""Open files that a process with a server and all these clients may have."""

_STARVED = 48  # open files at most where handles run out


def _say_goodbye(port: int, strangers: list[RawClient]) -> None:
    """Connect and say goodbye, again and again, without closing a connection."""
    for _ in range(GOODBYES):
        stranger = RawClient(port)
        stranger.send(flat.DisconnectSignal())
        assert isinstance(stranger.receive(), flat.DisconnectSignal)
        strangers.append(stranger)


def _serve() -> None:
    """Start a match on a server that many have said goodbye to, and watch it to its end."""
    with MatchServer(pace="lockstep", seconds=2.0, max_kickoff=2.0, max_overtime=0.1) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        strangers: list[RawClient] = []
        _say_goodbye(server.port, strangers)
        observer = RawClient(server.port)
        observer.socket.settimeout(60.0)
        observer.send(flat.PingRequest(cookie=5))
        assert observer.receive().cookie == 5
        observer.send(flat.ConnectionSettings(""), match_of(player(0), player(1)), flat.InitComplete())
        phase = None
        while phase != flat.MatchPhase.Ended:
            message = observer.receive()
            phase = message.match_info.match_phase if isinstance(message, flat.GamePacket) else phase
        observer.send(flat.StopCommand(shutdown_server=True))
        thread.join(30.0)
    print("match ended")


def _play() -> None:
    """Play a match to which many say goodbye while it goes on."""
    strangers: list[RawClient] = []
    threads: list[threading.Thread] = []
    sizes: list[int] = []

    def on_packet(packet: bytes) -> None:
        sizes.append(len(packet))
        if not threads:
            thread = threading.Thread(target=_say_goodbye, args=(server.port, strangers), daemon=True)
            threads.append(thread)
            threads[0].start()
        elif threads[0].is_alive():
            time.sleep(0.001)  # goes on in the other thread
        elif len(sizes) > 480 + 8 * 120:  # they have all been there
            server.stop()

    with MatchServer(pace="lockstep", seconds=600.0, on_packet=on_packet) as server:
        result = server.play(match_of(player(0), player(1)))
    threads[0].join(30.0)
    assert len(strangers) == GOODBYES
    assert (
        result.ended_by == "stopped"
        and result.playing_ticks >= 5 * 120
        and not any(bot.crashed for bot in result.bots)
    )
    print("match ended")


def _starve() -> None:
    """Serve with few handles until a client says stop; print how often the server looked around."""
    lobby = Lobby(listen("127.0.0.1", 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_STARVED, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(lobby.clients.listener.getsockname()[1], flush=True)
    looks = 0
    while lobby.orders.latest is None:
        lobby.clients.pump(0.5)
        looks += 1
    print(looks)


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (HANDLES, hard))
    with pytest.MonkeyPatch.context() as patch:
        shorten_farewell(patch)
        {"serve": _serve, "play": _play, "starve": _starve}[sys.argv[1]]()
