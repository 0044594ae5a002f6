"""Simulate a match; what is random is drawn from its seed, and every kickoff is put anew."""

import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import prod
from typing import Any, Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.game import BLUE, GOAL_THRESHOLD_Y, GRAVITY, ORANGE
from rlgym_bridge.rotations import rotation_of
from rlgym_bridge.server.game.rules import Physics
from rlgym_bridge.sim.simulator import EventKind
from rlgym_bridge.state import CAR_FIELDS, Layout, MatchState, derive, layout_of

_READ: Final = (
    "position", "rotation", "linear_velocity", "angular_velocity", "boost_amount", "demo_respawn_timer",
    "wheels_with_contact", "has_jumped", "is_jumping", "jump_time", "has_flipped", "has_double_jumped",
    "air_time_since_jump", "flip_time", "flip_torque", "on_ground", "is_demoed", "is_supersonic",
)  # fmt: skip
_FIELDS: Final = [(one.name, prod(one.shape)) for one in CAR_FIELDS]
_WIDTHS: Final = {name: width for name, width in _FIELDS if name in _READ}

CAR_NUMBERS: Final = struct.Struct(
    "<" + "".join(f"{width}f" if name in _READ else f"{4 * width}x" for name, width in _FIELDS)
)
"""Reads a car's numbers from its part of a row of `MatchState`: half of them, which takes half the time."""


CAR: Final = dict(zip(_WIDTHS, accumulate(_WIDTHS.values(), initial=0), strict=False))
"""Place of each field's first number among those of a car; the first four lie as those of the ball."""

BALL_NUMBERS: Final = struct.Struct("<18f")  # reads the ball: position, rotation, linear and angular velocity
BALL_OFFSET: Final = 4 * layout_of(0, 0).column("ball_position")  # bytes before the ball in a row


@dataclass
class TickEvents:
    """The events of one physics tick; cars are given by their index."""

    touches: list[int] = field(default_factory=list)
    # of each touch the place, then that place relative to the ball's centre, uu
    contacts: list[list[float]] = field(default_factory=list)
    goal_for: int | None = None  # team for which the ball is in the goal, None where it is not
    shots: list[int] = field(default_factory=list)
    saves: list[int] = field(default_factory=list)
    # cars that the simulator credits with an assist; comes with the goal, or a tick later
    assists: list[int] = field(default_factory=list)
    demolitions: list[int] = field(default_factory=list)
    bumps: list[int] = field(default_factory=list)
    pads: list[int] = field(default_factory=list)  # picked up, numbered as in `MatchState.pad_timer`


NOTHING: Final = TickEvents()  # events of every tick in which nothing happens; nobody changes it
_LISTS: Final = {
    EventKind.TOUCH: "touches", EventKind.SHOT: "shots", EventKind.SAVE: "saves",
    EventKind.DEMOLITION: "demolitions", EventKind.BUMP: "bumps",
}  # fmt: skip


def read_events(events: np.ndarray, slots: Sequence[int]) -> TickEvents:
    """Return the events `(events,)` of a tick, of dtype `EVENT`; `slots` are those of simulated cars."""
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


_SPAWN_Z: Final = 17.0  # uu, as RocketSim's kickoff has it; an Octane settles to 17.03 (measured)
_RESPAWN_SPOTS: Final = ((-2304.0, -4608.0), (-2688.0, -4608.0), (2304.0, -4608.0), (2688.0, -4608.0))
"""(x uu, y uu) of blue's four spots, from which cars look ahead, in every mode [RocketSim, RLConst]."""
_RESPAWN_Z: Final = 36.0  # uu [RocketSim, RLConst]
_APART: Final = 300.0  # uu between a car that comes and the others
_GOAL_LEFT: Final = GOAL_THRESHOLD_Y - 300.0  # uu from the middle: a ball here has left the goal

_MOST: Final = {"position": 2e4, "linear_velocity": 1e5, "angular_velocity": 1e3}  # uu, uu/s, rad/s
_MOST_GRAVITY: Final = 999.0 * GRAVITY  # uu/s^2: RocketSim 3 takes no larger one

_READ_CAR, _READ_BALL = CAR_NUMBERS.unpack_from, BALL_NUMBERS.unpack_from
_BOOST, _IS_DEMOED = CAR["boost_amount"], CAR["is_demoed"]
_BALL: Final = ("position", "rotation", "linear_velocity", "angular_velocity")

OnKickoff = Callable[[MatchState], None]


class Simulation:
    """The cars and the ball of a match in a simulator.

    `places` has for each slot the car's place in the state, which has blue's cars first. `cars` and `ball`
    have their numbers (`CAR`, `BALL_NUMBERS`) after the latest tick or setting.
    """

    def __init__(self, teams: Sequence[int], hitboxes: Sequence[int], physics: Physics, seed: int) -> None:
        self._teams = list(teams)
        self._hitboxes = list(hitboxes)
        self.physics = physics
        # Two generators, so that a car more or less that joins does not change the kickoffs.
        self._kickoff_random = random.Random(f"kickoffs {seed}")
        self._respawn_random = random.Random(f"respawns {seed}")
        self._slots = sorted(range(len(self._teams)), key=self._teams.__getitem__)  # of each place
        self.places = [self._slots.index(slot) for slot in range(len(self._teams))]
        self.simulator = physics.make(self._teams.count(BLUE), self._teams.count(ORANGE), seed)
        self._buffer: Any = self.simulator.state.buffer
        layout = self.simulator.state.layout
        self._offsets = [4 * self.car_columns(slot).start for slot in range(len(self._teams))]  # bytes
        self.cars: list[tuple[float, ...]] = []
        self.ball: tuple[float, ...] = ()
        self._memory = _memory_columns(layout)
        self._served = BLUE
        self._held = np.zeros((1, len(self._teams), 1, 8), np.float32)
        self._neutral = np.zeros_like(self._held)
        self._at_once = np.zeros((1, len(self._teams)), np.int64)
        self._cars_set: set[int] = set()  # slots that a client has set since the cars lined up
        self._ball_set = False  # whether a client has set the ball since then
        self._goal_for: int | None = None
        self.boost_used = [0.0] * len(self._teams)  # of each car so far, 100 per tank
        self.on_kickoff: OnKickoff | None = None
        self.events = NOTHING
        self._read()

    @property
    def state(self) -> MatchState:
        """Return the match after the latest tick or setting, to be read."""
        return self.simulator.state

    @property
    def target_speed(self) -> float:
        """Return the speed that a homing ball aims at, uu/s; 0 for any other."""
        return self.simulator.target_speed(0) if self.physics.mode.homing else 0.0

    def car_columns(self, slot: int) -> slice:
        """Return where a car's numbers (`state.CAR_FIELDS`) lie among those of the match."""
        layout = self.state.layout
        first = layout.car_start + self.places[slot] * layout.car_stride
        return slice(first, first + layout.car_stride)

    def line_up(self) -> None:
        """Put fresh cars on kickoff spots, the ball on its own, all pads full.

        Both teams get the same spots, turned by 180 degrees: as the game does it.
        """
        most = max(self._teams.count(BLUE), self._teams.count(ORANGE))
        spots = self._kickoff_random.sample(self.physics.mode.spawns, most)
        if self.physics.mode.serve is not None:
            self._served = self._kickoff_random.choice((BLUE, ORANGE))
        state = self._blank(moving=False)
        for place, team in enumerate(sorted(self._teams)):
            x, y, yaw = spots[place - (self._teams.count(BLUE) if team == ORANGE else 0)]
            _stand(state, place, team, (x, y, _SPAWN_Z), yaw * math.pi)
        state.car_wheels_with_contact[:] = 1
        self._cars_set.clear()
        self._ball_set = False
        derive(state)
        self.put(state)

    def go(self, jumps_held: Sequence[bool]) -> None:
        """Put fresh cars where the present ones have settled, at rest, and let the match begin.

        What a client has set in the countdown stays: such a car keeps its boost and moves on as it moves now,
        and so does the ball. A car that holds jump down now does not jump until the button was let go.
        """
        settled, state = self.state, self._blank(moving=True)
        for name in ("position", "rotation", "wheels_with_contact"):
            getattr(state, f"car_{name}")[:] = getattr(settled, f"car_{name}")
        for slot, jump in enumerate(jumps_held):
            place = self.places[slot]
            state.car_is_holding_jump[0, place] = state.car_controls[0, place, 5] = jump
        for place in (self.places[slot] for slot in self._cars_set):
            for name in ("linear_velocity", "angular_velocity", "boost_amount"):
                getattr(state, f"car_{name}")[0, place] = getattr(settled, f"car_{name}")[0, place]
        if self._ball_set:
            for name in _BALL:
                getattr(state, f"ball_{name}")[:] = getattr(settled, f"ball_{name}")
        derive(state)
        goal_for = self._goal_for if self._ball_set else None
        self.put(state)
        self._goal_for = goal_for
        if self.on_kickoff is not None:
            self.on_kickoff(self.state.copy())

    def _blank(self, moving: bool) -> MatchState:
        """Return the match with the ball of a kickoff, all pads, and whole cars at the origin."""
        physics, layout = self.physics, self.state.layout
        state = MatchState(layout.blue, layout.orange)
        state.phase[:] = game.Phase.ACTIVE
        state.gravity[:] = physics.gravity_z / -GRAVITY
        state.boost_consumption[:] = physics.boost_per_second / game.RLGYM_BOOST_PER_SECOND
        state.dodge_deadzone[:] = game.DODGE_DEADZONE
        state.ball_known[:] = 1
        place, velocity = physics.mode.kickoff_ball(self._served, moving)
        state.ball_position[:], state.ball_linear_velocity[:] = place, velocity
        state.ball_rotation[:] = state.car_rotation[:] = np.eye(3)
        state.car_player_id[:] = np.arange(layout.cars)
        state.car_team[:, layout.blue :] = ORANGE
        state.car_hitbox[:] = [self._hitboxes[slot] for slot in self._slots]
        state.car_boost_amount[:] = physics.spawn_boost
        state.car_bump_victim[:] = -1
        state.car_known[:] = 1
        return state

    def set(self, state: MatchState, slots: Sequence[int], ball: bool) -> None:
        """Set cars and the ball to those of a state between two ticks; boost taken away counts as not used.

        Bodies alone are moved, so that the cars keep what they remember and a homing ball its aim. Where more
        of a car is set, all are put anew, and earlier touches are credited no more; pads go on as they are.
        Numbers far beyond any match are cut.
        """
        if not slots and not ball:
            return
        self._cars_set.update(slots)
        self._ball_set = self._ball_set or ball
        _cut(state)
        if np.array_equal(state.buffer[0, self._memory], self.state.buffer[0, self._memory]):
            self._move(state, slots, ball)
        elif ball and self.physics.mode.homing:  # a ball that is put somewhere else forgets its aim
            moved = state.copy()
            for name in _BALL:
                getattr(state, f"ball_{name}")[:] = getattr(self.state, f"ball_{name}")
            self.put(state)
            self._move(moved, [], ball=True)
        else:
            self.put(state)

    def _move(self, state: MatchState, slots: Sequence[int], ball: bool) -> None:
        moved = np.zeros((1, len(self._teams)), bool)
        moved[0, [self.places[slot] for slot in slots]] = True
        self.simulator.nudge([0], state, ball, moved)
        self._read()

    def put(self, state: MatchState) -> None:
        """Put the whole match anew into a state."""
        _cut(state)
        self.simulator.put([0], state)
        shown, fast = self.state, state.car_is_supersonic > 0  # so at once, whatever its time says
        shown.car_is_supersonic[fast] = 1
        shown.car_supersonic_time[fast] = np.maximum(shown.car_supersonic_time[fast], game.TICK_SECONDS)
        self._goal_for = None
        self._read()

    def take_over(self, earlier: "Simulation", kept: Mapping[int, int]) -> None:
        """Go on where another simulation is: its ball, pads, drawn spots, and the cars that are kept.

        The other cars come where demolished ones do.
        """
        self._kickoff_random, self._respawn_random = earlier._kickoff_random, earlier._respawn_random
        self._served = earlier._served
        state, theirs = self._blank(moving=False), earlier.state
        state.buffer[0, : state.layout.car_start] = theirs.buffer[0, : state.layout.car_start]
        for slot, before in kept.items():
            state.buffer[0, self.car_columns(slot)] = theirs.buffer[0, earlier.car_columns(before)]
            self.boost_used[slot] = earlier.boost_used[before]
        state.car_player_id[:] = np.arange(state.layout.cars)
        state.car_hitbox[:] = [self._hitboxes[slot] for slot in self._slots]
        state.car_bump_victim[:] = -1
        there = [state.car_position[0, self.places[slot]].tolist() for slot in kept]
        for slot, team in enumerate(self._teams):
            if slot not in kept:
                there.append(self._join(state, self.places[slot], team, there))
        self._cars_set.clear()
        self._ball_set = earlier._ball_set
        derive(state)
        self.put(state)

    def _join(
        self, state: MatchState, place: int, team: int, others: Sequence[Sequence[float]]
    ) -> list[float]:
        """Put a car on a respawn spot apart from the others, where there is one, and return its place."""
        for x, y in self._respawn_random.sample(_RESPAWN_SPOTS, len(_RESPAWN_SPOTS)):
            _stand(state, place, team, (x, y, _RESPAWN_Z), 0.5 * math.pi)
            at: list[float] = state.car_position[0, place].tolist()
            if all(math.dist(at, other) > _APART for other in others):
                break
        return at

    def set_hitbox(self, slot: int, hitbox: int) -> None:
        """Give a car another hitbox where it is; all cars are made anew between two ticks."""
        if hitbox == self._hitboxes[slot]:
            return
        self._hitboxes[slot] = hitbox
        state = self.state.copy()
        state.car_hitbox[0, self.places[slot]] = hitbox
        self.put(state)

    def set_gravity(self, gravity_z: float) -> None:
        """Set gravity for the rest of the match [uu/s^2, negative is down], at most 999 times the game's."""
        gravity_z = min(_MOST_GRAVITY, max(-_MOST_GRAVITY, gravity_z))
        self.physics = replace(self.physics, gravity_z=gravity_z)
        state = self.state.copy()
        state.gravity[:] = gravity_z / -GRAVITY
        self.put(state)

    def hold(self, slot: int, controls: Sequence[float]) -> None:
        """Hold controls (`game.CONTROL_NAMES`) from the next tick on, until others come."""
        self._held[0, self.places[slot], 0] = controls

    def settle(self) -> None:
        """Go on by a tick of the countdown: inputs do not act."""
        self._step(self._neutral)

    def step(self) -> None:
        """Go on by a tick with the controls held."""
        self._step(self._held)
        for slot, (before, car) in enumerate(zip(self._cars_before, self.cars, strict=True)):
            if car[_BOOST] < before[_BOOST] and not before[_IS_DEMOED]:  # else it has come back
                self.boost_used[slot] += before[_BOOST] - car[_BOOST]

    def _step(self, controls: np.ndarray) -> None:
        self.simulator.step(controls, self._at_once)
        self._read()
        events = self.simulator.events()
        self.events = read_events(events, self._slots) if len(events) else NOTHING
        if self.events.goal_for is not None:
            self._goal_for = self.events.goal_for
        elif self._goal_for is not None:  # the simulator tells of it once
            if abs(self.ball[1]) < _GOAL_LEFT:
                self._goal_for = None
            elif self.events is NOTHING:
                self.events = TickEvents(goal_for=self._goal_for)
            else:
                self.events.goal_for = self._goal_for

    def ball_on_floor(self) -> bool:
        """Tell whether the ball lies on the floor or has bounced off it in the latest tick."""
        return self.physics.mode.meets_floor(self.ball, self._ball_before, bool(self.events.touches))

    def _read(self) -> None:
        buffer = self._buffer
        self._cars_before, self._ball_before = self.cars, self.ball
        self.cars = [_READ_CAR(buffer, offset) for offset in self._offsets]
        self.ball = _READ_BALL(buffer, BALL_OFFSET)


def _cut(state: MatchState) -> None:
    """Cut the bodies' numbers to what every simulator takes, which is far beyond any match."""
    for name, most in _MOST.items():
        for view in (getattr(state, f"ball_{name}"), getattr(state, f"car_{name}")):
            np.clip(view, -most, most, out=view)


def _memory_columns(layout: Layout) -> list[int]:
    """Return the columns of all that is set by more than moving a body."""
    bodies = {
        layout.column(name, element, car)
        for car in range(layout.cars)
        for name, width in (("position", 3), ("rotation", 9), ("linear_velocity", 3), ("angular_velocity", 3))
        for element in range(width)
    }
    return [column for column in range(layout.car_start, layout.size) if column not in bodies]


def _stand(state: MatchState, place: int, team: int, spot: tuple[float, float, float], yaw: float) -> None:
    """Put a car on a spot of blue's, turned by 180 degrees for orange."""
    x, y, z = spot
    if team == ORANGE:
        x, y, yaw = -x, -y, yaw + math.pi
    state.car_position[0, place] = (x, y, z)
    state.car_rotation[0, place] = np.reshape(rotation_of(0.0, yaw, 0.0), (3, 3))
