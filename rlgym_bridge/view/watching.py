"""Show matches while they are played: `python -m rlgym_bridge.view.watching [window|web]`.

Reads what `watch` sends on its standard input, and ends with it, or with the window.
"""

import os
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import BinaryIO, Final

from rlbot import flat

from rlgym_bridge.recording.mcap.channels import DRAWINGS, FIELD_INFO, PACKETS
from rlgym_bridge.view.display import has_display, open_browser
from rlgym_bridge.view.watch import HEAD, READY, TOPICS

_WAIT_SECONDS: Final = 0.2
_KEPT: Final = 1024  # messages that were read and are not shown yet

Message = tuple[str, int, bytes]


class _Inbox:
    """Messages as they come, read in a thread so that the sender never waits for the viewer."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._messages: deque[Message] = deque(maxlen=_KEPT)
        self._came = threading.Event()
        self.over = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while len(head := self._stream.read(HEAD.size)) == HEAD.size:
            topic, frame, size = HEAD.unpack(head)
            self._messages.append((TOPICS[topic], frame, self._stream.read(size)))
            self._came.set()
        self.over = True
        self._came.set()

    def take(self) -> list[Message]:
        """Return what has come, of packets the newest alone; waits a little where nothing has."""
        self._came.wait(_WAIT_SECONDS)
        self._came.clear()
        found = []
        while self._messages:
            found.append(self._messages.popleft())
        newest = max((place for place, one in enumerate(found) if one[0] == PACKETS), default=-1)
        return [one for place, one in enumerate(found) if one[0] != PACKETS or place == newest]


def show(stream: BinaryIO, where: str) -> None:
    """Show the messages that come, until none comes any more or the window is closed; see `Watch`."""
    from rlgym_bridge.view.live_scene import LiveScene
    from rlgym_bridge.view.viewer import viewer

    in_window = where == "window" or (has_display() and where != "web")
    with viewer(in_window) as (address, proxy, process):
        if not in_window and has_display():
            open_browser(address)
        print(READY + address, flush=True)
        inbox, scene, field_info = _Inbox(stream), None, flat.FieldInfo()
        while process.poll() is None and not inbox.over:
            for topic, _, content in inbox.take():
                if topic == DRAWINGS:
                    if scene is not None:
                        scene.draw(content)
                    continue
                message = flat.CorePacket.unpack(content).message
                if topic == FIELD_INFO and isinstance(message, flat.FieldInfo):
                    field_info = message
                elif isinstance(message, flat.MatchConfiguration):
                    if scene is not None:
                        scene.close()
                    scene = LiveScene(proxy, field_info, message)
                elif isinstance(message, flat.GamePacket) and scene is not None:
                    scene.show(message)
        if scene is not None:
            scene.close()


def main() -> int:
    """Show matches; a line says why it cannot be."""
    with suppress(AttributeError, OSError):  # the match comes first; Windows is told at the start
        os.nice(5)
    try:
        show(sys.stdin.buffer, sys.argv[1] if len(sys.argv) > 1 else "")
    except (ImportError, OSError) as error:
        print(error, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
