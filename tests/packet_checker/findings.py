"""Violations that were found, and the step between two packets."""

from dataclasses import dataclass, field
from typing import Final

from rlbot import flat

_KEPT: Final = 1000  # findings; one fault can show in every packet that follows


@dataclass
class Findings:
    """Violations as sentences, the first of them, and how many there were."""

    frame: int = 0
    sentences: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, name: str, came: object, expected: str) -> None:
        """Note a violation."""
        self.count += 1
        if len(self.sentences) < _KEPT:
            self.sentences.append(f"frame {self.frame}: {name} is {came}, expected {expected}")


@dataclass(slots=True)
class Step:
    """A packet and the one before it.

    Attributes:
        packet: The packet.
        before: The packet before; None at the first one.
        phase: Phase of the packet.
        phase_before: Phase of the packet before, -1 at the first one.
        frames: From the packet before.
        ticks: Least and most ticks in which timers ran.
        reset: Countdown or Kickoff has just begun: cars, ball and pads are new.
        followed: Cars, ball and pads have to follow from the packet before by one tick or by none: neither
            reset, nor edited, nor packets lost between.
        bounded: Packets were lost in the middle of a phase, and nobody has edited: cars and pads have to
            follow by `ticks`.
        exact: Phase, clock and score have to follow from the packet before by one tick.
    """

    packet: flat.GamePacket
    before: flat.GamePacket | None
    phase: int
    phase_before: int
    frames: int
    ticks: tuple[int, int]
    reset: bool
    followed: bool
    bounded: bool
    exact: bool

    def before_or_now_demolished(self, slot: int) -> bool:
        """Tell whether a car is away in one of the two packets."""
        if self.before is None or self.packet.players[slot].demolished_timeout >= 0.0:
            return True
        return slot >= len(self.before.players) or self.before.players[slot].demolished_timeout >= 0.0


def shown(value: float) -> str:
    """Return a number with as many digits as matter."""
    return f"{value:.6g}"
