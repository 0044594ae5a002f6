"""Simulate a match in RocketSim: kickoffs, controls, ticks, and the events of each tick.

RocketSim alone does not play the same match twice; here everything that is random is drawn from
the match's seed, and cars are taken off and put on again at every kickoff, because used cars
carry state that cannot be set.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import RocketSim as rsim

from rlgym_bridge.game import (
    BLUE,
    ORANGE,
    TICK_SECONDS,
)
from rlgym_bridge.server.game.events import EventRecorder, TickEvents
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.modes import SOCCAR
from rlgym_bridge.sim.arena import make_arena, place_cars, set_mutators

_SPAWN_Z: Final = 17.0  # uu, as RocketSim's kickoff has it; an Octane settles to 17.03 (measured)
_RESPAWN_TRIES: Final = 50
_APART: Final = 300.0  # uu between a car that comes and the others
_NEVER: Final = 1e9  # seconds until a pad is back that the match does not have

OnKickoff = Callable[[rsim.Arena, list[rsim.Car]], None]


class Simulation:
    """An arena with the cars of a match.

    Attributes:
        physics: Game mode and mutators.
        arena: The RocketSim arena.
        cars: Its cars, by slot; new objects after every kickoff.
        states: `CarState` of each car after the latest tick.
        ball: `BallState` after the latest tick.
        pads: The arena's boost pads in RocketSim's order.
        boost_used: Boost that each car has used so far [0..100 per tank].
        on_kickoff: Called with arena and cars at every GO, when all states are set.
    """

    def __init__(self, teams: Sequence[int], hitboxes: Sequence[int], physics: Physics, seed: int) -> None:
        """Make the arena; `line_up` has to follow.

        Args:
            teams: Team of each slot, 0 or 1.
            hitboxes: Hitbox number of each slot (`game.HITBOXES`).
            physics: Game mode and mutators.
            seed: Decides kickoff and respawn spots.
        """
        self._teams = list(teams)
        self._hitboxes = list(hitboxes)
        self.physics = physics
        # Two generators, so that a demolition more or less does not change the kickoffs.
        self._kickoff_random = random.Random(f"kickoffs {seed}")
        self._respawn_random = random.Random(f"respawns {seed}")
        self._served = BLUE
        self._held = [rsim.CarControls() for _ in self._teams]
        self._boost = [0.0] * len(self._teams)
        self._cars_set: set[int] = set()  # slots that a client has set since the cars lined up
        self._ball_set = False  # whether a client has set the ball since then
        self.boost_used = [0.0] * len(self._teams)
        self.on_kickoff: OnKickoff | None = None
        self._new_arena()

    @property
    def events(self) -> TickEvents:
        """Return what happened in the latest tick."""
        return self._recorder.events

    def _new_arena(self) -> None:
        mode = self.physics.mode
        self.arena, cars = make_arena(self._teams, self._hitboxes, mode.number)
        self.physics.apply(self.arena)
        self.pads = self.arena.get_boost_pads()
        self.ball = self.arena.ball.get_state()
        self._recorder = EventRecorder(self.arena, mode.credits)
        self._take(cars)

    # --- kickoffs --------------------------------------------------------------------------

    def line_up(self) -> None:
        """Put fresh cars on kickoff spots, the ball on its own, all pads full.

        Both teams get the same spots, turned by 180 degrees: as the game does it.
        """
        most = max(self._teams.count(0), self._teams.count(1))
        spots = self._kickoff_random.sample(self.physics.mode.spawns, most)
        if self.physics.mode.serve is not None:
            self._served = self._kickoff_random.choice((BLUE, ORANGE))
        placed = [0, 0]
        states = []
        for team in self._teams:
            x, y, yaw = spots[placed[team]]
            placed[team] += 1
            if team == ORANGE:
                x, y, yaw = -x, -y, yaw + 1.0
            state = rsim.CarState()
            state.pos = rsim.Vec(x, y, _SPAWN_Z)
            state.rot_mat = rsim.Angle(yaw * math.pi, 0.0, 0.0).as_rot_mat()
            state.boost = self.physics.spawn_boost
            states.append(state)
        self._cars_set.clear()
        self._ball_set = False
        self._reset(states, moving=False)

    def go(self, jumps_held: Sequence[bool]) -> None:
        """Put fresh cars where the present ones have settled, at rest, and let the match begin.

        What a client has set in the countdown stays: such a car keeps its boost and moves on as it
        moves now, and so does the ball.

        Args:
            jumps_held: For each slot, whether jump is held down now; such a car does not jump
                until the button was let go.
        """
        states = []
        for slot, (settled, jump) in enumerate(zip(self.states, jumps_held, strict=True)):
            state = rsim.CarState()
            state.pos = settled.pos
            state.rot_mat = settled.rot_mat
            state.wheels_with_contact = settled.wheels_with_contact
            state.is_on_ground = settled.is_on_ground
            state.last_controls = rsim.CarControls(jump=bool(jump))
            state.boost = self.physics.spawn_boost
            if slot in self._cars_set:
                state.vel, state.ang_vel, state.boost = settled.vel, settled.ang_vel, settled.boost
            states.append(state)
        self._reset(states, moving=True, ball=self.ball if self._ball_set else None)
        if self.on_kickoff is not None:
            self.on_kickoff(self.arena, self.cars)

    def _reset(
        self, states: Sequence[rsim.CarState], moving: bool, ball: rsim.BallState | None = None
    ) -> None:
        """Set ball, cars and pads in the order in which RLGym's engine does.

        Args:
            states: One for each slot.
            moving: Whether a ball that is served is served now.
            ball: The ball, where a client has set it.
        """
        kickoff_ball = self.physics.mode.kickoff_ball(self._served, moving)
        self.arena.ball.set_state(kickoff_ball)
        try:
            self._take(place_cars(self.arena, self._teams, self._hitboxes))
        except RuntimeError:  # this arena does not give the pinned order of cars any more
            self._new_arena()
        if ball is None and self.physics.mode is not SOCCAR:
            ball = kickoff_ball
        for car, state in zip(self.cars, states, strict=True):
            car.set_state(state)
        if ball is not None:  # only now: placing the cars leaves the ball of RocketSim's own kickoff
            self.arena.ball.set_state(ball)
        for pad in self.pads:
            state = rsim.BoostPadState()
            if not self.physics.has_pads:
                state.is_active, state.cooldown = False, _NEVER
            pad.set_state(state)
        self._read()
        self._boost = [state.boost for state in self.states]

    def _take(self, cars: list[rsim.Car]) -> None:
        self.cars = cars
        self._step = self.physics.stepper(self.arena, cars, self._held)
        self._recorder.know(cars)
        self._changed = [True] * len(cars)
        self._read()

    # --- state setting ---------------------------------------------------------------------

    def set_car(self, slot: int, state: rsim.CarState) -> None:
        """Set a car between two ticks; boost that is taken away counts as not used."""
        self.cars[slot].set_state(state)
        self.states[slot] = self.cars[slot].get_state()
        self._boost[slot] = self.states[slot].boost
        self._cars_set.add(slot)

    def set_ball(self, state: rsim.BallState) -> None:
        """Set the ball between two ticks."""
        self.arena.ball.set_state(state)
        self.ball = self.arena.ball.get_state()
        self._ball_set = True

    def set_all(self, ball: rsim.BallState, cars: Sequence[rsim.CarState]) -> None:
        """Set the ball and all cars between two ticks, with fresh cars; pads go on as they are.

        Args:
            ball: The ball.
            cars: One for each slot.
        """
        pads = [pad.get_state() for pad in self.pads]
        try:
            self._take(place_cars(self.arena, self._teams, self._hitboxes))
        except RuntimeError:  # this arena does not give the pinned order of cars any more
            self._new_arena()
        for pad, state in zip(self.pads, pads, strict=True):
            pad.set_state(state)
        for slot, state in enumerate(cars):
            self.set_car(slot, state)
        self.set_ball(ball)

    def take_over(self, earlier: "Simulation", kept: Mapping[int, int]) -> None:
        """Go on where another simulation is: its ball, pads, drawn spots, and the cars that are kept.

        The other cars come where demolished ones do.

        Args:
            earlier: The other one, with the same physics.
            kept: Slots here, with those of the same cars there.
        """
        self._kickoff_random, self._respawn_random = earlier._kickoff_random, earlier._respawn_random
        self._served = earlier._served
        states = list(self.states)
        for slot, before in kept.items():
            states[slot] = earlier.states[before]
            self.boost_used[slot] = earlier.boost_used[before]
        for pad, other in zip(self.pads, earlier.pads, strict=True):
            pad.set_state(other.get_state())
        self.set_all(earlier.ball, states)
        for slot, car in enumerate(self.cars):
            for _ in range(0 if slot in kept else _RESPAWN_TRIES):
                car.respawn(seed=self._respawn_random.getrandbits(31))
                place = car.get_state().pos.as_tuple()
                others = [one.get_state().pos.as_tuple() for one in self.cars if one is not car]
                if all(math.dist(place, other) > _APART for other in others):
                    break
        self._cars_set.clear()
        self._ball_set = earlier._ball_set
        self._read()
        self._boost = [state.boost for state in self.states]

    def set_hitbox(self, slot: int, hitbox: int) -> None:
        """Give a car another hitbox where it is; all cars are made anew between two ticks."""
        if hitbox == self._hitboxes[slot]:
            return
        self._hitboxes[slot] = hitbox
        by_clients = set(self._cars_set), self._ball_set
        self.set_all(self.ball, list(self.states))
        self._cars_set, self._ball_set = by_clients

    def set_gravity(self, gravity_z: float) -> None:
        """Set gravity for the rest of the match [uu/s^2, negative is down]."""
        self.physics = replace(self.physics, gravity_z=gravity_z)
        config = self.arena.get_mutator_config()
        config.gravity = rsim.Vec(0.0, 0.0, gravity_z * self.physics.factors.get("gravity", 1.0))
        set_mutators(self.arena, config)
        self._step = self.physics.stepper(self.arena, self.cars, self._held)  # it knows gravity

    # --- ticks -----------------------------------------------------------------------------

    def hold(self, slot: int, controls: rsim.CarControls) -> None:
        """Hold controls from the next tick on, until others come."""
        self._held[slot] = controls
        self._changed[slot] = True

    def settle(self) -> None:
        """Go on by a tick of the countdown: inputs do not act."""
        self._recorder.clear()
        self._step(1)
        self._read()

    def step(self) -> None:
        """Go on by a tick with the controls held."""
        for slot, state in enumerate(self.states):
            if self._changed[slot]:
                self.cars[slot].set_controls(self._held[slot])
                self._changed[slot] = False
            # RocketSim would choose the spot by itself when the timer ends, one tick from now.
            if state.is_demoed and state.demo_respawn_timer <= 1.5 * TICK_SECONDS:
                # Its boost comes from the mutators; `respawn` crashes when it is given any.
                self.cars[slot].respawn(seed=self._respawn_random.getrandbits(31))
                self._boost[slot] = self.physics.spawn_boost
        self._recorder.clear()
        self._step(1)
        self._read()
        for slot, state in enumerate(self.states):
            boost = state.boost
            if boost < self._boost[slot]:
                self.boost_used[slot] += self._boost[slot] - boost
            self._boost[slot] = boost

    def ball_on_floor(self) -> bool:
        """Tell whether the ball lies on the floor or has bounced off it in the latest tick."""
        return self.physics.mode.meets_floor(self.ball, self._last_ball, bool(self.events.touches))

    def _read(self) -> None:
        self.states: list[rsim.CarState] = [car.get_state() for car in self.cars]
        self._last_ball = self.ball
        self.ball = self.arena.ball.get_state()
