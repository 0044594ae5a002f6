"""Note what a lockstep match depended on beside seed, bots and versions."""

from collections.abc import Callable
from enum import Enum
from typing import Final

from rlgym_bridge.user_input.arguments import count_of

REAL_TIME: Final = ("ticks came by the clock, not when all had answered",)
"""Why no match in real time can be repeated."""


class Deviation(Enum):
    """What may be otherwise in a repetition: a thing to be counted, and a sentence on it."""

    LATE = ("answer", "lockstep went on without {count} of {who}")
    LEFT = ("connection", "{count} of {who} ended")
    BESIDE = ("input", "{count} of {who} came beside its answers")
    STATE = ("state", "{count} of {who} came when no answer of its cars was awaited")


class Repeatability:
    """What in a lockstep match depended on the machine's timing."""

    def __init__(self, tick: Callable[[], int]) -> None:
        """Begin with nothing; `tick` returns the tick of the match."""
        self._tick = tick
        self._noted: dict[tuple[Deviation, str], list[int]] = {}  # how often, and the tick of the first time

    def note(self, who: str, deviation: Deviation) -> None:
        """Count something that a repetition may do otherwise.

        Args:
            who: Whose doing it was.
            deviation: What it was.
        """
        noted = self._noted.setdefault((deviation, who), [0, self._tick()])
        noted[0] += 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what was noted, each with the tick of its first time, in the order of these ticks."""
        made = []
        for (deviation, who), (times, first) in sorted(self._noted.items(), key=lambda item: item[1][1]):
            thing, sentence = deviation.value
            when = f"at tick {first:,}" if times == 1 else f"the first at tick {first:,}"
            made.append(f"{sentence.format(count=count_of(times, thing), who=who)}, {when}")
        return tuple(made)
