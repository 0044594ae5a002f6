"""Put RocketSim into a recorded state, and roll it forward with the recorded inputs.

`set_state` does not restore what is hidden: wheel forces, contacts, ramps, timers. So the simulation follows
the recording for a while before a window starts: set, step, set, step, ... set; what a step leaves hidden
stays. From there on it is free.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.compare.simulate.leads import control_changes, followed_moments, needs_rules, presses_of
from rlgym_bridge.compare.simulate.tracks import (
    BALL,
    BODY_SIZE,
    POSITION,
    ROTATION,
    SPIN,
    VELOCITY,
    Drive,
    Track,
    stands,
)
from rlgym_bridge.game import GRAVITY
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.arena import make_arena, place_cars
from rlgym_bridge.sim.arena_reader import car_state
from rlgym_bridge.sim.boost_thrust import use_game_thrust
from rlgym_bridge.sim.game_modes import mode_number
from rlgym_bridge.sim.game_rules import ROCKETSIM
from rlgym_bridge.sim.ruled_arena import RuledArena, nearest_cut

Adjust = Callable[[rsim.MutatorConfig], None]

_FULL_TANK: Final = 100.0
_MUTATED_GRAVITY: Final = 0.1
"""Share by which a recorded gravity has to differ from 1 to be the match's rule and no gap: the game's own
mutators are 0, 0.5, 1.75 and more [RLBot's match configuration]; a recording that knows none has 0."""

_SIDE_SPEED: Final = 15.0  # uu/s along its up axis below which a car on its wheels is settled [real: 8.3]
_FIRST_TARGET_SPEED: Final = 2900.0  # uu/s, of Heatseeker's ball [RocketSim, INITIAL_TARGET_SPEED]
_FAR: Final = (0.0, 0.0, 1500.0)  # where a ball that takes no part hangs


@dataclass(frozen=True)
class Path:
    """The simulated bodies from the start of a window on.

    Attributes:
        values: `(ticks + 1, bodies, 18)`, row 0 being the start.
        wheels: `(ticks + 1, bodies)` int, wheels of each car on something; 0 for the ball.
        jumped: `(bodies,)` bool: at the start a jump or dodge is in a car's memory.
    """

    values: np.ndarray
    wheels: np.ndarray
    jumped: np.ndarray


class RolloutArena:
    """An arena for some bodies of a recording.

    Boost is not used up, since what a car has left is recorded or unknown, and pads would differ; `Drive`
    lets go of the button where the recorded tank is empty.

    Args:
        recording: Whose match it is: teams, hitboxes, gravity.
        bodies: Rows of the cars, ascending, and `BALL` last where it takes part.
        adjust: Changes RocketSim's constants, to learn what such a change would do.
        rules: Names of the game's rules to step with, see `game_rules.parse_rules`.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
        ValueError: RocketSim does not play the recording's game mode.
    """

    def __init__(
        self,
        recording: Recording,
        bodies: Sequence[int],
        adjust: Adjust | None = None,
        rules: frozenset[str] = ROCKETSIM,
    ) -> None:
        self.bodies = tuple(bodies)
        self._state = recording.state
        rows = [body for body in bodies if body != BALL]
        self._line_up = (
            recording.state.car_team[0, rows].astype(int).tolist(),
            recording.state.car_hitbox[0, rows].astype(int).tolist(),
        )
        self._target_speed = recording.ball_target_speed
        self._arena, self._cars = make_arena(*self._line_up, mode_number(recording.mode))
        self._homing = recording.mode == "Heatseeker"
        self._arena.set_car_ball_collision(BALL in bodies)
        mutators = self._arena.get_mutator_config()
        gravity = float(np.median(recording.state.gravity))
        if gravity and abs(gravity - 1) > _MUTATED_GRAVITY:
            mutators.gravity = rsim.Vec(0, 0, -GRAVITY * gravity)
        mutators.boost_used_per_second = 0.0
        use_game_thrust(mutators, rules)
        if adjust is not None:
            adjust(mutators)
        self._hang_ball()  # gravity does not reach a ball at rest
        self._arena.set_mutator_config(mutators)
        self._rules = rules
        self._latest: tuple[Track, np.ndarray] | None = None

    def roll(
        self, track: Track, start: int, ticks: int, lead: float, drives: Sequence[Drive | None], skip: int = 0
    ) -> Path:
        """Follow a track up to one of its moments, and go on freely from there.

        Args:
            track: Of just these bodies.
            start: The moment, an index of the track.
            ticks: How far to go on.
            lead: Ticks to follow the recording before; at least the moment before the start, if there is one.
            drives: Inputs of each car, in the order of `bodies`; None for none.
            skip: Ticks of `ticks` after which the path begins: where only its end counts, that is quicker.

        Returns:
            The path.
        """
        # Fresh cars: used ones carry what is hidden from the window before.
        self._cars = place_cars(self._arena, *self._line_up) if self._cars else []
        moments = followed_moments(track, start, lead)
        times = track.times[moments]
        apart = np.maximum(np.round(np.diff(times)), 1).astype(int).tolist()
        pieces = zip(times.tolist(), [*apart, ticks], strict=True)
        ends = np.concatenate([time + np.arange(1, length + 1) for time, length in pieces])
        changes = control_changes(drives[: len(self._cars)], int(track.rows[start]), ends)
        run = _Run(RuledArena(self._arena, self._cars, self._rules, BALL in self.bodies), changes)
        states = [self._begin(track, moments[0], place) for place in range(len(self.bodies))]
        needed = needs_rules(apart, presses_of(changes)) if self._rules else [False] * len(apart)
        for moment, length, ruled in zip(moments[1:], apart, needed, strict=True):
            run.advance(length, ruled)
            states = [self._set(track, moment, place) for place in range(len(self.bodies))]
        jumped = np.array([isinstance(one, rsim.CarState) and _has_jumped(one) for one in states])
        values = np.empty((ticks + 1 - skip, len(self.bodies), BODY_SIZE))
        wheels = np.zeros((ticks + 1 - skip, len(self.bodies)), int)
        values[0] = track.values[start]
        wheels[0] = [_wheels(one) for one in states]
        for tick in range(1 if skip == 0 else 0, len(values)):
            run.advance(1 if tick else skip)
            states = [self._owner(place).get_state() for place in range(len(self.bodies))]
            values[tick] = [_numbers(one) for one in states]
            wheels[tick] = [_wheels(one) for one in states]
        return Path(values, wheels, jumped)

    def _owner(self, place: int) -> rsim.Ball | rsim.Car:
        return self._arena.ball if self.bodies[place] == BALL else self._cars[place]

    def _begin(self, track: Track, moment: int, place: int) -> rsim.BallState | rsim.CarState:
        """Put a body where the track starts, with all that the recording knows of it."""
        body = self.bodies[place]
        if body == BALL:
            return self._set(track, moment, place)
        state = car_state(self._state, int(track.rows[moment]), body)
        if stands(track.values[moment, place]):  # where wheels were not recorded they are not known to touch
            state.is_on_ground, state.wheels_with_contact = True, (True,) * 4
        self._cars[place].set_state(state)
        if BALL not in self.bodies and place == 0:
            self._hang_ball()
        return self._set(track, moment, place)

    def _hang_ball(self) -> None:
        """Put the ball into the air, where it moves."""
        ball = rsim.BallState()
        ball.pos, ball.vel = rsim.Vec(*_FAR), rsim.Vec(0, 0, 1)
        self._arena.ball.set_state(ball)

    def _set(self, track: Track, moment: int, place: int) -> rsim.BallState | rsim.CarState:
        """Put a body where the track is at a moment; what the track does not say stays."""
        owner = self._owner(place)
        values = self._values_of(track)[moment, place].tolist()
        state = owner.get_state()
        velocity, spin, turn = values[VELOCITY], values[SPIN], values[ROTATION]
        if isinstance(state, rsim.CarState):
            state.boost = _FULL_TANK
            if moment and _wheels(state) == 4 and "wheels" not in self._rules:
                velocity = _settled(velocity, state.vel.as_tuple(), turn[2::3])
        elif self._homing:
            self._aim(state, int(track.rows[moment]), velocity)
        state.pos = rsim.Vec(*values[POSITION])
        state.vel = rsim.Vec(*velocity)
        state.ang_vel = rsim.Vec(*spin)
        state.rot_mat = rsim.RotMat(*turn[0::3], *turn[1::3], *turn[2::3])
        owner.set_state(state)
        return state

    def _values_of(self, track: Track) -> np.ndarray:
        """Return a track's values; velocities with the digits that the game has and did not print."""
        if "velocity_cut" not in self._rules:
            return track.values
        if self._latest is None or self._latest[0] is not track:
            values = track.values.copy()
            values[..., VELOCITY] = nearest_cut(values[..., VELOCITY], 100)
            values[..., SPIN] = nearest_cut(values[..., SPIN], 10000)
            self._latest = track, values
        return self._latest[1]

    def _aim(self, ball: rsim.BallState, row: int, velocity: Sequence[float]) -> None:
        """Have Heatseeker's ball aim at the goal that it flies to, which recordings do not say.

        Its speed is what the recording says; else what it has, and at least that of a first touch.
        """
        told = float(self._target_speed[row]) if self._target_speed.size else 0.0
        speed = told or max(float(np.linalg.norm(velocity)), _FIRST_TARGET_SPEED)
        ball.heatseeker_target_dir = float(np.sign(velocity[1]))
        ball.heatseeker_target_speed = speed


class _Run:
    """An arena on its way, with the controls that its cars get.

    Args:
        arena: The arena.
        changes: Cars and their new controls before each tick, counted from 0; ascending.
    """

    def __init__(
        self, arena: RuledArena, changes: Mapping[int, Sequence[tuple[int, rsim.CarControls]]]
    ) -> None:
        self._arena, self._tick = arena, 0
        self._changes = iter(sorted(changes.items()))
        self._next = next(self._changes, None)

    def advance(self, ticks: int, ruled: bool = True) -> None:
        """Go on by some ticks, in as few steps as changes of controls allow; by rules or RocketSim alone."""
        end = self._tick + ticks
        while self._tick < end:
            if self._next is not None and self._next[0] == self._tick:
                for car, controls in self._next[1]:
                    self._arena.cars[car].set_controls(controls)
                self._next = next(self._changes, None)
            until = end if self._next is None else min(end, self._next[0])
            if ruled:
                self._arena.step(until - self._tick)
            else:
                self._arena.step_without_rules(until - self._tick)
            self._tick = until


def _settled(recorded: list[float], simulated: Sequence[float], up: Sequence[float]) -> list[float]:
    """Return the recorded velocity, but the simulated one across the ground where both are small.

    The game shows a settled car with 8.3 uu/s upwards, which moves it nowhere.
    """
    theirs = sum(map(mul, recorded, up))
    ours = sum(map(mul, simulated, up))
    if abs(theirs) < _SIDE_SPEED and abs(ours) < _SIDE_SPEED:
        return [part + (ours - theirs) * way for part, way in zip(recorded, up, strict=True)]
    return recorded


def _numbers(state: rsim.BallState | rsim.CarState) -> tuple[float, ...]:
    turn = state.rot_mat
    forward, right, up = turn.forward, turn.right, turn.up
    return (
        *state.pos.as_tuple(), *state.vel.as_tuple(), *state.ang_vel.as_tuple(),
        forward.x, right.x, up.x, forward.y, right.y, up.y, forward.z, right.z, up.z,
    )  # fmt: skip


def _wheels(state: rsim.BallState | rsim.CarState) -> int:
    return sum(state.wheels_with_contact) if isinstance(state, rsim.CarState) else 0


def _has_jumped(state: rsim.CarState) -> bool:
    return bool(state.has_jumped or state.has_flipped or state.has_double_jumped or state.is_jumping)
