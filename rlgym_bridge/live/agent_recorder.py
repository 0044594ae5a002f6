"""Record what an agent received, decided and sent."""

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.episode import Episode
from rlgym_bridge.recording.mcap import channels
from rlgym_bridge.recording.mcap.drawable import state_message
from rlgym_bridge.recording.mcap.mcap_writer import Recorder, RecordingError

RECORD_VARIABLE: Final = "RLGYM_BRIDGE_RECORD"
"""Name of the environment variable with the `.mcap` file to record to, or a folder for such files."""

_LOG = logging.getLogger("rlgym_bridge.agent")


class AgentRecorder:
    """Writes one agent's messages and decisions into a recording."""

    def __init__(self, recorder: Recorder, agent_id: str) -> None:
        self._recorder = recorder
        self._packets, self._inputs, self._decisions = (
            channels.agent_topic(agent_id, what) for what in ("packets", "inputs", "decisions")
        )
        self._frame = 0

    def record_message(self, content: object, message: bytes) -> None:
        """Record a message of the server, if it is a packet, the field info or the match configuration."""
        if isinstance(content, flat.GamePacket):
            self._frame = content.match_info.frame_num
            self._recorder.put(self._packets, self._frame, message)
        elif isinstance(content, flat.FieldInfo):
            self._recorder.put(channels.FIELD_INFO, 0, message, True)
        elif isinstance(content, flat.MatchConfiguration):
            self._recorder.put(channels.MATCH_CONFIGURATION, 0, message, True)

    def record_input(self, frame: int, index: int, row: np.ndarray) -> None:
        """Record the control vector `(8,)` float32 of a car, by its place in packets, to answer a frame."""
        self._recorder.put(self._inputs, frame, index.to_bytes(4, "little") + row.tobytes())

    def record_decision(self, frame: int, cars: Sequence[int], episode: Episode, acted: bool) -> None:
        """Record a decision on a frame: observations, actions, and the rewards and ends of the step before.

        `cars` are places in the state. No action was chosen (`acted`) where a goal has ended the episode.
        """
        report, nothing = episode.report, np.zeros((len(cars), 0))
        observations, actions = episode.observation, episode.actions if acted else None
        rewards, terminated, truncated = (
            np.array([values.get(agent, np.nan) for agent in episode.agents], np.float32)
            for values in (report.rewards, report.terminated, report.truncated)
        )
        decision = channels.Decision(
            frame,
            np.array(cars, np.int32),
            nothing if observations is None else observations.reshape(len(cars), -1),
            nothing if actions is None else actions.reshape(len(cars), -1),
            rewards, terminated, truncated,
        )  # fmt: skip
        self._recorder.put(self._decisions, frame, decision.to_bytes())

    def close(self) -> None:
        """Finish the file."""
        self._recorder.close()


def begin_recording(agent_id: str, policy: str | Path, record: str | Path | None) -> AgentRecorder | None:
    """Begin an agent's recording to a `.mcap` file or a folder, if one is requested; a failure is logged.

    `RLGYM_BRIDGE_RECORD` stands above `record`. An existing file is kept, and another is written beside
    it. If `policy` is a folder, its `policy.json` is stored in the recording.
    """
    destination = os.environ.get(RECORD_VARIABLE) or record
    if not destination:
        return None
    manifest = Path(policy) / "policy.json"
    try:
        path = _choose_file(Path(destination), agent_id)
        about = {"by": "agent", "agent_id": agent_id}
        recorder = Recorder(path, about, beside=True, prepare=state_message)
        if manifest.is_file():
            recorder.tell(channels.POLICY + agent_id, {"policy.json": manifest.read_text(encoding="utf-8")})
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        _LOG.warning("nothing is recorded: %s", error)
        return None
    if recorder.path != path:
        _LOG.warning("%s exists already: recording to %s", path, recorder.path)
    else:
        _LOG.info("recording to %s", path)
    return AgentRecorder(recorder, agent_id)


def _choose_file(destination: Path, agent_id: str) -> Path:
    """Return the file to record to, in a folder that exists; RecordingError for a file of another kind."""
    path = destination.resolve()  # a link to a file that does not exist yet is followed
    if path.is_dir() or path.suffix != ".mcap":
        if path.exists() and not path.is_dir():
            raise RecordingError(
                f"{destination} is a file, expected a folder or a file whose name ends with .mcap "
                f"({RECORD_VARIABLE}, or the argument record of the bot)"
            )
        name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in agent_id)
        path = path / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.mcap"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
