"""A limit on the server's time for some clients, so that none of them holds up the match."""

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
        """Return the seconds that are left in a tick; 0 or less where all are spent.

        Args:
            tick: Number of the tick; never lower than before.
        """
        spent = self.spent
        if tick != self._tick:
            if spent > self._most_debt:
                spent = self._most_debt
            spent -= self.seconds * (tick - self._tick)
            self._tick = tick
            self.spent = spent = spent if spent > 0.0 else 0.0
        return self.seconds - spent
