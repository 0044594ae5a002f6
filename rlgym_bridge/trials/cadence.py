"""Measure how many packets a server sends per second of game time."""

from dataclasses import dataclass, field
from typing import Final

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.trials.findings import Finding
from rlgym_bridge.trials.frames import Frame

_GAP_TICKS: Final = 120  # a longer step is a jump of the counter, as one back is


@dataclass
class Cadence:
    """Counts packets and frames while the ball is in play."""

    _before: Frame | None = None
    _steps: dict[int, int] = field(default_factory=dict)

    def see(self, frame: Frame) -> None:
        """Count a packet."""
        before, self._before = self._before, frame
        if before is not None and before.playing and frame.playing:
            step = frame.number - before.number
            self._steps[step] = self._steps.get(step, 0) + 1

    def judge(self) -> Finding:
        """Find the packets in a second of game time."""
        forward = {step: count for step, count in self._steps.items() if 0 < step <= _GAP_TICKS}
        packets = sum(forward.values())
        jumps = sum(self._steps.values()) - packets
        if packets < TICKS_PER_SECOND:
            why = f"; {jumps} jumps of frame_num" if jumps else ""
            return Finding("packets_per_second", None, f"less than a second of play was seen{why}")
        steps = ", ".join(f"{count} times {step}" for step, count in sorted(forward.items()))
        evidence = f"frame_num advances by: {steps}" + (f"; {jumps} jumps left out" if jumps else "")
        frames = sum(step * count for step, count in forward.items())
        return Finding("packets_per_second", f"{packets / frames * TICKS_PER_SECOND:.1f}", evidence)
