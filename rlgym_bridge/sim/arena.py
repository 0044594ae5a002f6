"""Make RocketSim arenas that repeat a match exactly, read them into a `MatchState`, and write them back."""

import struct
from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge import game
from rlgym_bridge.state import KNOWN_FIELDS, MATCH_COLUMNS, MatchState, layout_of
from rlgym_bridge.user_input.extras import meshes_folder
from rlgym_bridge.user_input.failures import Failure

_WAKING_SPEED = 100.0  # uu/s: any that is not 0
_KICKOFF_SEED = 0  # any fixed seed
_PAD_SIDE = 100.0  # uu beside a big pad, whose reach is 208; two cars there do not touch
_PAD_HEIGHT = 90.0  # uu: wheels do not reach the floor, and the pad reaches up to 95 [RocketSim, RLConst]
_HIGH_UP = 1000.0  # uu, out of the way
_WARM_CARS = 120  # cars once held: enlarges the table. 3v3 pinned at once: 6 of 20 without, 19 with
_ORDER_TRIES = 60  # about 0.2 ms each; where they fail, a new arena (about 20 ms) shuffles the heap
_ARENA_TRIES = 20


@cache
def init_meshes() -> None:
    """Load the collision meshes, once per process; raises FileNotFoundError where they are missing."""
    folder = meshes_folder()
    try:
        rsim.init(str(folder))
    except RuntimeError as error:
        if "Already inited" not in str(error):  # RLGym's engine has loaded the same meshes
            raise


def make_arena(
    teams: Sequence[int], hitboxes: Sequence[int] | None = None, mode: int = rsim.GameMode.SOCCAR
) -> tuple[rsim.Arena, list[rsim.Car]]:
    """Make an arena whose cars lie in the pinned internal order, and return it with its cars.

    RocketSim keeps its cars in a hash set of pointers, so the order in which it walks them depends on the
    allocator; it matters where wheels stand on other cars. The pinned order is that of a set without
    collisions. So two arenas made alike, given the same states and controls, go on alike to the bit, in
    another process too. Hitboxes are all Octane when None. Raises ValueError for teams or hitboxes that do
    not exist, RuntimeError if the order did not come up in 20 arenas.
    """
    init_meshes()
    for _ in range(_ARENA_TRIES):
        arena = _warm_arena(mode)
        try:
            return arena, place_cars(arena, teams, hitboxes)
        except _OrderError:
            continue
    raise Failure(
        f"RocketSim did not give {len(teams)} cars the pinned order in {_ARENA_TRIES} arenas; "
        f"please report this with your RocketSim version and operating system"
    )


def set_mutators(arena: rsim.Arena, config: rsim.MutatorConfig) -> None:
    """Set an arena's mutators, and the gravity of a ball at rest, too, which RocketSim leaves out."""
    if config.gravity.as_tuple() == arena.get_mutator_config().gravity.as_tuple():
        arena.set_mutator_config(config)
        return
    ball, moving = arena.ball.get_state(), arena.ball.get_state()
    moving.vel = rsim.Vec(0, 0, _WAKING_SPEED)
    arena.ball.set_state(moving)
    arena.set_mutator_config(config)
    arena.ball.set_state(ball)


def scale_constants(config: rsim.MutatorConfig, factors: Mapping[str, float]) -> None:
    """Multiply constants of the physics in place, by the names of `physics.CONSTANTS`."""
    for name, factor in factors.items():
        if name == "gravity":
            config.gravity = rsim.Vec(0.0, 0.0, config.gravity.z * factor)
        else:
            setattr(config, name, getattr(config, name) * factor)


def place_cars(
    arena: rsim.Arena, teams: Sequence[int], hitboxes: Sequence[int] | None = None
) -> list[rsim.Car]:
    """Replace all cars by fresh ones, without the hidden state that used cars carry, and return these.

    Older car objects are invalid afterwards. Ball and pads are left as RocketSim's kickoff has them. Raises
    ValueError as `make_arena`, and RuntimeError where the order did not come up in this arena.
    """
    if hitboxes is None:
        hitboxes = [0] * len(teams)
    _check(teams, hitboxes)
    for attempt in range(_ORDER_TRIES):
        cars = _fresh(arena, teams, hitboxes, attempt)
        if is_pinned(arena, cars):
            return cars
    raise _OrderError(
        f"RocketSim did not give {len(teams)} cars the pinned order in {_ORDER_TRIES} tries; "
        f"make a new arena with make_arena"
    )


class _OrderError(RuntimeError):
    """The pinned car order did not come up; a new arena may have it."""


def _check(teams: Sequence[int], hitboxes: Sequence[int]) -> None:
    if any(team not in (game.BLUE, game.ORANGE) for team in teams):
        raise ValueError(f"teams are {list(teams)}, expected 0 (blue) or 1 (orange) for each car")
    for team in (game.BLUE, game.ORANGE):
        size = list(teams).count(team)
        if size > game.MOST_TEAM_SIZE:
            raise ValueError(f"team {team} has {size} cars, expected at most {game.MOST_TEAM_SIZE}")
    if len(hitboxes) != len(teams):
        raise ValueError(f"{len(hitboxes)} hitboxes for {len(teams)} cars, expected one for each")
    if any(not 0 <= box <= 5 for box in hitboxes):
        raise ValueError(f"hitboxes are {list(hitboxes)}, expected numbers 0..5 (game.HITBOXES)")


def _warm_arena(mode: int) -> rsim.Arena:
    arena = rsim.Arena(mode)
    for _ in range(_WARM_CARS):
        arena.add_car(game.BLUE, rsim.CarConfig.OCTANE)
    _remove_cars(arena)
    return arena


def _remove_cars(arena: rsim.Arena) -> None:
    """Remove all cars, last added first: contacts are solved in the order of freed handles."""
    for car in sorted(arena.get_cars(), key=lambda car: -car.id):
        arena.remove_car(car)


def _fresh(arena: rsim.Arena, teams: Sequence[int], hitboxes: Sequence[int], spare: int) -> list[rsim.Car]:
    """Replace all cars; blocks of memory held meanwhile move the new ones to other addresses."""
    _remove_cars(arena)
    held, cars = [], []
    for team, box in zip(teams, hitboxes, strict=True):
        held += [bytearray(1024 * (1 + (spare + block) % 5)) for block in range(spare)]
        cars.append(arena.add_car(team, box))
    return cars


def _walked_in_order(arena: rsim.Arena, cars: Sequence[rsim.Car], first: int) -> list[bool]:
    """Tell for each second pair of neighbours whether RocketSim walks its second car last."""
    places = [pad.get_pos() for pad in arena.get_boost_pads() if pad.is_big]
    ball = rsim.BallState()
    ball.pos = rsim.Vec(0, 0, _HIGH_UP)
    arena.ball.set_state(ball)
    for number, car in enumerate(cars):
        pair, side = divmod(number - first, 2)
        state = rsim.CarState()
        state.is_on_ground = False
        state.boost = 0.0
        state.pos = rsim.Vec(200.0 * number, 0, _HIGH_UP + 300.0)
        if number >= first:
            x = places[pair].x + (_PAD_SIDE if side else -_PAD_SIDE)
            state.pos = rsim.Vec(x, places[pair].y, _PAD_HEIGHT)
        car.set_state(state)
    for pad in arena.get_boost_pads():
        pad.set_state(rsim.BoostPadState())
    arena.step(1)
    boost = [car.get_state().boost for car in cars]
    return [boost[number + 1] > boost[number] for number in range(first, len(cars) - 1, 2)]


@cache
def _last_added_first() -> bool:
    """Measure which way this platform walks a set without collisions (GNU's library: last added first)."""
    arena = _warm_arena(rsim.GameMode.SOCCAR)
    pairs = (_fresh(arena, [game.BLUE, game.BLUE], [0, 0], spare) for spare in range(9))
    votes = [_walked_in_order(arena, pair, 0)[0] for pair in pairs]
    return votes.count(False) > votes.count(True)


def is_pinned(arena: rsim.Arena, cars: Sequence[rsim.Car]) -> bool:
    """Tell whether RocketSim walks the cars as a set without collisions would; leaves a kickoff behind."""
    pairs = (0, 1) if len(cars) > 1 else ()
    up = [after for first in pairs for after in _walked_in_order(arena, cars, first)]
    arena.reset_kickoff(_KICKOFF_SEED)
    return up == [not _last_added_first()] * len(up)


_VECTORS = attrgetter("pos", "rot_mat", "vel", "ang_vel")
_SCALARS = attrgetter(
    "boost", "demo_respawn_timer", "wheels_with_contact", "supersonic_time", "time_spent_boosting",
    "handbrake_val", "has_jumped", "last_controls", "is_jumping", "jump_time", "has_flipped",
    "has_double_jumped", "air_time_since_jump", "flip_time", "flip_rel_torque",
    "is_auto_flipping", "auto_flip_timer", "auto_flip_torque_scale", "car_contact_cooldown_timer",
    "car_contact_id",
)  # fmt: skip
_CONTROLS = attrgetter(*game.CONTROL_NAMES)
_KNOWN = (1.0,) * len(KNOWN_FIELDS)
_FLIP_TORQUE = float(np.float32(game.FLIP_TORQUE_SECONDS))


class ArenaReader:
    """A reader of one arena that knows the order of its cars; after `place_cars` make a new one.

    Cars are in the order of the state; raises ValueError unless that is blue first, then orange. RocketSim
    does not tell hitboxes: they are all Octane when None.
    """

    def __init__(
        self, arena: rsim.Arena, cars: Sequence[rsim.Car], hitboxes: Sequence[int] | None = None
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
        self._pack = struct.Struct(layout_of(self.blue, self.orange).format).pack_into

    def read_into(self, state: MatchState, match: int = 0) -> None:
        """Fill one match of `state`, derived fields included.

        `frame` is the arena's tick count, the phase Active; clock, overtime and touches are 0.
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
            arena.tick_count, game.Phase.ACTIVE, 0.0, 0.0, arena.blue_score, arena.orange_score,
            abs(position.y) > game.GOAL_THRESHOLD_Y,
            -mutators.gravity.z / game.GRAVITY,
            mutators.boost_used_per_second / game.RLGYM_BOOST_PER_SECOND, game.DODGE_DEADZONE, 1.0,
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
        has_flip = air_time < game.DODGE_DEADLINE_SECONDS and not (has_flipped or has_double_jumped)
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
            victim, 0.0, *_CONTROLS(controls), *derived, *_KNOWN,
        )  # fmt: skip


def read_arena(reader: ArenaReader) -> MatchState:
    """Return a new state of one match."""
    state = MatchState(reader.blue, reader.orange)
    reader.read_into(state)
    return state


def write_arena(
    arena: rsim.Arena, state: MatchState, match: int = 0, config: rsim.MutatorConfig | None = None,
    factors: Mapping[str, float] | None = None,
) -> list[rsim.Car]:  # fmt: skip
    """Put an arena into one match of `state`, with fresh cars in the pinned order, which are returned.

    The calls and their order are those of RLGym's engine, so that both go on alike to the bit. It is not a
    restore: wheel forces and contact caches are not in the state (about 26 uu off after one second of random
    driving; exact where the cars stand still). Cars take their `controls` on the first tick. `config` are the
    mutators to begin with, the arena's if None, whose constants `factors` multiply. Raises as `place_cars`.
    """
    mutators = arena.get_mutator_config() if config is None else config
    mutators.gravity = rsim.Vec(0, 0, -game.GRAVITY * float(state.gravity[match]))
    consumption = float(state.boost_consumption[match]) * game.RLGYM_BOOST_PER_SECOND
    near_default = abs(consumption - game.BOOST_PER_SECOND) < 1e-4  # float32 in the state
    mutators.boost_used_per_second = game.BOOST_PER_SECOND if near_default else consumption
    scale_constants(mutators, factors or {})
    set_mutators(arena, mutators)
    teams = [int(team) for team in state.car_team[match]]
    cars = place_cars(arena, teams, [int(box) for box in state.car_hitbox[match]])
    first = MATCH_COLUMNS["ball_position"]
    ball = set_body(rsim.BallState(), state.buffer[match, first : first + BODY_SIZE].tolist())
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


BODY_SIZE: Final = 18  # numbers of a body, which lie side by side in a state


def set_body(body: Any, numbers: Sequence[float]) -> Any:
    """Set place, rotation and velocities of a RocketSim state to numbers of a `MatchState`; return it."""
    body.pos, body.vel, body.ang_vel = (rsim.Vec(*numbers[at : at + 3]) for at in (0, 12, 15))
    body.rot_mat = rsim.RotMat(*numbers[3:12:3], *numbers[4:12:3], *numbers[5:12:3])
    return body


def control_of(row: Sequence[float]) -> rsim.CarControls:
    """Return a control row (8 numbers, `game.CONTROL_NAMES`) as RocketSim's controls."""
    controls = rsim.CarControls()
    controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll = row[:5]
    controls.jump, controls.boost, controls.handbrake = (value > 0 for value in row[5:])
    return controls


_NAMES: Final = {
    "boost": "boost_amount", "time_spent_boosting": "boost_active_time", "handbrake_val": "handbrake",
    "auto_flip_timer": "autoflip_timer", "auto_flip_torque_scale": "autoflip_direction",
    "is_on_ground": "on_ground", "is_auto_flipping": "is_autoflipping",
}  # fmt: skip
"""Fields of a car by RocketSim's names, if these are others."""

_FLOATS: Final = (
    "boost", "demo_respawn_timer", "supersonic_time", "time_spent_boosting", "handbrake_val", "jump_time",
    "air_time_since_jump", "flip_time", "auto_flip_timer", "auto_flip_torque_scale",
)  # fmt: skip
_FLAGS: Final = (
    "is_demoed", "is_on_ground", "is_supersonic", "has_jumped", "is_jumping", "has_flipped", "is_flipping",
    "has_double_jumped", "is_auto_flipping",
)  # fmt: skip


def car_state(state: MatchState, match: int, row: int, cars: Sequence[rsim.Car] = ()) -> rsim.CarState:
    """Return one car of a state as RocketSim's; its bump victim only where the arena's `cars` are given."""
    first = state.layout.column("position", car=row)
    car = set_body(rsim.CarState(), state.buffer[match, first : first + BODY_SIZE].tolist())
    car.wheels_with_contact = tuple(wheel > 0 for wheel in state.car_wheels_with_contact[match, row].tolist())
    for names, kind in ((_FLOATS, float), (_FLAGS, bool)):
        for name in names:
            setattr(car, name, kind(getattr(state, f"car_{_NAMES.get(name, name)}")[match, row]))
    car.flip_rel_torque = rsim.Vec(*state.car_flip_torque[match, row].tolist())
    car.last_controls = control_of(state.car_controls[match, row].tolist())
    victim = int(state.car_bump_victim[match, row])
    if 0 <= victim < len(cars):
        car.car_contact_id = cars[victim].id
    return car
