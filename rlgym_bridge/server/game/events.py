"""Collect the events of a physics tick from RocketSim's callbacks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import RocketSim as rsim


@dataclass
class TickEvents:
    """The events of one physics tick; cars are given by their index.

    Attributes:
        touches: Cars that touched the ball.
        goal_for: Team for which the ball is in the goal, None where it is not.
        shots: Cars that RocketSim credits with a shot on goal.
        saves: Cars that it credits with a save.
        assists: Cars that it credits with an assist; comes with the goal, or a tick later.
        demolitions: Cars that demolished another one.
        bumps: Cars that bumped another one.
        pads: Indices into the arena's pads that were picked up.
    """

    touches: list[int] = field(default_factory=list)
    goal_for: int | None = None
    shots: list[int] = field(default_factory=list)
    saves: list[int] = field(default_factory=list)
    assists: list[int] = field(default_factory=list)
    demolitions: list[int] = field(default_factory=list)
    bumps: list[int] = field(default_factory=list)
    pads: list[int] = field(default_factory=list)


_NONE: Final = TickEvents()  # of every tick in which nothing happens; nobody changes it


class EventRecorder:
    """Fills in the events of the present tick.

    It knows the arena only by numbers: an arena whose callbacks led back to it would never be
    freed, for the garbage collector does not see into RocketSim.

    Attributes:
        events: What has happened since the last `clear`.
    """

    def __init__(self, arena: rsim.Arena, credits: bool = True) -> None:
        """Listen to an arena; `know` has to tell the cars' slots.

        Args:
            arena: The arena.
            credits: Listen for shots, saves and assists too, which RocketSim refuses in some modes.
        """
        self.events = _NONE
        self._slots: dict[int, int] = {}
        pads = arena.get_boost_pads()
        self._pads = {pad.get_pos().as_tuple(): number for number, pad in enumerate(pads)}
        arena.set_ball_touch_callback(self._on_touch)
        arena.set_goal_score_callback(self._on_goal)
        if credits:
            arena.set_shot_event_callback(self._on_shot)
            arena.set_save_event_callback(self._on_save)
            arena.set_goal_event_callback(self._on_credited_goal)
        arena.set_car_bump_callback(self._on_bump)
        arena.set_car_demo_callback(self._on_demolition)
        arena.set_boost_pickup_callback(self._on_pickup)

    def know(self, cars: Sequence[rsim.Car]) -> None:
        """Take the cars' ids, which are new after every kickoff."""
        self._slots = {car.id: slot for slot, car in enumerate(cars)}

    def clear(self) -> None:
        """Begin a tick."""
        self.events = _NONE

    def _happening(self) -> TickEvents:
        """Return the events of this tick, to add one."""
        if self.events is _NONE:
            self.events = TickEvents()
        return self.events

    def _on_touch(self, car: rsim.Car, **_: object) -> None:
        self._happening().touches.append(self._slots[car.id])

    def _on_goal(self, team: int, **_: object) -> None:
        self._happening().goal_for = team

    def _on_shot(self, shooter: rsim.Car, **_: object) -> None:
        self._happening().shots.append(self._slots[shooter.id])

    def _on_save(self, saver: rsim.Car, **_: object) -> None:
        self._happening().saves.append(self._slots[saver.id])

    def _on_credited_goal(self, passer: rsim.Car | None, **_: object) -> None:
        if passer is not None:
            self._happening().assists.append(self._slots[passer.id])

    def _on_bump(self, bumper: rsim.Car, is_demo: bool, **_: object) -> None:
        if not is_demo:
            self._happening().bumps.append(self._slots[bumper.id])

    def _on_demolition(self, bumper: rsim.Car, **_: object) -> None:
        self._happening().demolitions.append(self._slots[bumper.id])

    def _on_pickup(self, boost_pad: rsim.BoostPad, **_: object) -> None:
        self._happening().pads.append(self._pads[boost_pad.get_pos().as_tuple()])
