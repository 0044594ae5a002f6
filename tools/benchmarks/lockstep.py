"""Ticks a second of a lockstep match, against a socket echo of the same bytes."""

import select
import socket
import sys
import time
from contextlib import ExitStack
from typing import Any

from rlbot import flat

from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.lineup import empty_match, with_line_up
from tests.parity.world import make_match
from tests.support.processes import child
from tools.benchmarks.runner import compared

_SECONDS = 40.0  # of game time
_ECHOES = 5000
_SILENCE = 60.0  # s without an answer after which an echo is given up

_ECHO = """
import socket, sys
port, answer = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
peer = socket.create_connection(("127.0.0.1", port))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
size = int(sys.argv[3])
while True:
    left = size
    while left:
        part = peer.recv(left)
        if not part:
            sys.exit()
        left -= len(part)
    peer.sendall(answer)
"""


def server_lockstep(team_size: int, rounds: int) -> dict[str, Any]:
    """Time matches of Chaser processes, and bare echoes of a packet and an input between processes."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(time_match(team_size))
        theirs.append(_echo(team_size))
    peer = "socket echo of a packet and an input, blocking sockets"
    return compared(ours, theirs, "ticks/s, every car a Chaser process", peer)


def time_match(team_size: int) -> float:
    """Return the ticks a second of one match in lockstep."""
    bots = ["chaser"] * team_size
    match = with_line_up(empty_match(), bots, bots)
    with MatchServer(pace="lockstep", seconds=_SECONDS, max_overtime=0.0) as server:
        result = server.play(match)
    return result.ticks / result.seconds


def _echo(team_size: int) -> float:
    packet = flat.CorePacket(make_match(team_size, 0, 300.0).packet()).pack()
    data = len(packet).to_bytes(2, "big") + packet
    answer = flat.InterfacePacket(flat.PlayerInput(0, flat.ControllerState(throttle=1.0))).pack()
    answer = len(answer).to_bytes(2, "big") + answer
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(_SILENCE)
        words = [str(listener.getsockname()[1]), answer.hex(), str(len(data))]
        peers = []
        for _ in range(2 * team_size):
            stack.enter_context(child([sys.executable, "-c", _ECHO, *words]))
            peers.append(stack.enter_context(listener.accept()[0]))
        for peer in peers:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter()
        for _ in range(_ECHOES):
            for peer in peers:
                peer.sendall(data)
            waiting = list(peers)
            while waiting:
                ready = select.select(waiting, (), (), _SILENCE)[0]
                if not ready:
                    raise TimeoutError(f"an echo did not answer for {_SILENCE:g} s")
                for peer in ready:
                    peer.recv(len(answer))
                    waiting.remove(peer)
        seconds = time.perf_counter() - began
    return _ECHOES / seconds
