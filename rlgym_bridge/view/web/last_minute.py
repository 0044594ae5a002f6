"""Keep the last minute of a match, to be saved as a recording."""

import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.recording.mcap.channels import PACKETS
from rlgym_bridge.recording.mcap.drawable import state_message
from rlgym_bridge.recording.mcap.mcap_writer import Recorder

_TICKS: Final = 60 * TICKS_PER_SECOND
_PATIENCE: Final = 30.0  # seconds that the disk may take


class LastMinute:
    """Takes the messages of a match as a `Recorder` does, and keeps those of the last 7,200 packets.

    `about` is what a recording says of the match, JSON values.
    """

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._about = dict(about)
        self._heads: list[tuple[str, bytes]] = []
        self._ticks: deque[list[tuple[str, int, bytes]]] = deque([[]], maxlen=_TICKS)
        self._lock = threading.Lock()

    def put(self, topic: str, frame: int, content: bytes, head: bool = False) -> None:
        """Take a message; see `Recorder.put`."""
        with self._lock:
            if head:
                self._heads.append((topic, content))
                return
            if topic == PACKETS:
                self._ticks.append([])
            self._ticks[-1].append((topic, frame, content))

    def tell(self, name: str, values: Mapping[str, str]) -> None:
        """Take metadata, which say how the whole match went: nothing of them is kept."""

    def save(self, path: Path) -> Path:
        """Write the last minute into a new file, or one beside it, and return the file.

        Another thread may go on with the match. Raises RecordingError or OSError if it is not written.
        """
        with self._lock:
            heads, ticks = list(self._heads), list(self._ticks)
        recorder = Recorder(path, self._about, beside=True, prepare=state_message)
        recorder.patience = _PATIENCE
        for topic, content in heads:
            recorder.put(topic, 0, content, True)
        for messages in ticks:
            for topic, frame, content in messages:
                recorder.put(topic, frame, content)
        recorder.close()
        if recorder.failed is not None:
            raise OSError(f"{recorder.path} is not whole: {recorder.failed}")
        return recorder.path
