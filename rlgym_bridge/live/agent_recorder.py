"""What an agent writes into a recording: what came, what it decided, what it sent."""

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
"""Environment variable with the file to record to, `.mcap`, or a folder in which the bot names the file."""

_LOG = logging.getLogger("rlgym_bridge.agent")


class AgentRecorder:
    """One agent's part of a recording.

    Args:
        recorder: Where it goes.
        agent_id: Whose.
    """

    def __init__(self, recorder: Recorder, agent_id: str) -> None:
        self._recorder = recorder
        self._packets, self._inputs, self._decisions = (
            agent_topic(agent_id, what) for what in ("packets", "inputs", "decisions")
        )
        self._frame = 0

    def heard(self, content: object, message: bytes) -> None:
        """Write down a message of the server, if it is one of those that tell of the match."""
        if isinstance(content, flat.GamePacket):
            self._frame = content.match_info.frame_num
            self._recorder.put(self._packets, self._frame, message)
        elif isinstance(content, flat.FieldInfo):
            self._recorder.put(FIELD_INFO, 0, message, True)
        elif isinstance(content, flat.MatchConfiguration):
            self._recorder.put(MATCH_CONFIGURATION, 0, message, True)

    def sent(self, frame: int, index: int, row: np.ndarray) -> None:
        """Write down an input that answers a frame: `channels.INPUT`, row `(8,)` float32."""
        self._recorder.put(self._inputs, frame, index.to_bytes(4, "little") + row.tobytes())

    def decided(self, frame: int, seats: Sequence[int], episode: Episode, acted: bool) -> None:
        """Write down what was seen, chosen where the episode goes on, and said of the last step."""
        cars, said = len(seats), episode.report
        nothing = np.zeros((cars, 0))
        shown, chosen = episode.observation, episode.actions if acted else None
        rewards, terminated, truncated = (
            np.array([one.get(agent, np.nan) for agent in episode.agents], np.float32)
            for one in (said.rewards, said.terminated, said.truncated)
        )
        decision = Decision(
            frame,
            np.array(seats, np.int32),
            nothing if shown is None else shown.reshape(cars, -1),
            nothing if chosen is None else chosen.reshape(cars, -1),
            rewards, terminated, truncated,
        )  # fmt: skip
        self._recorder.put(self._decisions, frame, decision.to_bytes())

    def close(self) -> None:
        """Finish the file."""
        self._recorder.close()


def begin_recording(agent_id: str, policy: str | Path, record: str | Path | None) -> AgentRecorder | None:
    """Begin an agent's recording, if one is asked for; a file that cannot be made is logged.

    Args:
        agent_id: Whose.
        policy: Its policy folder, or a name; the folder's `policy.json` is kept in the recording.
        record: File (`.mcap`) or folder; `RLGYM_BRIDGE_RECORD` goes before it. A file that is there already
            stays as it is, and another is written beside it.
    """
    named = os.environ.get(RECORD_VARIABLE) or record
    if not named:
        return None
    manifest = Path(policy) / "policy.json"
    try:
        path = _file(Path(named), agent_id)
        recorder = Recorder(path, about(agent_id), beside=True, prepare=state_message)
        if manifest.is_file():
            recorder.tell(POLICY + agent_id, {"policy.json": manifest.read_text(encoding="utf-8")})
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        _LOG.warning("nothing is recorded: %s", error)
        return None
    if recorder.path != path:
        _LOG.warning("%s is there already: recording to %s", path, recorder.path)
    else:
        _LOG.info("recording to %s", path)
    return AgentRecorder(recorder, agent_id)


def _file(named: Path, agent_id: str) -> Path:
    """Return the file that a file or folder stands for, in a folder that is there.

    Raises:
        OSError: The folder cannot be made.
        RecordingError: It is a file, but no recording.
    """
    path = named.resolve()  # a link to a file that has yet to be made stays
    if path.is_dir() or path.suffix != ".mcap":
        if path.exists() and not path.is_dir():
            raise RecordingError(
                f"{named} is a file, expected a folder or a file whose name ends with .mcap "
                f"({RECORD_VARIABLE}, or what the bot was told to record to)"
            )
        name = "".join(one if one.isalnum() or one in "-_." else "-" for one in agent_id)
        path = path / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.mcap"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def about(agent_id: str) -> dict[str, Any]:
    """Return what an agent's recording says of itself."""
    return {"by": "agent", "agent_id": agent_id}
