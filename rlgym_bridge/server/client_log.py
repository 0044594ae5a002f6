"""Limit what clients may take, and keep the server's log short: cut long texts, and count repeated lines."""

import logging
import math
import time
from dataclasses import dataclass
from typing import Final

from rlgym_bridge.user_input.arguments import shorten_text

_MOST_TEXT: Final = 300  # letters of one text, such as an agent id
_MOST_ERROR: Final = 6000  # letters of an error: it may quote the end of a bot's log
_MOST_AT_ONCE: Final = 20  # lines of one kind, then
_MOST_PER_SECOND: Final = 1.0


@dataclass
class Allowance:
    """Bytes, lines or time that may be taken; who takes some subtracts them from what is left."""

    rate: float  # more in each unit of time
    most: float  # at once
    now: float = 0.0
    most_debt: float = math.inf

    def __post_init__(self) -> None:
        self.left = self.most

    def left_at(self, now: float) -> float:
        """Return what may be taken at a time, which is never before the last one."""
        if now > self.now:
            self.left = min(self.most, max(self.left, -self.most_debt) + self.rate * (now - self.now))
            self.now = now
        return self.left

    def take(self, now: float) -> bool:
        """Take one where there is one; tell whether there was."""
        has_one = self.left_at(now) >= 1.0
        self.left -= has_one
        return has_one


@dataclass
class _Repeated(Allowance):
    left_out: int = 0


class _ClientLines(logging.Filter):
    """Cuts texts in lines, and leaves out lines of a kind that comes too often; the next one counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.servers = 0  # that are open: without one nobody floods anything
        self._repeated: dict[tuple[str, int, str], _Repeated] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not self.servers:
            return True
        kind = (record.name, record.levelno, str(record.msg))
        now = time.monotonic()
        seen = self._repeated.setdefault(kind, _Repeated(_MOST_PER_SECOND, _MOST_AT_ONCE, now))
        if not seen.take(now):
            seen.left_out += 1
            return False
        if isinstance(record.args, tuple):
            record.args = tuple(map(_cut, record.args))
        if seen.left_out:
            text = f"{record.getMessage()} ({seen.left_out:,} more lines like this one were left out)"
            record.msg, record.args, seen.left_out = text, (), 0
        return True

    def forget(self) -> None:
        """Write how many lines were left out of each kind, and begin anew."""
        repeated, self._repeated = self._repeated, {}
        for (name, level, line), seen in repeated.items():
            if seen.left_out:
                logging.getLogger(name).log(level, "%d more lines like %r were left out", seen.left_out, line)


_LINES: Final = _ClientLines()


def client_log(name: str) -> logging.Logger:
    """Return the log of a module whose lines may hold what clients have sent.

    A text is cut at 300 letters, an error at 6,000. Of one kind of line (one format text) 20 are written at
    once, then one a second: the line that follows says how many were left out.
    """
    log = logging.getLogger(name)
    log.addFilter(_LINES)
    return log


def begin_limits() -> None:
    """Limit the lines from now on: a server opens."""
    _LINES.forget()
    _LINES.servers += 1


def end_limits() -> None:
    """Write how many lines were left out, and limit none where no other server is open."""
    _LINES.forget()
    _LINES.servers = max(0, _LINES.servers - 1)


def _cut(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else shorten_text(value, _MOST_TEXT)
    if isinstance(value, int | float):
        return value
    text = str(value)
    return value if len(text) <= _MOST_ERROR else text[:_MOST_ERROR] + "..."
