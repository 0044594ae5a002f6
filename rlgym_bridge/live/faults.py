"""Count the faults of a bot process, and log each kind at most once a second."""

import logging
import time


class Faults:
    """Counts what went wrong, by kind, and logs each kind at most once a second.

    Attributes:
        counts: Number of faults by kind.
        latest: Kind and detail of the latest one; "" before the first.
    """

    def __init__(self, log: logging.Logger) -> None:
        self.counts: dict[str, int] = {}
        self.latest = ""
        self._log = log
        self._logged: dict[str, float] = {}

    def add(self, kind: str, detail: str, error: BaseException | None = None) -> None:
        """Count a fault and log it, with the traceback of `error`, unless its kind was just logged."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.latest = f"{kind}: {detail}"
        now = time.monotonic()
        if now - self._logged.get(kind, -1.0) >= 1.0:
            self._logged[kind] = now
            self._log.warning("%s (%d so far): %s", kind, self.counts[kind], detail, exc_info=error)
