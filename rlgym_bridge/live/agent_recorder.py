"""Record what an agent received, decided and sent."""

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.episode import Episode
from rlgym_bridge.recording.mcap.channels import (
    FIELD_INFO,
    MATCH_CONFIGURATION,
    POLICY,
    Decision,
    agent_topic,
)
from rlgym_bridge.recording.mcap.drawable import state_message
from rlgym_bridge.recording.mcap.mcap_writer import Recorder, RecordingError

RECORD_VARIABLE: Final = "RLGYM_BRIDGE_RECORD"
"""Name of the environment variable with the `.mcap` file to record to, or a folder for such files."""

_LOG = logging.getLogger("rlgym_bridge.agent")


class AgentRecorder:
    """Writes one agent's messages and decisions into a recording.

    Args:
        recorder: Writes the file.
        agent_id: The agent's id.
    """

    def __init__(self, recorder: Recorder, agent_id: str) -> None:
        self._recorder = recorder
        self._packets, self._inputs, self._decisions = (
            agent_topic(agent_id, what) for what in ("packets", "inputs", "decisions")
        )
        self._frame = 0

    def record_message(self, content: object, message: bytes) -> None:
        """Record a message of the server, if it is a packet, the field info or the match configuration."""
        if isinstance(content, flat.GamePacket):
            self._frame = content.match_info.frame_num
            self._recorder.put(self._packets, self._frame, message)
        elif isinstance(content, flat.FieldInfo):
            self._recorder.put(FIELD_INFO, 0, message, True)
        elif isinstance(content, flat.MatchConfiguration):
            self._recorder.put(MATCH_CONFIGURATION, 0, message, True)

    def record_input(self, frame: int, index: int, row: np.ndarray) -> None:
        """Record the input that answers a frame.

        Args:
            frame: Number of the frame.
            index: Index of the car in the packet.
            row: `(8,)` float32 control row.
        """
        self._recorder.put(self._inputs, frame, index.to_bytes(4, "little") + row.tobytes())

    def record_decision(self, frame: int, cars: Sequence[int], episode: Episode, acted: bool) -> None:
        """Record a decision: observations, actions, and the rewards and ends of the step before.

        Args:
            frame: Number of the frame that was decided on.
            cars: The agent's cars in the state.
            episode: The episode, after the decision.
            acted: Whether actions were chosen; they were not where a goal has ended the episode.
        """
        report, nothing = episode.report, np.zeros((len(cars), 0))
        observations, actions = episode.observation, episode.actions if acted else None
        rewards, terminated, truncated = (
            np.array([values.get(agent, np.nan) for agent in episode.agents], np.float32)
            for values in (report.rewards, report.terminated, report.truncated)
        )
        decision = Decision(
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
    """Begin an agent's recording, if one is requested; a file that cannot be created is logged.

    Args:
        agent_id: The agent's id.
        policy: Its policy folder, or a name; the folder's `policy.json` is stored in the recording.
        record: File (`.mcap`) or folder; `RLGYM_BRIDGE_RECORD` takes precedence. An existing file is kept,
            and another is written beside it.

    Returns:
        The recorder; None where no recording is requested or possible.
    """
    destination = os.environ.get(RECORD_VARIABLE) or record
    if not destination:
        return None
    manifest = Path(policy) / "policy.json"
    try:
        path = _choose_file(Path(destination), agent_id)
        recorder = Recorder(path, describe_source(agent_id), beside=True, prepare=state_message)
        if manifest.is_file():
            recorder.tell(POLICY + agent_id, {"policy.json": manifest.read_text(encoding="utf-8")})
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        _LOG.warning("nothing is recorded: %s", error)
        return None
    if recorder.path != path:
        _LOG.warning("%s exists already: recording to %s", path, recorder.path)
    else:
        _LOG.info("recording to %s", path)
    return AgentRecorder(recorder, agent_id)


def _choose_file(destination: Path, agent_id: str) -> Path:
    """Return the file to record to, in a folder that exists.

    Raises:
        OSError: The folder cannot be created.
        RecordingError: The destination is a file whose name does not end with .mcap.
    """
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


def describe_source(agent_id: str) -> dict[str, Any]:
    """Return the metadata of an agent's recording."""
    return {"by": "agent", "agent_id": agent_id}
