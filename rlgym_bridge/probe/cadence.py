"""How packets come: how many in a second of game, and whether frames are left out."""

from dataclasses import dataclass, field

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.probe.findings import Finding
from rlgym_bridge.probe.frames import Frame


@dataclass
class Cadence:
    """Counts packets and frames while the ball is in play."""

    _before: Frame | None = None
    _steps: dict[int, int] = field(default_factory=dict)

    def see(self, frame: Frame) -> None:
        """Take in a packet."""
        before, self._before = self._before, frame
        if before is not None and before.playing and frame.playing:
            step = frame.number - before.number
            self._steps[step] = self._steps.get(step, 0) + 1

    def judge(self) -> Finding:
        """Settle the packets in a second of game time."""
        packets = sum(self._steps.values())
        frames = sum(step * count for step, count in self._steps.items())
        if packets < TICKS_PER_SECOND or frames <= 0:
            return Finding("packets_per_second", None, "less than a second of play was seen")
        steps = ", ".join(f"{count} times {step}" for step, count in sorted(self._steps.items()))
        rate = packets / frames * TICKS_PER_SECOND
        return Finding("packets_per_second", f"{rate:.1f}", f"frame_num goes on by: {steps}")
