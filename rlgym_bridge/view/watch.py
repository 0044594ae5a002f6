"""Hand a match over, while it is played, to a process that shows it; the match waits for nothing.

Rerun is imported there alone, in `watching`: it takes a second and 100 MB.
"""

import logging
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Final

from rlgym_bridge.recording.mcap.channels import DRAWINGS, FIELD_INFO, MATCH_CONFIGURATION, PACKETS
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.stop_signals import apart, await_end

FRAMES_PER_SECOND: Final = 60
"""Packets that are handed over in a second of wall time; what is between them is not shown."""

HEAD: Final = struct.Struct("<BqI")
"""Of a message in the pipe: its topic's place in `TOPICS`, the game's frame, and the bytes that follow."""

TOPICS: Final = (FIELD_INFO, MATCH_CONFIGURATION, PACKETS, DRAWINGS)

READY: Final = "ready "
"""The process says this and the address of the page, if any, once the viewer is there; else why it is not."""

_PROGRAM: Final = ("-P", "-m", "rlgym_bridge.view.watching")
_QUEUED: Final = 256  # packets and drawings: 2 s and more
_QUEUED_BYTES: Final = 1 << 22
_LOOK_SECONDS: Final = 0.008  # between two looks at the queue
_FRAME_SECONDS: Final = 0.9 / FRAMES_PER_SECOND  # a tick is due a little earlier now and then
_END_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class WatchError(ChildProcessError):
    """The process that shows a match does not start."""


class Watch:
    """A window or page that shows the matches of a server: tick thread -> queue -> sender thread -> pipe.

    `where` is "window" for Rerun's own, "web" for a page on this machine, "" for the window if there is a
    display. `address` is that of the page, `dropped` counts messages that found the queue full, `ended` tells
    that nothing is handed over any more. Raises ImportError without Rerun, WatchError if it does not start.
    """

    def __init__(self, where: str = "") -> None:
        if find_spec("rerun") is None:
            raise ImportError(f"watching a match needs Rerun: {explain_install('view')}")
        self.dropped = 0
        self.ended = False
        self._queue: deque[tuple[int, int, bytes]] = deque()
        self._bytes = 0  # put into the queue so far
        self._sent = 0  # of these
        self._next_frame = 0.0
        self._closed = threading.Event()
        words = [sys.executable, *_PROGRAM, *([where] if where else [])]
        how = apart("BELOW_NORMAL_PRIORITY_CLASS")
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().decode(errors="replace").strip("\n")
        if not said.startswith(READY):
            self._close_pipe()
            await_end(self._process, _END_SECONDS)
            raise WatchError(said or "the process that shows the match ended; its message is above")
        self.address = said.removeprefix(READY)
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def put(self, topic: str, frame: int, content: bytes, head: bool = False) -> None:
        """Hand over a message of a match, or drop it, in microseconds; see `Recorder.put`."""
        if self.ended or topic not in TOPICS:
            return
        if topic == PACKETS:
            now = time.perf_counter()
            if now < self._next_frame:
                return
            self._next_frame = now + _FRAME_SECONDS
        full = len(self._queue) >= _QUEUED or self._bytes - self._sent > _QUEUED_BYTES
        if full and not head:
            self.dropped += 1
            return
        self._bytes += len(content)
        self._queue.append((TOPICS.index(topic), frame, content))  # nobody is woken, that would cost more

    def tell(self, name: str, values: Mapping[str, str]) -> None:
        """Take metadata of a recording, which are not shown."""

    def close(self) -> None:
        """End the viewer."""
        self._closed.set()  # the thread closes the pipe, and the process ends by itself then
        await_end(self._process, _END_SECONDS)
        self._thread.join(_END_SECONDS)

    def _close_pipe(self) -> None:
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    # --- in the sender thread --------------------------------------------------------------------

    def _run(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        while not self._closed.wait(_LOOK_SECONDS):
            parts = []
            while self._queue:
                topic, frame, content = self._queue.popleft()
                parts += [HEAD.pack(topic, frame, len(content)), content]
                self._sent += len(content)
            try:
                if parts:
                    pipe.write(b"".join(parts))
                    pipe.flush()
            except OSError:
                break
            if self._process.poll() is not None:
                break
        self.ended = True
        self._queue.clear()
        self._close_pipe()
        if not self._closed.is_set():
            _log.info("the viewer was closed; the match goes on")
