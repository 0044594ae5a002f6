"""A match server in a process of its own, which tells when it made its packets."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, TICK_SECONDS
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.lineup import empty_match, with_line_up
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.pace import RealTime
from tests.support.processes import child
from tests.support.raw_client import RawClient
from tools.memory_use import MemoryUse, memory_of

LATE_MS: Final = 0.25 * TICK_SECONDS * 1e3
"""From which on the server counts a packet as late; see `RealTime`."""

_GIVE_UP_SECONDS: Final = 0.25  # as in `RealTime`: what is lost beyond this is not made up for
_PATIENCE: Final = 60.0  # s for bots to start
_ANSWER_SECONDS: Final = 10.0


Meanwhile = Callable[[], None] | None


def lateness_ms(times: Sequence[float]) -> np.ndarray:
    """Compute how late each packet was by the schedule that the server has in real time.

    Args:
        times: `(N,)` when each had been sent [s].

    Returns:
        `(N,)` float64 [ms]; below 0 for one that came early.
    """
    late, due = np.zeros(len(times)), times[0] if len(times) else 0.0
    for number, at in enumerate(times):
        late[number] = (at - due) * 1e3
        due = (at if at - due > _GIVE_UP_SECONDS else due) + TICK_SECONDS
    return late


def chaser_match(team_size: int) -> flat.MatchConfiguration:
    """Return a match of Chaser against itself, a process a car, that lets clients set its state."""
    match = with_line_up(empty_match(), ["chaser"] * team_size, ["chaser"] * team_size)
    match.enable_state_setting = True
    return match


class LoadedServer:
    """A match server's process, and an observer connected to it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = process.pid
        assert process.stdout is not None
        port = process.stdout.readline()
        if not port:
            raise EOFError("the server's process ended before it listened")
        self.port = int(port)
        self.times: list[float] = []
        self._observer: RawClient | None = None

    @property
    def memory(self) -> MemoryUse:
        """Memory, handles, threads and children of the process."""
        return memory_of(self.pid)

    def begin(self, match: flat.MatchConfiguration) -> None:
        """Start a match, and wait until it is in play."""
        observer = self._observer
        if observer is None:
            observer = self._observer = RawClient(self.port)
            observer.send(flat.ConnectionSettings(""))
        observer.socket.settimeout(_PATIENCE)
        self.read_times()
        self.times.clear()  # of the match before
        observer.send(match, flat.InitComplete())
        self.watch_until(*PLAYING_PHASES)
        observer.socket.settimeout(_ANSWER_SECONDS)

    def watch_until(self, *phases: int) -> None:
        """Read packets until one has one of these phases."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            message = self._message()
            if isinstance(message, flat.GamePacket) and int(message.match_info.match_phase) in phases:
                return
        raise TimeoutError(f"the match did not come to phase {phases}")

    def count(self, seconds: float) -> float:
        """Return how many packets a second the observer gets in the seconds that follow."""
        packets, began = 0, time.perf_counter()
        while (now := time.perf_counter()) < began + seconds:
            packets += isinstance(self._message(), flat.GamePacket)
        return packets / (now - began)

    def read_times(self) -> int:
        """Fetch the times of packets made since they were fetched last; return how many there are by now."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("times\n")
        self._process.stdin.flush()
        self.times += json.loads(self._process.stdout.readline())
        return len(self.times)

    def stop_match(self) -> None:
        """Stop the match, and wait until its bots have ended."""
        assert self._observer is not None
        self._observer.send(flat.StopCommand(shutdown_server=False))
        deadline = time.monotonic() + _PATIENCE
        while self.memory.children and time.monotonic() < deadline:
            time.sleep(0.1)
        self._observer.socket.close()
        self._observer = None
        time.sleep(0.5)

    def _message(self) -> object:
        assert self._observer is not None
        message = self._observer.receive()
        if message is None:
            raise EOFError("the server has closed the observer's connection")
        return message


@contextmanager
def loaded_server(limit: float, **settings: Any) -> Iterator[LoadedServer]:
    """Start a server of these settings in a process of its own, ended after `limit` s whatever happens."""
    command = [sys.executable, "-m", "tools.loaded_server", json.dumps(settings)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with child(command, text=True, **pipes) as process:
        deadline = threading.Timer(limit, process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            yield LoadedServer(process)
        finally:
            deadline.cancel()


def _serve(settings: dict[str, Any]) -> None:
    """Serve, and answer each line on stdin with the times of the packets sent since the last one."""
    times: list[float] = []
    wait = RealTime.wait

    def note(pace: RealTime, lobby: Lobby, sent_at: float, meanwhile: Meanwhile = None) -> None:
        times.append(sent_at)
        wait(pace, lobby, sent_at, meanwhile)

    RealTime.wait = note  # type: ignore[method-assign]

    def answer() -> None:
        for _ in sys.stdin:
            count = len(times)
            print(json.dumps(times[:count]), flush=True)
            del times[:count]

    with MatchServer(**settings) as server:
        print(server.port, flush=True)
        threading.Thread(target=answer, daemon=True).start()
        with suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
