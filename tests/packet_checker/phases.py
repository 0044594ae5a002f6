"""Phases: which follow which, and how long they last."""

from collections.abc import Mapping
from typing import Final

from rlgym_bridge.game import (
    COUNTDOWN_TICKS,
    GOAL_SCORED_TICKS,
    REPLAY_TICKS,
    Phase,
)
from rlgym_bridge.protocol_variant import ProtocolVariant
from tests.packet_checker.findings import Findings, Step
from tests.packet_checker.limits import KICKOFF_TICKS

NAMES: Final = {
    number: name.title().replace("_", "") for name, number in vars(Phase).items() if name.isupper()
}

_NEXT: Final[Mapping[int, frozenset[int]]] = {
    Phase.INACTIVE: frozenset(NAMES),
    Phase.COUNTDOWN: frozenset({Phase.KICKOFF}),
    Phase.KICKOFF: frozenset({Phase.ACTIVE, Phase.GOAL_SCORED}),
    Phase.ACTIVE: frozenset({Phase.GOAL_SCORED, Phase.COUNTDOWN}),
    Phase.GOAL_SCORED: frozenset({Phase.REPLAY, Phase.COUNTDOWN}),
    Phase.REPLAY: frozenset({Phase.COUNTDOWN}),
    Phase.PAUSED: frozenset(NAMES),
    Phase.ENDED: frozenset(),
}
"""Phases that may follow a phase; beside these every phase may be paused, and ended from outside."""

_ALWAYS: Final = frozenset({Phase.PAUSED, Phase.ENDED})

_LENGTH: Final = {Phase.COUNTDOWN: COUNTDOWN_TICKS, Phase.GOAL_SCORED: GOAL_SCORED_TICKS}
"""Ticks that a phase lasts, no more and no less."""


class Phases:
    """Follows the phase.

    Attributes:
        ticks: Packets since this phase began, frames where some were lost.
    """

    def __init__(self, dialect: ProtocolVariant) -> None:
        self.ticks = 0
        self._kickoff_ends = dialect.get("kickoff_ends")
        self._begun = False  # the beginning of this phase was seen

    @property
    def active_means_touched(self) -> bool:
        """Tell whether Active can only begin with a touch."""
        return self._kickoff_ends == "at_touch"

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        phase, before = step.phase, step.phase_before
        if before < 0:
            self._begun = step.packet.match_info.seconds_elapsed == 0.0
            return
        self.ticks += max(1, step.frames)
        if phase == before:
            self._stays(step, findings)
            return
        self._changes(step, findings)
        self.ticks = 0
        self._begun = step.exact and before != Phase.PAUSED

    def _stays(self, step: Step, findings: Findings) -> None:
        phase = step.phase
        most = _LENGTH.get(phase, 0) or (REPLAY_TICKS if phase == Phase.REPLAY else 0)
        if phase == Phase.KICKOFF and self._kickoff_ends == "after_two_seconds":
            most = KICKOFF_TICKS
        if most and self.ticks >= most:
            findings.add(
                "match_info.match_phase",
                f"{NAMES[phase]} after {self.ticks} ticks",
                f"it to end after {most}",
            )

    def _changes(self, step: Step, findings: Findings) -> None:
        phase, before = step.phase, step.phase_before
        name, came = "match_info.match_phase", f"{NAMES[phase]} after {NAMES[before]}"
        allowed = _NEXT[before] | _ALWAYS
        if before == Phase.ENDED:
            findings.add(name, came, "Ended for good")
        elif not step.exact:
            return
        elif phase not in allowed:
            findings.add(name, came, " or ".join(sorted(NAMES[one] for one in allowed)))
        elif (
            (length := _LENGTH.get(before)) and self._begun and phase not in _ALWAYS and self.ticks != length
        ):
            findings.add(name, f"{came} of {self.ticks} ticks", f"one of {length}")
        elif length and phase == Phase.ENDED and before == Phase.GOAL_SCORED and self.ticks > length:
            findings.add(name, f"{came} of {self.ticks} ticks", f"one of {length} at most")
        elif (before, phase) == (Phase.ACTIVE, Phase.COUNTDOWN):
            info, earlier = step.packet.match_info, step.before and step.before.match_info
            if not info.is_overtime or (earlier and earlier.is_overtime):
                findings.add(name, came, "GoalScored or Ended: only overtime begins without a goal")
