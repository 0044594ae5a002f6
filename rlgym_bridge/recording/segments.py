"""Find the rows of a recording that do not follow from the row before."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

_HOLE_SECONDS: Final = 0.1
_HOLE_STEPS: Final = 4.0  # times the usual step: a slow recorder has no holes
_JUMP_SHARE: Final = 1.1  # of the way that a body's speed explains
_JUMP_LEAST: Final = 50.0  # uu: a car that is hit, or set down by the game, moves less


class BodyMotion(NamedTuple):
    """A body over all rows: `(rows, 3)` uu, `(rows, 3)` uu/s, and `(rows,)` whether the row has it."""

    position: np.ndarray
    velocity: np.ndarray
    shown: np.ndarray


def holes(seconds: np.ndarray) -> np.ndarray:
    """Return which rows follow on a hole, `(rows,)` bool."""
    steps = np.diff(seconds, prepend=seconds[:1])
    rising = steps[steps > 0]
    usual = float(np.median(rising)) if rising.size else 0.0
    return steps > max(_HOLE_SECONDS, _HOLE_STEPS * usual)


def jumps(seconds: np.ndarray, tracks: Sequence[BodyMotion], slack: float = 0.0) -> np.ndarray:
    """Return in which rows a body is where its speed could not have brought it, `(rows,)` bool.

    Args:
        seconds: `(rows,)`.
        tracks: The bodies; each is compared with the last row before that has it.
        slack: Seconds that the time between two rows may be wrong by.
    """
    found = np.zeros(len(seconds), bool)
    for position, velocity, shown in tracks:
        rows = np.flatnonzero(shown)
        speed = np.linalg.norm(velocity[rows], axis=-1)
        way = np.linalg.norm(np.diff(position[rows], axis=0), axis=-1)
        time = np.abs(np.diff(seconds[rows])) + slack
        reach = np.maximum(speed[1:], speed[:-1]) * time * _JUMP_SHARE + _JUMP_LEAST
        found[rows[1:][way > reach]] = True
    return found
