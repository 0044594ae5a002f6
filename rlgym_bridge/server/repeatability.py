"""Note what a lockstep match depended on besides seed, bots and versions."""

from collections.abc import Callable
from enum import Enum
from typing import Final

from rlgym_bridge.user_input.arguments import count_of

REAL_TIME: Final = ("ticks came by the clock, not when all had answered",)
"""The reason that no match in real time can be repeated."""


class Deviation(Enum):
    """Kinds of events that a repetition may not have: a noun to count them by, and a sentence."""

    ABSENT = ("connection", "the match began without {count} of {who}")
    LATE = ("answer", "lockstep went on without {count} of {who}")
    LEFT = ("connection", "{count} of {who} ended")
    EXTRA = ("input", "{count} of {who} came when no answer was awaited")
    STATE = ("state", "{count} of {who} came when no answer of its cars was awaited")
    STATES = ("state", "{count} of {who} came in the same tick as another client's")


class Repeatability:
    """Events of a lockstep match that depended on the machine's timing."""

    def __init__(self, tick: Callable[[], int]) -> None:
        """Begin with no event; `tick` returns the tick of the match."""
        self._tick = tick
        self._last_state = (-1, "")  # its tick, and whose it was
        self._noted: dict[tuple[Deviation, str], list[int]] = {}  # number, and the tick of the first

    def note(self, who: str, deviation: Deviation) -> None:
        """Count an event of a bot or client that a repetition may not have."""
        noted = self._noted.setdefault((deviation, who), [0, self._tick()])
        noted[0] += 1

    def note_state(self, who: str, awaited: bool) -> None:
        """Count a state that a client sets, where a repetition may take it in another tick or order.

        Where an answer of its cars is awaited, the state always comes before that answer.
        """
        last_tick, last_who = self._last_state
        self._last_state = (self._tick(), who)
        if not awaited:
            self.note(who, Deviation.STATE)
        elif last_tick == self._tick() and last_who != who:
            self.note(who, Deviation.STATES)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each kind of event and each bot, in the order of their first ticks."""
        made = []
        for (deviation, who), (times, first) in sorted(self._noted.items(), key=lambda item: item[1][1]):
            noun, sentence = deviation.value
            when = f"at tick {first:,}" if times == 1 else f"the first at tick {first:,}"
            made.append(f"{sentence.format(count=count_of(times, noun), who=who)}, {when}")
        return tuple(made)
