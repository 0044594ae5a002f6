"""The lead before a window: the moments that it follows, its inputs, and the steps that need rules."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.compare.simulate.tracks import Drive, Track
from rlgym_bridge.sim.arena_reader import control_of

_EVERY: Final = 4.0  # ticks; the simulation stays within a hundredth of a uu of what it follows
_RULED_TICKS: Final = 6  # latest ticks of a lead that the rules make: wheels remember the one before


def followed_moments(track: Track, start: int, lead: float) -> list[int]:
    """Return the moments before a window that the simulation is set to, and its start.

    The last two as they come, so that the simulation is primed; before that now and then is enough.
    """
    first = int(np.searchsorted(track.times, track.times[start] - lead - 0.01))
    first = max(min(first, start - 1), 0)
    moments, times = [first], track.times[first:start].tolist()
    for moment in range(first + 1, start - 1):
        if times[moment - first] - times[moments[-1] - first] > _EVERY - 0.01:
            moments.append(moment)
    return [*moments, *range(max(start - 1, first + 1), start + 1)] if start else [start]


def control_changes(
    drives: Sequence[Drive | None], row: int, ends: np.ndarray
) -> dict[int, list[tuple[int, rsim.CarControls]]]:
    """Return which cars get new controls before which of the ticks that end at `ends`."""
    changes: dict[int, list[tuple[int, rsim.CarControls]]] = {}
    for car, drive in enumerate(drives):
        if drive is None:
            continue
        rows = drive.during(row, ends)
        new = np.flatnonzero((rows[1:] != rows[:-1]).any(1)) + 1
        for tick in (0, *new.tolist()):
            changes.setdefault(tick, []).append((car, control_of(rows[tick].tolist())))
    return changes


def presses_of(changes: Mapping[int, Sequence[tuple[int, rsim.CarControls]]]) -> list[int]:
    """Return the ticks in which a car presses jump."""
    held: dict[int, bool] = {}
    presses = []
    for tick, new in sorted(changes.items()):
        for car, controls in new:
            if controls.jump and not held.get(car, False):
                presses.append(tick)
            held[car] = controls.jump
    return presses


def needs_rules(apart: Sequence[int], presses: Sequence[int]) -> list[bool]:
    """Return which steps of a lead have to be made by the game's rules.

    What a lead leaves behind is the memory of jumps, dodges and handbrake, and of the latest ticks that of
    wheels. RocketSim counts all times as the game does, and each step is set to the recording. So rules
    matter in the latest ticks, and where a press of jump decides between a jump and a dodge, and its torque.

    Args:
        apart: Ticks of each step, from the lead's beginning to its end.
        presses: Ticks in which jump is pressed, counted from the beginning.
    """
    ends = np.cumsum(apart).tolist()
    return [
        ends[-1] - end < _RULED_TICKS or any(end - ticks - 1 <= press <= end for press in presses)
        for ticks, end in zip(apart, ends, strict=True)
    ]
