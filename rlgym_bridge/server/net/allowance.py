"""A limit on what a client may send on to others, so that none of them is flooded."""

from dataclasses import dataclass, field
from typing import Final

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
