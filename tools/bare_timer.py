"""Wake 120 times a second, and echo packets: what a machine makes of a match without the match.

`python -m tools.bare_timer wake SECONDS` sleeps as the server's clock does, and does nothing else. It
ends before its time when its input is closed. `python -m tools.bare_timer echo SECONDS PEERS BYTES`
sends bytes to some processes on every wake, which answer at once. Both print JSON: `[when, how late]` or
`[when, how long until the answer]` of each [s].
"""

import json
import select
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Final

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server.net.pace import _SPIN_SECONDS
from tests.support.processes import child

_GIVE_UP_SECONDS: Final = 0.25  # as in `RealTime`
_ANSWER: Final = b"x" * 40  # about as long as an input
_PATIENCE: Final = 60.0


def wake(seconds: float) -> list[tuple[float, float]]:
    """Wake until the time is over or the input is closed; return when and how late, each time [s]."""
    late, poll = [], select.epoll()
    poll.register(sys.stdin, select.EPOLLHUP)
    due = began = time.perf_counter()
    while due < began + seconds:
        due += TICK_SECONDS
        while (left := due - time.perf_counter()) > 0.0:
            if left > _SPIN_SECONDS:
                select.select((poll.fileno(),), (), (), left - _SPIN_SECONDS)
            if poll.poll(0.0):
                return late
        late.append((now := time.perf_counter(), now - due))
        if now - due > _GIVE_UP_SECONDS:
            due = now
    return late


def echo(seconds: float, peers: int, size: int) -> list[tuple[float, float]]:
    """Send bytes to peers 120 times a second; return when each answer came, and how long it took [s]."""
    answers, packet = [], b"p" * size
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(_PATIENCE)
        command = [
            sys.executable,
            "-m",
            "tools.bare_timer",
            "peer",
            str(listener.getsockname()[1]),
            str(size),
        ]
        for _ in range(peers):
            stack.enter_context(child(command, stdin=subprocess.DEVNULL))
        connections = [stack.enter_context(listener.accept()[0]) for _ in range(peers)]
        poll = select.epoll()
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(connection, select.EPOLLIN)
        by_number = {connection.fileno(): connection for connection in connections}
        due = began = time.perf_counter()
        while due < began + seconds:
            due += TICK_SECONDS
            sent_at = time.perf_counter()
            for connection in connections:
                connection.sendall(packet)
            while (left := due - time.perf_counter()) > 0.0:
                if left > _SPIN_SECONDS:
                    select.select((poll.fileno(),), (), (), left - _SPIN_SECONDS)
                for number, _ in poll.poll(0.0):
                    by_number[number].recv(65536)
                    answers.append((now := time.perf_counter(), now - sent_at))
            due = max(due, time.perf_counter() - _GIVE_UP_SECONDS)
    return answers


def _answer(port: int, size: int) -> None:
    """Answer every packet until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        got = 0
        while data := connection.recv(65536):
            got += len(data)
            if got >= size:
                got = 0
                connection.sendall(_ANSWER)


if __name__ == "__main__":
    words = sys.argv[2:]
    if sys.argv[1] == "peer":
        _answer(int(words[0]), int(words[1]))
    elif sys.argv[1] == "wake":
        print(json.dumps(wake(float(words[0]))))
    else:
        print(json.dumps(echo(float(words[0]), int(words[1]), int(words[2]))))
