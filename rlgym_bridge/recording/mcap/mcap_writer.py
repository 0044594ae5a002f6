"""Write a recording in a thread of its own while a match goes on, chunk by chunk.

A killed process loses the last chunk at most. Whatever fails ends the recording with a warning.
"""

import glob
import json
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.recording.mcap.channels import ABOUT, ENCODINGS, PROFILE, log_time

_LOG = logging.getLogger(__name__)

CHUNK_BYTES: Final = 1 << 18  # 1.7 s of a 1v1 before compression
_QUEUED: Final = 20_000  # messages, about a minute of 1v1
_LOOK_SECONDS: Final = TICK_SECONDS  # between two looks at the queue
_AT_ONCE: Final = 32  # messages, 0.2 ms, before the thread that plays gets its turn
_BACKLOG_PART: Final = 16  # of a long queue this part is written at once, so that none gets lost
_PAUSE_SECONDS: Final = 0.001  # between two turns where more messages wait
_CLOSE_SECONDS: Final = 10.0
_FRAMES: Final = 1 << 32  # sequences are unsigned

_PART_BYTES: Final = 1 << 28  # size from which a recording goes on in another file: about two hours of 1v1
PARTS: Final = 16  # files of one recording that are kept; the oldest goes first


class RecordingError(ValueError):
    """A recording cannot be begun, or read; the message names the file."""


def parts_of(path: Path) -> list[Path]:
    """Return the files in which a recording goes on, in that order; see `Recorder`."""
    form = re.compile(re.escape(path.stem) + r"\.part(\d+)" + re.escape(path.suffix))
    found = {
        int(match[1]): one
        for one in path.parent.glob(glob.escape(path.stem) + ".part*")
        if (match := form.fullmatch(one.name))
    }
    return [found[number] for number in sorted(found)]


class Recorder:
    """Writes messages to a file, in a thread of its own; never to one that is there already.

    Args:
        path: The file; its folder has to be there. `RecordingError` says why it cannot be made.
        about: What is worth knowing of the match: JSON values.
        beside: Whether `name-2.mcap` is written, or the next free number, where the file is there already.
        part_bytes: Size from which it goes on in `name.part2.mcap` and so on, of which `parts` are kept.
        prepare: Called in the writer thread with each message's topic, frame and content as they are put;
            gives further messages to write, as `(topic, content)`.
    """

    def __init__(
        self,
        path: str | Path,
        about: Mapping[str, Any] | None = None,
        *,
        beside: bool = False,
        part_bytes: int = _PART_BYTES,
        parts: int = PARTS,
        prepare: Callable[[str, int, bytes], list[tuple[str, bytes]]] | None = None,
    ) -> None:
        self.path = Path(path)  # of the file being written
        self.dropped = 0  # messages that found the queue full
        self.patience = 0.0  # s that `put` waits then; for a caller whom no clock drives
        self.failed: str | None = None  # why the recording ended early
        self._part_bytes, self._parts, self._prepare = part_bytes, parts, prepare
        self._written: list[Path] = []
        self._numbers = count(2)
        self._kept: list[tuple[str, Mapping[str, str]]] = []  # metadata, of every part
        self._head: dict[str, tuple[int, int, bytes]] = {}  # by topic: what every part begins with
        self._queue: deque[Any] = deque()
        self._closed = threading.Event()
        self._open(chain([self.path], _named(self.path, "-", count(2)) if beside else ()))
        self._first = self.path
        if about is not None:
            self.tell(ABOUT, {name: json.dumps(value) for name, value in about.items()})
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def is_empty(self) -> bool:
        """Tell whether no message has been written, after `close`."""
        return not self._channels and len(self._written) == 1

    def put(self, topic: str, frame: int, content: bytes, head: bool = False) -> None:
        """Have a message of a topic and a frame written; `head`: at the beginning of every part, too."""
        if self.failed is not None:
            return
        if len(self._queue) >= _QUEUED and not self._wait_for_room():
            self.dropped += 1
            return
        # Nobody is woken: a system call would cost the tick more than all the rest.
        self._queue.append((topic, frame, time.time_ns(), content, head))

    def _wait_for_room(self) -> bool:
        """Wait until the queue has room, as long as `patience` says, and once only where it has none then."""
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
            if len(self._queue) < _QUEUED:
                return True
        self.patience = 0.0
        return False

    def tell(self, name: str, values: Mapping[str, str]) -> None:
        """Have metadata written, in every part."""
        self._queue.append((name, values))

    def close(self) -> None:
        """Write what is left, and the index; never raises."""
        self._closed.set()
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            _LOG.warning("%s is not finished after %g s: its index is missing", self.path, _CLOSE_SECONDS)
        if self.dropped:
            _LOG.warning("%d messages are missing in %s: the disk was too slow", self.dropped, self.path)

    # --- in the writer thread --------------------------------------------------------------------

    def _run(self) -> None:
        closed = False
        while not closed:
            # While messages are written, Python's lock is held and the thread that plays waits for it.
            closed = self._closed.wait(_PAUSE_SECONDS if self._queue else _LOOK_SECONDS)
            turn = max(_AT_ONCE, len(self._queue) // _BACKLOG_PART)
            while self._queue and (closed or turn > 0):
                turn -= 1
                item = self._queue.popleft()
                if self.failed is not None:
                    continue
                try:
                    self._take(item)
                except Exception as error:  # a full disk, or a folder that has gone: the match goes on
                    self._fail(error)
        try:
            if self.failed is None:
                self._writer.finish()  # type: ignore[no-untyped-call]
            self._stream.close()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self.failed is None:
            self.failed = str(error) or type(error).__name__
            _LOG.warning("the recording %s ends here: %s", self.path, self.failed)

    def _take(self, item: Any) -> None:
        if len(item) == 2:
            self._kept.append(item)
            self._writer.add_metadata(item[0], dict(item[1]))
            return
        topic, frame, now, content, head = item
        if head:
            self._head[topic] = (frame, now, content)
        self._write(topic, frame, now, content)
        if self._prepare is not None:
            for name, made in self._prepare(topic, frame, content):
                self._write(name, frame, now, made)
        if self._stream.written >= self._part_bytes:
            self._next_part()

    def _write(self, topic: str, frame: int, now: int, content: bytes) -> None:
        channel = self._channels.get(topic)
        if channel is None:
            encoding = ENCODINGS[topic.rpartition("/")[2]]
            channel = self._channels[topic] = self._writer.register_channel(topic, encoding, 0)
        self._writer.add_message(channel, max(0, log_time(frame)), content, now, frame % _FRAMES)

    def _open(self, names: Iterable[Path]) -> None:
        """Begin the first of these files that is not there yet."""
        try:
            for self.path in names:
                with suppress(FileExistsError):
                    self._stream = _Stream(self.path)
                    break
            else:
                raise RecordingError(f"{self.path} is there already, expected a new file")
            self._written.append(self.path)
            self._channels: dict[str, int] = {}
            # Here, since a bot that records nothing does without mcap and what it brings.
            from mcap.writer import Writer

            self._writer = Writer(self._stream, CHUNK_BYTES)  # type: ignore[arg-type]
            self._writer.start(PROFILE)
        except OSError as error:
            if self.path in self._written:  # it was made, and nothing can be written to it
                self._stream.close()
                self._written.remove(self.path)
                self.path.unlink(missing_ok=True)
            raise RecordingError(f"cannot record to {self.path}: {error}") from error

    def _next_part(self) -> None:
        self._writer.finish()  # type: ignore[no-untyped-call]
        self._stream.close()
        self._open(_named(self._first, ".part", self._numbers))
        _LOG.info("the recording goes on in %s", self.path)
        for name, values in self._kept:
            self._writer.add_metadata(name, dict(values))
        for topic, message in self._head.items():
            self._write(topic, *message)
        while len(self._written) > self._parts:
            oldest = self._written.pop(0)
            _LOG.warning("%s is removed: a recording keeps %d files", oldest, self._parts)
            oldest.unlink(missing_ok=True)


def _named(path: Path, mark: str, numbers: Iterable[int]) -> Iterable[Path]:
    return (path.with_stem(f"{path.stem}{mark}{number}") for number in numbers)


class _Stream:
    """A new file whose contents are the operating system's once they are written: a kill loses nothing."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self.written = 0

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self.written += len(data)
        return len(data)

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self._file.close()
