"""Record what the two cars of a script receive and send, as a bot of this project records it."""

from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
from rlbot import flat

from rlgym_bridge.client.agent_connections import message_of
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.live.agent_recorder import AgentRecorder
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.trials.client import PacketScript
from rlgym_bridge.trials.frames import Frame, Reply

_AGENT: Final = "rlgym_bridge/field-test"
_DISK_SECONDS: Final = 30.0  # a slow disk is waited for: the file is what all this is for


class ClientRecording:
    """Writes the messages of one connection, and the inputs that answer them, to a new file.

    Args:
        path: The file (`.mcap`).

    Raises:
        RecordingError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        recorder = Recorder(path, {"by": "agent", "agent_id": _AGENT})
        recorder.patience = _DISK_SECONDS
        self._agent = AgentRecorder(recorder, _AGENT)

    def take(self, payload: bytes) -> None:
        """Record a message of the server."""
        self._agent.record_message(message_of(payload), payload)

    def send(self, reply: Reply, frame: Frame) -> None:
        """Record the inputs that answer a frame."""
        for index, controls in zip(frame.indices, reply.controls, strict=True):
            row = np.array([getattr(controls, name) for name in CONTROL_NAMES], np.float32)
            self._agent.record_input(frame.number, index, row)

    def __enter__(self) -> Self:
        """Return the recording itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Finish the file."""
        self._agent.close()


class RecordedScript:
    """A script whose answers are recorded.

    Args:
        script: Answers the packets.
        recording: Where its inputs go.
    """

    def __init__(self, script: PacketScript, recording: ClientRecording) -> None:
        self._script, self._recording = script, recording

    @property
    def done(self) -> bool:
        """Tell whether the script is done."""
        return self._script.done

    def answer(self, packet: flat.GamePacket) -> tuple[Reply, Frame | None]:
        """Answer a packet as the script does."""
        reply, frame = self._script.answer(packet)
        if frame is not None:
            self._recording.send(reply, frame)
        return reply, frame
