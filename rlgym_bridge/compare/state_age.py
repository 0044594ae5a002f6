"""Estimate how many ticks old each body's state is in a replay frame.

Positions tell it, as they tell the time: between two frames a body moves by its velocity times the ticks
that went by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.compare.tracks import LONGEST_STEP, SLOW, moves, shown
from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.recording.recording import Recording

OLDEST: Final = 4
"""Ticks by which a frame of a replay shows a state late, at most [real replays]."""

_DOUBT: Final = 3.0  # uu, what one step can cost where nothing fits: it was a bounce
_AGEING: Final = 1e-4  # uu per tick: where nothing else tells, a state is as old as the one before


@dataclass(frozen=True)
class OffsetFit:
    """The ages of the states in a replay's frames.

    Attributes:
        ticks: Ticks before the frame's time, median over all bodies shown; 0 where rows say their tick.
        share: Of the steps, how many are explained to a tenth of a tick.
        ages: How many states were 0, 1, ... 4 ticks old.
    """

    ticks: int = 0
    share: float = 1.0
    ages: tuple[int, ...] = ()


def fit_ages(recording: Recording, bodies: Sequence[int], frames: np.ndarray) -> tuple[np.ndarray, OffsetFit]:
    """Find out how old the states of a replay are.

    Args:
        recording: The replay.
        bodies: Rows of the cars, and `BALL`.
        frames: `(rows,)` float64 ticks, the time of each frame.

    Returns:
        `(rows, bodies)` float64 ticks before the frame's time, 0 where a body is not shown; and the fit.
    """
    every = [_ages(recording, body, frames) for body in bodies]
    there = [late[shown(recording, body)] for body, (late, _) in zip(bodies, every, strict=True)]
    counts = np.bincount(np.concatenate(there).astype(int), minlength=OLDEST + 1)
    share = np.concatenate([explained for _, explained in every])
    return np.stack([late for late, _ in every], 1), OffsetFit(
        int(np.median(np.repeat(np.arange(len(counts)), counts))) if counts.sum() else 0,
        float(share.mean()) if len(share) else 0.0,
        tuple(counts.tolist()),
    )


def _ages(recording: Recording, body: int, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the likeliest ages of what the frames show of a body, step by step over the whole segment.

    Returns:
        `(rows,)` ticks before the frame's time, 0 where the body is not shown; and for each step that tells
        the time whether an age explains it to a tenth of a tick.
    """
    late, explained = np.zeros(len(frames)), []
    ages = np.arange(OLDEST + 1)
    for segment in recording.segments():
        rows = np.flatnonzero(shown(recording, body, segment)) + segment.start
        if len(rows) < 2:
            continue
        mean, moved, _ = moves(recording, body, rows)
        # (steps, age before, age after): ticks that went by.
        apart = np.diff(frames[rows])[:, None, None] + ages[:, None] - ages[None, :]
        off = np.linalg.norm(
            moved[:, None, None] - apart[..., None] * TICK_SECONDS * mean[:, None, None], axis=-1
        )
        speed = np.linalg.norm(mean, axis=1)
        long = np.diff(frames[rows]) > LONGEST_STEP + OLDEST
        cost = np.minimum(off, _DOUBT) + _AGEING * np.abs(ages[:, None] - ages[None, :])
        cost[long] = 0.0
        cost[apart < 1] = np.inf
        path = _cheapest(cost)
        late[rows] = path
        steps = np.arange(len(cost))
        telling = (speed > SLOW) & ~long
        chosen = off[steps, path[:-1], path[1:]]
        explained.append((chosen < 0.1 * speed * TICK_SECONDS)[telling])
    return late, np.concatenate([*explained, np.empty(0)])


def _cheapest(cost: np.ndarray) -> np.ndarray:
    """Return the cheapest way through `(steps, before, after)` costs, `(steps + 1,)` indices.

    Of equal ones the middle: only differences of ages count.
    """
    middle = np.abs(np.arange(cost.shape[1]) - cost.shape[1] // 2) * 1e-9
    total, back = middle, []
    for step in cost:
        ways = total[:, None] + step
        back.append(ways.argmin(0))
        total = ways.min(0)
    path = [int(np.argmin(total + middle))]
    for way in reversed(back):
        path.append(int(way[path[-1]]))
    return np.array(path[::-1])
