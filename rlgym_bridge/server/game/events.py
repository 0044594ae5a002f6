"""Read the events of a physics tick."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rlgym_bridge.sim.simulator import EventKind


@dataclass
class TickEvents:
    """The events of one physics tick; cars are given by their index.

    Attributes:
        touches: Cars that touched the ball.
        contacts: Of each touch the place, then that place relative to the ball's centre, uu.
        goal_for: Team for which the ball is in the goal, None where it is not.
        shots: Cars that the simulator credits with a shot on goal.
        saves: Cars that it credits with a save.
        assists: Cars that it credits with an assist; comes with the goal, or a tick later.
        demolitions: Cars that demolished another one.
        bumps: Cars that bumped another one.
        pads: Pads that were picked up, numbered as in `MatchState.pad_timer`.
    """

    touches: list[int] = field(default_factory=list)
    contacts: list[list[float]] = field(default_factory=list)
    goal_for: int | None = None
    shots: list[int] = field(default_factory=list)
    saves: list[int] = field(default_factory=list)
    assists: list[int] = field(default_factory=list)
    demolitions: list[int] = field(default_factory=list)
    bumps: list[int] = field(default_factory=list)
    pads: list[int] = field(default_factory=list)


NOTHING: Final = TickEvents()
"""Events of every tick in which nothing happens; nobody changes it."""

_LISTS: Final = {
    EventKind.TOUCH: "touches", EventKind.SHOT: "shots", EventKind.SAVE: "saves",
    EventKind.DEMOLITION: "demolitions", EventKind.BUMP: "bumps",
}  # fmt: skip


def read_events(events: np.ndarray, slots: Sequence[int]) -> TickEvents:
    """Return the events of a tick.

    Args:
        events: `(events,)` of the dtype `EVENT`, from `Simulator.events`.
        slots: Index of each of the simulator's cars.
    """
    found = TickEvents()
    for _, _, kind, car, other, numbers in events.tolist():
        if kind in _LISTS:
            getattr(found, _LISTS[kind]).append(slots[car])
        if kind == EventKind.TOUCH:
            found.contacts.append(numbers)
        elif kind == EventKind.PAD:
            found.pads.append(other)
        elif kind == EventKind.GOAL:
            found.goal_for = int(numbers[0])
        if kind in (EventKind.GOAL, EventKind.CREDIT) and other >= 0:
            found.assists.append(slots[other])
    return found
