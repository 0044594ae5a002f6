"""Measure what floods of messages cost a match: `python -m tests.support.floods [SECONDS]` prints a table.

Two shipped bots play in real time. An observer counts packets while others send as fast as they can.
"""

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rlbot import flat

from rlgym_bridge.server import MatchServer
from tests.support.processes import guard
from tests.support.raw_client import RawClient
from tests.support.stepped_match import match_of, player

Make = Callable[[], object]

FLOODS: dict[str, tuple[int, Make]] = {
    "nobody": (0, flat.InitComplete),
    "pings of one client": (1, lambda: flat.PingRequest(cookie=1)),
    "states of one client": (1, lambda: flat.DesiredGameState()),
    "inputs of four clients": (4, lambda: flat.PlayerInput(0, flat.ControllerState())),
    "pings of 32 clients": (32, lambda: flat.PingRequest(cookie=1)),
}
"""Number of clients that send, and what each sends without end."""


def _flood(port: int, name: str) -> None:
    clients, make = FLOODS[name]
    packed = flat.InterfacePacket(make()).pack()  # type: ignore[arg-type]
    data = (len(packed).to_bytes(2, "big") + packed) * 2000
    crowd = dict.fromkeys((RawClient(port).socket for _ in range(clients)), b"")
    for client in crowd:
        client.setblocking(False)
    while crowd:
        for client, rest in crowd.items():
            with suppress(BlockingIOError):
                rest = rest or data
                rest = rest[client.send(rest) :]
            crowd[client] = rest
            with suppress(BlockingIOError):
                client.recv(65536)
        time.sleep(0.0005)


def packets_a_second(name: str, seconds: float) -> float:
    """Return how many packets an observer gets in a second while a flood goes on."""
    with MatchServer(seconds=600.0, log_dir=Path(sys.prefix) / "unused") as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        observer = RawClient(server.port)
        observer.send(
            flat.ConnectionSettings(""),
            match_of(player(0), player(1), enable_state_setting=True),
            flat.InitComplete(),
        )
        while not isinstance(observer.receive(), flat.GamePacket):
            pass
        flood = multiprocessing.get_context("fork").Process(
            target=_flood, args=(server.port, name), daemon=True
        )
        flood.start()
        count, end = 0, time.perf_counter() + 1.0  # until the flood is there
        while time.perf_counter() < end:
            observer.receive()
        end += seconds
        while time.perf_counter() < end:
            count += isinstance(observer.receive(), flat.GamePacket)
        flood.kill()
        flood.join()
        observer.send(flat.StopCommand(shutdown_server=True))
        thread.join(30.0)
    return count / seconds


if __name__ == "__main__":
    guard()
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    for flood_name in FLOODS:
        print(f"{flood_name:26} {packets_a_second(flood_name, length):6.1f} packets a second")
