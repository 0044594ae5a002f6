"""Limits on the server's time for clients and on what they send on to others."""

from dataclasses import dataclass, field
from typing import Final

_MOST_DEBT: Final = 4.0  # ticks: longer nobody is left unheard for one message that took long


class TimeBudget:
    """Time that some clients may take of the server in each tick.

    What one message takes beyond it is owed to the ticks that follow.

    Attributes:
        seconds: For each tick.
        spent: Seconds taken in the tick of the latest `begin`; who takes some adds to it.
    """

    __slots__ = ("_most_debt", "_tick", "seconds", "spent")

    def __init__(self, seconds: float) -> None:
        """Begin with nothing spent."""
        self.seconds = seconds
        self.spent = 0.0
        self._most_debt = _MOST_DEBT * seconds
        self._tick = 0

    def begin(self, tick: int) -> float:
        """Return the seconds that are left in a tick, never one before the last; 0 or less for none."""
        spent = self.spent
        if tick != self._tick:
            if spent > self._most_debt:
                spent = self._most_debt
            spent -= self.seconds * (tick - self._tick)
            self._tick = tick
            self.spent = spent = spent if spent > 0.0 else 0.0
        return self.seconds - spent


_TICKS_TOGETHER: Final = 64  # who has sent nothing for so long may send as much at once

CLIENTS_TOGETHER: Final = 8
"""All clients may send as much as so many."""


@dataclass
class Allowance:
    """Bytes, or other things, that may come: more with every tick.

    Attributes:
        per_tick: How many come with a tick; 64 times as many at once.
        tick: The latest one that was looked at.
        left: How many may come now; who takes some subtracts them.
    """

    per_tick: float
    tick: int
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.per_tick * _TICKS_TOGETHER

    def has(self, size: float, tick: int) -> bool:
        """Tell whether so many may come in a tick, which is never lower than before."""
        more = self.per_tick * max(0, tick - self.tick)
        self.tick = tick
        self.left = min(self.left + more, self.per_tick * _TICKS_TOGETHER)
        return self.left >= size
