"""A limit on the server's time for some clients, so that none of them holds up the match."""

from typing import Final

_MOST_DEBT: Final = 4.0  # ticks: longer nobody is left unheard for one message that took long


class TimeBudget:
    """Time that some clients may take of the server in each tick.

    What one message takes beyond it is owed to the ticks that follow.

    Args:
        seconds: For each tick.
    """

    __slots__ = ("_seconds", "_spent", "_tick")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._spent = 0.0
        self._tick = 0

    def left(self, tick: int) -> float:
        """Return the seconds that are left in a tick; 0 or less where it is spent.

        Args:
            tick: Number of the tick; never lower than before.
        """
        if tick != self._tick:
            self._spent = max(0.0, self._spent - self._seconds * (tick - self._tick))
            self._tick = tick
        return self._seconds - self._spent

    def spend(self, seconds: float) -> float:
        """Take note of time that was taken in the tick of the latest `left`; return what is left now."""
        self._spent = min(self._spent + seconds, _MOST_DEBT * self._seconds)
        return self._seconds - self._spent
