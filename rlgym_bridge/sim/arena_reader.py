"""Read a RocketSim arena into a match of `MatchState`, and write it back."""

import struct
from collections.abc import Mapping, Sequence
from operator import attrgetter

import numpy as np
import RocketSim as rsim

from rlgym_bridge.game import (
    BOOST_PER_SECOND,
    DODGE_DEADLINE_SECONDS,
    DODGE_DEADZONE,
    FLIP_TORQUE_SECONDS,
    GOAL_THRESHOLD_Y,
    GRAVITY,
    RLGYM_BOOST_PER_SECOND,
    Phase,
)
from rlgym_bridge.sim.arena import place_cars, scale_constants, set_mutators
from rlgym_bridge.state import KNOWN_FIELDS, MatchState, layout_of

_VECTORS = attrgetter("pos", "rot_mat", "vel", "ang_vel")
_SCALARS = attrgetter(
    "boost", "demo_respawn_timer", "wheels_with_contact", "supersonic_time", "time_spent_boosting",
    "handbrake_val", "has_jumped", "last_controls", "is_jumping", "jump_time", "has_flipped",
    "has_double_jumped", "air_time_since_jump", "flip_time", "flip_rel_torque",
    "is_auto_flipping", "auto_flip_timer", "auto_flip_torque_scale", "car_contact_cooldown_timer",
    "car_contact_id",
)  # fmt: skip
_CONTROLS = attrgetter(
    "throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake"
)  # fmt: skip
_KNOWN = (1.0,) * len(KNOWN_FIELDS)
_FLIP_TORQUE = float(np.float32(FLIP_TORQUE_SECONDS))


class ArenaReader:
    """A reader of one arena, which keeps what RocketSim does not: touches, and the order of the cars.

    Takes the arena's ball touch callback, unless told not to. After `place_cars` make a new reader.

    Args:
        arena: The arena.
        cars: Its cars in the order of the state: blue first, then orange.
        hitboxes: Hitbox number of each car (RocketSim does not tell); all Octane when None.
        counts_touches: Whether to take the callback; without it touches are 0.

    Raises:
        ValueError: The cars are not ordered blue first.
    """

    def __init__(
        self,
        arena: rsim.Arena,
        cars: Sequence[rsim.Car],
        hitboxes: Sequence[int] | None = None,
        counts_touches: bool = True,
    ) -> None:
        teams = [int(car.team) for car in cars]
        if teams != sorted(teams):
            raise ValueError(f"cars have teams {teams}, expected blue (0) first, then orange (1)")
        self.arena = arena
        self.cars = list(cars)
        self.blue, self.orange = teams.count(0), teams.count(1)
        self._teams = teams
        self._hitboxes = list(hitboxes) if hitboxes is not None else [0] * len(teams)
        self._rows = {car.id: row for row, car in enumerate(cars)}
        self._touches = [0] * len(teams)
        self._pack = struct.Struct(layout_of(self.blue, self.orange).format).pack_into
        if counts_touches:
            arena.set_ball_touch_callback(self._on_touch)

    def _on_touch(self, arena: rsim.Arena, car: rsim.Car, data: object) -> None:
        self._touches[self._rows[car.id]] += 1

    def clear_touches(self) -> None:
        """Count touches anew: called when a decision has seen them."""
        self._touches = [0] * len(self.cars)

    def read_into(self, state: MatchState, match: int = 0) -> None:
        """Fill one match of `state`, derived fields included.

        `frame` is the arena's tick count, the phase is Active; clock and overtime are 0.
        """
        values: list[float] = self._match_values()
        for row in range(len(self.cars)):
            values += self._car_values(row)
        self._pack(state.buffer[match], 0, *values)

    def _match_values(self) -> list[float]:
        arena = self.arena
        mutators = arena.get_mutator_config()
        ball = arena.ball.get_state()
        position, rotation, velocity, spin = _VECTORS(ball)
        forward, right, up = rotation.forward, rotation.right, rotation.up
        return [
            arena.tick_count, Phase.ACTIVE, 0.0, 0.0, arena.blue_score, arena.orange_score,
            abs(position.y) > GOAL_THRESHOLD_Y,
            -mutators.gravity.z / GRAVITY,
            mutators.boost_used_per_second / RLGYM_BOOST_PER_SECOND, DODGE_DEADZONE, 1.0,
            position.x, position.y, position.z,
            forward.x, right.x, up.x, forward.y, right.y, up.y, forward.z, right.z, up.z,
            velocity.x, velocity.y, velocity.z, spin.x, spin.y, spin.z,
            *[pad.get_state().cooldown for pad in arena.get_boost_pads()],
        ]  # fmt: skip

    def _car_values(self, row: int) -> tuple[float, ...]:
        car = self.cars[row].get_state()
        position, rotation, velocity, spin = _VECTORS(car)
        forward, right, up = rotation.forward, rotation.right, rotation.up
        (
            boost, respawn, wheels, supersonic, boosting, handbrake, has_jumped, controls,
            is_jumping, jump_time, has_flipped, has_double_jumped, air_time, flip_time, torque,
            autoflipping, autoflip_timer, autoflip_direction, bump_cooldown, bumped,
        ) = _SCALARS(car)  # fmt: skip
        victim = self._rows.get(bumped, -1) if bump_cooldown > 0 else -1
        # As `derive` has them, which is slower for the few cars of a match.
        on_ground = sum(wheels) >= 3
        has_flip = air_time < DODGE_DEADLINE_SECONDS and not (has_flipped or has_double_jumped)
        derived = (
            on_ground, respawn > 0, boosting > 0, supersonic > 0, has_flipped and flip_time <= _FLIP_TORQUE,
            has_flip, has_flip and not (controls.jump or on_ground),
        )  # fmt: skip
        return (
            row, self._teams[row], self._hitboxes[row], position.x, position.y, position.z,
            forward.x, right.x, up.x, forward.y, right.y, up.y, forward.z, right.z, up.z,
            velocity.x, velocity.y, velocity.z, spin.x, spin.y, spin.z,
            boost, respawn, *wheels, supersonic, boosting, handbrake, has_jumped, controls.jump,
            is_jumping, jump_time, has_flipped, has_double_jumped, air_time, flip_time,
            torque.x, torque.y, torque.z, autoflipping, autoflip_timer, autoflip_direction,
            victim, self._touches[row], *_CONTROLS(controls), *derived, *_KNOWN,
        )  # fmt: skip


def read_arenas(readers: Sequence[ArenaReader], state: MatchState) -> None:
    """Fill `state` from one arena a match."""
    for match, reader in enumerate(readers):
        reader.read_into(state, match)


def read_arena(reader: ArenaReader) -> MatchState:
    """Return a new state of one match."""
    state = MatchState(reader.blue, reader.orange)
    read_arenas([reader], state)
    return state


def write_arena(
    arena: rsim.Arena, state: MatchState, match: int = 0, config: rsim.MutatorConfig | None = None,
    factors: Mapping[str, float] | None = None,
) -> list[rsim.Car]:  # fmt: skip
    """Put an arena into one match of `state`, with fresh cars in the pinned order.

    The calls and their order are those of RLGym's engine, so that both go on alike to the bit. It is
    not a restore: wheel forces and contact caches are not in the state (about 26 uu off after one
    second of random driving; exact where the cars stand still).

    Args:
        arena: The arena; its cars are replaced.
        state: The state to set; cars take their `controls` on the first tick.
        match: Number of the match.
        config: Mutators to begin with; None takes the arena's.
        factors: Multiples of its constants, see `scale_constants`.

    Returns:
        The new cars, in the order of the state.

    Raises:
        RuntimeError: The pinned car order did not come up; see `place_cars`.
    """
    mutators = arena.get_mutator_config() if config is None else config
    mutators.gravity = rsim.Vec(0, 0, -GRAVITY * float(state.gravity[match]))
    consumption = float(state.boost_consumption[match]) * RLGYM_BOOST_PER_SECOND
    near_default = abs(consumption - BOOST_PER_SECOND) < 1e-4  # float32 in the state
    mutators.boost_used_per_second = BOOST_PER_SECOND if near_default else consumption
    scale_constants(mutators, factors or {})
    set_mutators(arena, mutators)
    teams = [int(team) for team in state.car_team[match]]
    cars = place_cars(arena, teams, [int(box) for box in state.car_hitbox[match]])
    ball = rsim.BallState()
    ball.pos = rsim.Vec(*state.ball_position[match].tolist())
    ball.vel = rsim.Vec(*state.ball_linear_velocity[match].tolist())
    ball.ang_vel = rsim.Vec(*state.ball_angular_velocity[match].tolist())
    ball.rot_mat = rsim.RotMat(*state.ball_rotation[match].T.ravel().tolist())
    arena.ball.set_state(ball)
    for row, car in enumerate(cars):
        car.set_state(car_state(state, match, row, cars))
        car.set_controls(control_of(state.car_controls[match, row].tolist()))
    for pad, timer in zip(arena.get_boost_pads(), state.pad_timer[match].tolist(), strict=True):
        pad_state = rsim.BoostPadState()
        pad_state.cooldown = timer
        pad_state.is_active = timer <= 0
        pad.set_state(pad_state)
    return cars


def control_of(row: Sequence[float]) -> rsim.CarControls:
    """Return a control row (8 numbers, `game.CONTROL_NAMES`) as RocketSim's controls."""
    controls = rsim.CarControls()
    controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll = row[:5]
    controls.jump, controls.boost, controls.handbrake = (value > 0 for value in row[5:])
    return controls


_WRITTEN = (
    ("boost", "boost_amount"),
    ("demo_respawn_timer", "demo_respawn_timer"),
    ("supersonic_time", "supersonic_time"),
    ("time_spent_boosting", "boost_active_time"),
    ("handbrake_val", "handbrake"),
    ("jump_time", "jump_time"),
    ("air_time_since_jump", "air_time_since_jump"),
    ("flip_time", "flip_time"),
    ("auto_flip_timer", "autoflip_timer"),
    ("auto_flip_torque_scale", "autoflip_direction"),
)
_WRITTEN_FLAGS = (
    ("is_demoed", "is_demoed"),
    ("is_on_ground", "on_ground"),
    ("is_supersonic", "is_supersonic"),
    ("has_jumped", "has_jumped"),
    ("is_jumping", "is_jumping"),
    ("has_flipped", "has_flipped"),
    ("is_flipping", "is_flipping"),
    ("has_double_jumped", "has_double_jumped"),
    ("is_auto_flipping", "is_autoflipping"),
)


def car_state(state: MatchState, match: int, row: int, cars: Sequence[rsim.Car] = ()) -> rsim.CarState:
    """Return one car of a state as RocketSim's; its bump victim only where the arena's `cars` are given."""
    car = rsim.CarState()
    car.pos = rsim.Vec(*state.car_position[match, row].tolist())
    car.vel = rsim.Vec(*state.car_linear_velocity[match, row].tolist())
    car.ang_vel = rsim.Vec(*state.car_angular_velocity[match, row].tolist())
    car.rot_mat = rsim.RotMat(*state.car_rotation[match, row].T.ravel().tolist())
    car.wheels_with_contact = tuple(wheel > 0 for wheel in state.car_wheels_with_contact[match, row].tolist())
    for theirs, ours in _WRITTEN:
        setattr(car, theirs, float(getattr(state, "car_" + ours)[match, row]))
    for theirs, ours in _WRITTEN_FLAGS:
        setattr(car, theirs, bool(getattr(state, "car_" + ours)[match, row] > 0))
    car.flip_rel_torque = rsim.Vec(*state.car_flip_torque[match, row].tolist())
    car.last_controls = control_of(state.car_controls[match, row].tolist())
    victim = int(state.car_bump_victim[match, row])
    if 0 <= victim < len(cars):
        car.car_contact_id = cars[victim].id
    return car
