"""Loads on a match server: clients that say nothing, read nothing, flood or dawdle.

`python -m tools.loads NAME PORT` connects the clients of a load and prints a line.
Then it goes on until it is ended.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rlbot import flat

from tests.support.raw_client import RawClient

Make = Callable[[], object]

_PIECE: Final = 1 << 18  # bytes handed to the system at once
_CONTENT: Final = 60_000  # bytes that a bot tells the others at once
_POINTS: Final = 5000  # of a line: 60 kB, near to the 64 kB that a message may have
_TURN_SECONDS: Final = 0.0005


@dataclass(frozen=True)
class Load:
    """A crowd of clients, all of which do the same.

    Attributes:
        clients: Number of clients.
        message: What each sends without end; None for nothing.
        watches: Whether they get packets.
        reads: Whether they read what comes.
        byte_seconds: Seconds between two bytes of the message; 0 for as fast as it goes.
    """

    clients: int
    message: Make | None = None
    watches: bool = False
    reads: bool = True
    byte_seconds: float = 0.0


def _drawing() -> flat.RenderGroup:
    line = flat.PolyLine3D(
        [flat.Vector3(float(x), 0.0, 100.0) for x in range(_POINTS)], flat.Color(255, 0, 0, 255)
    )
    return flat.RenderGroup([flat.RenderMessage(line)], 1)


def _comm() -> flat.MatchComm:
    return flat.MatchComm(0, 0, False, "", b"\0" * _CONTENT)


def _loadouts() -> list[object]:
    """Return two loadouts by turns: each makes all cars of the match anew."""
    return [flat.SetLoadout(0, flat.PlayerLoadout(car_id=car)) for car in (23, 4284)]


LOADS: Final[dict[str, Load]] = {
    "nobody": Load(0),
    "200 silent": Load(200),
    "32 that do not read": Load(32, watches=True, reads=False),
    "pings of one": Load(1, lambda: flat.PingRequest(cookie=1)),
    "pings of 32": Load(32, lambda: flat.PingRequest(cookie=1)),
    "states of one": Load(1, lambda: flat.DesiredGameState()),
    "inputs of four": Load(4, lambda: flat.PlayerInput(0, flat.ControllerState())),
    "drawings of one": Load(1, _drawing),
    "comms of one": Load(1, _comm, watches=True),
    "short comms of one": Load(1, lambda: flat.MatchComm(0, 0, False, "all mine", b""), watches=True),
    "loadouts of one": Load(1, _loadouts, watches=True),
    "switched drawings of one": Load(1, lambda: flat.RenderingStatus(0, True, True)),
    "32 that send a byte a second": Load(32, lambda: flat.PingRequest(cookie=1), byte_seconds=1.0),
}
"""By name; a client that watches has said that it is ready and gets all packets."""


def framed_message(message: object) -> bytes:
    """Return a client's message, or several, as they are sent, length first."""
    if isinstance(message, list):
        return b"".join(map(framed_message, message))
    payload = flat.InterfacePacket(message).pack()  # type: ignore[arg-type]
    return len(payload).to_bytes(2, "big") + payload


def _connect(port: int, load: Load) -> list[RawClient]:
    crowd = [RawClient(port) for _ in range(load.clients)]
    for client in crowd:
        if load.watches:
            client.send(flat.ConnectionSettings(""), flat.InitComplete())
        client.socket.setblocking(False)
    return crowd


def _go_on(crowd: list[RawClient], load: Load) -> None:
    """Send and read until this process is ended, or a connection breaks."""
    message = b"" if load.message is None else framed_message(load.message())
    pieces = message if load.byte_seconds else message * max(1, _PIECE // max(1, len(message)))
    rests = [memoryview(pieces)[:0]] * len(crowd)
    while True:
        for number, client in enumerate(crowd):
            if load.reads:
                with suppress(BlockingIOError):
                    client.socket.recv(65536)
            rest = rests[number] or memoryview(pieces)
            if rest:
                with suppress(BlockingIOError):
                    size = 1 if load.byte_seconds else len(rest)
                    rest = rest[client.socket.send(rest[:size]) :]
                rests[number] = rest
        time.sleep(load.byte_seconds or (_TURN_SECONDS if message else 0.1))


if __name__ == "__main__":
    chosen = LOADS[sys.argv[1]]
    connected = _connect(int(sys.argv[2]), chosen)
    print("connected", flush=True)
    _go_on(connected, chosen)
