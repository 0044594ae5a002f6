"""Work out when the rows of a recording are drawn, and which bodies each of them shows."""

from typing import Final

import numpy as np
import rerun as rr

from rlgym_bridge.game import TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording

APPLICATION: Final = "rlgym_bridge"  # the viewer keeps one layout for each application

_HELD_TICKS: Final = 15
"""Time for which a body stays where it was last shown: a replay shows each every 4 to 15 ticks."""


class Times:
    """The two time axes that everything is logged on: `(rows,)` int64 and `(rows,)` float64, both rising."""

    def __init__(self, tick: np.ndarray, seconds: np.ndarray) -> None:
        self.tick, self.seconds = tick, seconds

    def at(self, rows: np.ndarray) -> list[rr.TimeColumn]:
        """Return the axes at some rows."""
        return [
            rr.TimeColumn("tick", sequence=self.tick[rows]),
            rr.TimeColumn("game time", duration=self.seconds[rows]),
        ]


def rising_times(recording: Recording) -> Times:
    """Return the times of the rows, such that all rows rise.

    Segments whose times begin again, as those of several trials do, follow each other a tick apart.
    """
    tick, seconds = recording.tick.copy(), recording.seconds.copy()
    for start in (np.flatnonzero(np.diff(recording.segment)) + 1).tolist():
        if tick[start] <= tick[start - 1]:
            tick[start:] += tick[start - 1] + 1 - tick[start]
        if seconds[start] <= seconds[start - 1]:
            seconds[start:] += seconds[start - 1] + TICK_SECONDS - seconds[start]
    return Times(tick, seconds)


def drawn(recording: Recording, shown: np.ndarray, gone: np.ndarray | None = None) -> np.ndarray:
    """Return in which rows a body is drawn, `(rows,)` bool.

    `shown` `(rows,)` bool are the rows that have the body, `gone` those in which it is known not to be there.
    """
    held = recording.ages(shown) <= _HELD_TICKS
    return np.asarray(held if gone is None else held & ~gone)


def updates(shown: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows `(n,)` in which a drawn body is moved or taken away, and whether it is there."""
    taken = np.zeros(len(drawn), bool)
    taken[1:] = drawn[:-1] & ~drawn[1:]
    rows = np.flatnonzero((shown & drawn) | taken)
    return rows, drawn[rows]


def thinned(rows: np.ndarray, there: np.ndarray, tick: np.ndarray, per_second: int) -> np.ndarray:
    """Choose the updates that a curve with some points per second needs; return indices into `rows`.

    `rows` are those of the updates, `there` tells whether they show the body, both `(updates,)`; `tick` has
    the ticks of all rows of the recording.
    """
    slot = tick[rows] * per_second // TICKS_PER_SECOND
    kept = np.ones(len(rows), bool)
    kept[1:] = (slot[1:] != slot[:-1]) | (there[1:] != there[:-1])
    return np.flatnonzero(kept)


def steps(values: np.ndarray) -> np.ndarray:
    """Return the rows of `(rows, n)` values that a line through them needs to show steps as steps."""
    if not len(values):
        return np.empty(0, int)
    new = np.zeros(len(values), bool)
    new[1:] = (values[1:] != values[:-1]).any(1)
    needed = new.copy()
    needed[:-1] |= new[1:]
    needed[[0, -1]] = True
    return np.flatnonzero(needed)
