"""Name the cause of each late tick: something that the server did, or the machine, which let it wait."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.server.net.pace import _SPIN_SECONDS
from tools.loaded_server import LATE_MS, lateness_ms
from tools.thread_watch import ThreadSample

_MOST_MS: Final = 0.5 * LATE_MS  # of work, from which it is the cause
_FIELDS: Final = len(ThreadSample._fields)

OURS: Final = ("import", "log record", "collection", "own work", "messages", "waited for the recorder")
"""Causes that are the server's own."""

MACHINE: Final = ("the tick before", "woken late", "preempted")
"""Causes that are not; the tick before one of these was late in its turn."""

_UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class WatchedTicks:
    """Hold the times of a server in some ticks of a match, and why ticks were late.

    Attributes:
        late: `(N,)` how late each packet was sent, by the server's schedule [ms].
        woken: `(N,)` how late the wait before it ended [ms].
        work: `(N,)` processor time from then until it was sent [ms].
        causes: Of each late tick, by cause.
    """

    late: np.ndarray
    woken: np.ndarray
    work: np.ndarray
    causes: Counter[str]


def samples_of(numbers: list[float]) -> np.ndarray:
    """Return the pairs of samples that a watched process has written: `(N, 2, fields)` float64."""
    return np.array(numbers).reshape(-1, 2, _FIELDS)


def watched_ticks(pairs: np.ndarray, since: float) -> WatchedTicks:
    """Compute the lateness of ticks, and name the cause of each late one.

    Args:
        pairs: `(N + 1, 2, fields)` of each tick a `ThreadSample` when its packet had been sent, and one when
            the wait after it was over; from the match's first tick on, with which its schedule begins.
        since: Ticks before are left out [s].
    """
    sent, woken = pairs[:, 0], pairs[:, 1]
    late = lateness_ms(sent[:, 0])
    due = sent[:, 0] - 1e-3 * late
    woken_late = 1e3 * (woken[:-1, 0] - due[1:])
    waited, worked = woken[:-1] - sent[:-1], sent[1:] - woken[:-1]
    causes: Counter[str] = Counter()
    counted = sent[1:, 0] >= since
    for number in np.flatnonzero(counted & (late[1:] > LATE_MS)):
        began_late = sent[number, 0] > due[number + 1]
        causes[
            _cause(
                ThreadSample(*waited[number]), ThreadSample(*worked[number]), woken_late[number], began_late
            )
        ] += 1
    return WatchedTicks(late[1:][counted], woken_late[counted], 1e3 * worked[counted, 1], causes)


def _cause(waited: ThreadSample, worked: ThreadSample, woken_late: float, began_late: bool) -> str:
    """Name the cause of a late tick.

    Args:
        waited: What happened in the wait before it.
        worked: What happened from then until its packet was sent.
        woken_late: How late the wait ended [ms].
        began_late: Whether the packet before was sent after this one was due.
    """
    if waited.imports + worked.imports:
        return "import"
    if waited.logged + worked.logged:
        return "log record"
    if 1e3 * (waited.collecting + worked.collecting) > _MOST_MS:
        return "collection"
    if 1e3 * worked.own > _MOST_MS:
        return "own work"
    if 1e3 * (waited.own - _SPIN_SECONDS) > _MOST_MS:
        return "messages"
    if worked.blocked:
        return "waited for the recorder"
    if began_late:
        return "the tick before"
    if woken_late > _MOST_MS:
        return "woken late"
    return "preempted" if worked.preempted else _UNKNOWN
