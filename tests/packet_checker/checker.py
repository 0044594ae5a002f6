"""The checker as a whole: packet by packet through all its parts."""

from typing import Final

from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from tests.packet_checker.ball import Ball
from tests.packet_checker.boost import Boost
from tests.packet_checker.cars import Cars
from tests.packet_checker.clock import Clock
from tests.packet_checker.demolitions import Demolitions
from tests.packet_checker.findings import Findings, Step
from tests.packet_checker.jumps import Jumps
from tests.packet_checker.limits import IDLE_PHASES, MOVING_PHASES, Rules
from tests.packet_checker.pads import Pads
from tests.packet_checker.phases import Phases
from tests.packet_checker.scores import Scores
from tests.packet_checker.touches import Touches

_SHOWN: Final = 20  # sentences in the error


class PacketChecker:
    """Follows the packets of one match and collects what is wrong with them.

    Attributes:
        lossy: Packets may be missing between those that are seen: frame numbers may jump, and what has to
            follow from the packet before is held to bounds only. May be switched at any time.
    """

    def __init__(
        self,
        field: flat.FieldInfo | None = None,
        dialect: ProtocolVariant | None = None,
        lossy: bool = False,
        rules: Rules | None = None,
    ) -> None:
        """Begin before the first packet.

        Args:
            field: Where the pads are; the standard field when None.
            dialect: What is known of the server; of a point that it leaves open, every value is allowed.
                What the match server does when None.
            lossy: See the class.
            rules: What mutators have changed; nothing when None.
        """
        dialect = ProtocolVariant().complete() if dialect is None else dialect
        rules = rules or Rules()
        self.lossy = lossy
        self._idle_frames = dialect.get("idle_frames")
        self._findings = Findings()
        self._before: flat.GamePacket | None = None
        self._edited = False
        touches, pads = Touches(), Pads(field, dialect, rules)
        phases = Phases(dialect)
        self._parts = (
            phases, touches, Clock(dialect, phases, touches), Scores(phases, touches), pads, Cars(),
            Demolitions(dialect, rules), Boost(rules, pads), Jumps(dialect, rules), Ball(dialect, rules),
        )  # fmt: skip

    @property
    def violations(self) -> list[str]:
        """Sentences on what is wrong so far."""
        return self._findings.sentences

    def edited(self) -> None:
        """Say that somebody has set cars, ball or pads: in the next packet they may be anywhere."""
        self._edited = True

    def see(self, packet: flat.GamePacket) -> None:
        """Read the next packet."""
        findings = self._findings
        findings.frame = packet.match_info.frame_num
        step = self._step(packet)
        for part in self._parts:
            part.see(step, findings)
        self._before, self._edited = packet, False

    def check(self) -> None:
        """Raise AssertionError with the first 20 violations, where a packet broke a rule."""
        found = self._findings
        if not found.count:
            return
        more = [f"... and {found.count - _SHOWN} more"] if found.count > _SHOWN else []
        lines = "\n".join([*found.sentences[:_SHOWN], *more])
        raise AssertionError(f"{found.count} violations in the packets of a match:\n{lines}")

    def _step(self, packet: flat.GamePacket) -> Step:
        before, phase = self._before, int(packet.match_info.match_phase)
        if before is None:
            return Step(packet, None, phase, -1, 0, (0, 0), False, False, False, False)
        phase_before = int(before.match_info.match_phase)
        frames = packet.match_info.frame_num - before.match_info.frame_num
        idle = phase in IDLE_PHASES or phase_before in IDLE_PHASES
        repeats = idle and self._idle_frames != "counted"
        if not (frames == 1 or (frames == 0 and repeats) or (frames > 1 and self.lossy)):
            expected = str(before.match_info.frame_num + 1)
            if self.lossy:
                expected += " or later"
            if repeats:
                expected += " or the same again"
            self._findings.add("match_info.frame_num", packet.match_info.frame_num, expected)
        entered = phase != phase_before
        reset = entered and phase in (Phase.COUNTDOWN, Phase.KICKOFF)
        steady = frames in (0, 1)
        moved = phase_before in MOVING_PHASES
        if steady or (not entered and frames > 0):
            ticks = (frames, frames) if moved else (0, 0)
        else:
            ticks = (0, max(0, frames))
        return Step(
            packet, before, phase, phase_before, frames, ticks, reset,
            steady and not reset and not self._edited, not (steady or entered or self._edited), steady,
        )  # fmt: skip
