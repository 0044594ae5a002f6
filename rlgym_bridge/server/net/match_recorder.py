"""Record a hosted match: its configuration, packets and accepted inputs."""

import json
from collections.abc import Callable, Mapping
from typing import Protocol

from rlbot import flat

from rlgym_bridge.recording.mcap.channels import (
    COMMS,
    DRAWINGS,
    FIELD_INFO,
    INPUT,
    INPUTS,
    MATCH_CONFIGURATION,
    PACKETS,
    UNREPEATABLE,
)
from rlgym_bridge.server.framing import framed
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.simulated_match import Match

TakeInput = Callable[[int, flat.ControllerState], bool]


class Sink(Protocol):
    """Takes the messages of matches: a `Recorder`, or a `Watch`."""

    def put(self, topic: str, frame: int, content: bytes, head: bool = False) -> None:
        """Take a message; see `Recorder.put`."""

    def tell(self, name: str, values: Mapping[str, str]) -> None:
        """Take metadata."""


class MatchRecorder:
    """Writes a match into a recording, or shows it to those who watch."""

    def __init__(self, recorder: Sink, match: Match) -> None:
        self._put, self._tell = recorder.put, recorder.tell
        self._match = match

    def begin(self, configuration: flat.MatchConfiguration) -> None:
        """Record field info and match configuration, without the commands and folders of bots."""
        self._put(FIELD_INFO, 0, framed(field_info())[2:], True)
        copy = flat.CorePacket.unpack(flat.CorePacket(configuration).pack()).message
        assert isinstance(copy, flat.MatchConfiguration)  # what was packed
        for agent in (
            *(player.variety for player in copy.player_configurations),
            *copy.script_configurations,
        ):
            if isinstance(agent, flat.CustomBot | flat.ScriptConfiguration):
                agent.environment, agent.root_dir, agent.run_command = [], "", ""
        self._put(MATCH_CONFIGURATION, 0, framed(copy)[2:], True)

    def end(self, unrepeatable: tuple[str, ...]) -> None:
        """Record why the match may go otherwise when it is played again; empty where nothing says so."""
        self._tell(UNREPEATABLE, {"unrepeatable": json.dumps(unrepeatable)})

    def packet(self, payload: bytes) -> None:
        """Record the packet of this frame."""
        self._put(PACKETS, self._match.frame, payload)

    def comm(self, payload: bytes) -> None:
        """Record a message between bots."""
        self._put(COMMS, self._match.frame, payload)

    def drawing(self, content: bytes) -> None:
        """Record what a client drew."""
        self._put(DRAWINGS, self._match.frame, content)

    def inputs(self, take: TakeInput) -> TakeInput:
        """Return a function that passes inputs to `take`, and records the valid ones."""

        def noting(index: int, controls: flat.ControllerState) -> bool:
            if not take(index, controls):
                return False
            row = (
                controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll,
                controls.jump, controls.boost, controls.handbrake,
            )  # fmt: skip
            self._put(INPUTS, self._match.frame, INPUT.pack(index, *row))
            return True

        return noting
