"""A stopwatch for the parts of a step, which costs nothing where nobody reads it."""

import time
from collections import defaultdict


class PartTimes:
    """Seconds that the parts of some steps took.

    Attributes:
        seconds: Sums by the name of the part.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._since = time.perf_counter()

    def begin(self) -> None:
        """Begin a part now; what was before belongs to none."""
        self._since = time.perf_counter()

    def end(self, part: str) -> None:
        """Count the time since the last call for a part, and begin the next one."""
        now = time.perf_counter()
        self.seconds[part] += now - self._since
        self._since = now
