"""What the server writes into a recording: the match, its packets, the inputs it took."""

from collections.abc import Callable

from rlbot import flat

from rlgym_bridge.recording.mcap.channels import FIELD_INFO, INPUT, INPUTS, MATCH_CONFIGURATION, PACKETS
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.server.packer import field_info
from rlgym_bridge.server.simulated_match import Match
from rlgym_bridge.server.wire import framed

TakeInput = Callable[[int, flat.ControllerState], bool]


class MatchRecorder:
    """Puts a match into a recording.

    Args:
        recorder: Where it goes.
        match: The match.
    """

    def __init__(self, recorder: Recorder, match: Match) -> None:
        self._put = recorder.put
        self._match = match

    def begin(self, configuration: flat.MatchConfiguration) -> None:
        """Write down what every client is told first, but for how and where the bots are started."""
        self._put(FIELD_INFO, 0, framed(field_info())[2:], True)
        told = flat.CorePacket.unpack(flat.CorePacket(configuration).pack()).message
        assert isinstance(told, flat.MatchConfiguration)  # what was packed
        for one in (*(player.variety for player in told.player_configurations), *told.script_configurations):
            if isinstance(one, flat.CustomBot | flat.ScriptConfiguration):
                one.environment, one.root_dir, one.run_command = [], "", ""
        self._put(MATCH_CONFIGURATION, 0, framed(told)[2:], True)

    def packet(self, payload: bytes) -> None:
        """Write down the packet of this frame."""
        self._put(PACKETS, self._match.frame, payload)

    def inputs(self, take: TakeInput) -> TakeInput:
        """Return what takes inputs as `take` does, and writes down those that are valid."""

        def noting(index: int, controls: flat.ControllerState) -> bool:
            if not take(index, controls):
                return False
            one = controls
            row = (one.throttle, one.steer, one.pitch, one.yaw, one.roll, one.jump, one.boost, one.handbrake)
            self._put(INPUTS, self._match.frame, INPUT.pack(index, *row))
            return True

        return noting
