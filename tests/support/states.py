"""States to begin with: random ones, kickoffs, mirrored ones."""

import hashlib

import numpy as np
import RocketSim as rsim
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator

from rlgym_bridge.components.rlgym_state import from_rlgym
from rlgym_bridge.game import BIG_PADS, PAD_COUNT, PAD_POSITIONS
from rlgym_bridge.sim.arena import ArenaReader, control_of, make_arena, write_arena
from rlgym_bridge.state import CAR_FIELDS, MatchState, derive


def ram(state: MatchState, match: int) -> None:
    """Put the first orange car in the way of the first blue one, which is supersonic."""
    orange = state.layout.blue
    state.car_position[match, 0], state.car_position[match, orange] = (0, -3000, 17), (0, -2400, 17)
    for row, turn in ((0, 1), (orange, -1)):
        state.car_rotation[match, row] = [[0, -turn, 0], [turn, 0, 0], [0, 0, 1]]
    state.car_linear_velocity[match, 0] = (0, 2300, 0)
    state.car_supersonic_time[match, 0] = 0.5
    state.car_boost_amount[match] = 100


def kickoff(team_size: int, spots: tuple[int, ...] = (0, 4, 2, 1)) -> MatchState:
    """A kickoff with the game's boost consumption, as RLGym's mutators make it."""
    engine = RocketSimEngine()
    game = engine.create_base_state()
    FixedTeamSizeMutator(team_size, team_size).apply(game, {})
    KickoffMutator().apply(game, {})
    for row, (name, car) in enumerate(game.cars.items()):
        spot = spots[row % team_size]
        blue = name.startswith("blue")
        places = KickoffMutator.SPAWN_BLUE_POS if blue else KickoffMutator.SPAWN_ORANGE_POS
        yaws = KickoffMutator.SPAWN_BLUE_YAW if blue else KickoffMutator.SPAWN_ORANGE_YAW
        car.physics.position = places[spot].copy()
        car.physics.euler_angles = np.array([0, yaws[spot], 0], np.float32)
    game.config.boost_consumption = (100 / 3) / 33.3
    return from_rlgym(game)


TEAM_SIZES = [(1, 1), (2, 2), (3, 3), (1, 0), (0, 1), (1, 3), (3, 2)]


def random_rotations(rng: np.random.Generator, count: int) -> np.ndarray:
    axes, signs = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    axes *= np.sign(np.diagonal(signs, axis1=1, axis2=2))[:, None, :]
    axes[:, :, 2] *= np.linalg.det(axes)[:, None]
    return axes


def random_state(blue: int, orange: int, seed: int, matches: int = 1) -> MatchState:
    """Return legal matches: every field inside what the game can show, derived fields by formula."""
    rng = np.random.default_rng(seed)
    state, cars = MatchState(blue, orange, matches), blue + orange
    field, lift = np.array([4000, 5100, 1000]), np.array([0, 0, 1000])
    state.frame[:] = rng.integers(0, 10_000, matches)
    state.gravity[:], state.boost_consumption[:], state.dodge_deadzone[:] = 1, 1, 0.5
    state.ball_known[:] = 1
    state.ball_position[:] = rng.uniform(-field, field, (matches, 3)) + lift
    state.ball_linear_velocity[:] = rng.uniform(-3000, 3000, (matches, 3))
    state.ball_angular_velocity[:] = rng.uniform(-3, 3, (matches, 3))
    state.ball_rotation[:] = random_rotations(rng, matches)
    longest = np.where(np.isin(np.arange(PAD_COUNT), list(BIG_PADS)), 10, 4)
    state.pad_timer[:] = rng.uniform(0, longest, (matches, PAD_COUNT)) * rng.integers(
        0, 2, (matches, PAD_COUNT)
    )
    shape = (matches, cars)
    state.car_team[:] = np.arange(cars) >= blue
    state.car_position[:] = rng.uniform(-field, field, (*shape, 3)) + lift
    state.car_rotation[:] = random_rotations(rng, matches * cars).reshape(*shape, 3, 3)
    state.car_linear_velocity[:] = rng.uniform(-1300, 1300, (*shape, 3))
    state.car_angular_velocity[:] = rng.uniform(-5.5, 5.5, (*shape, 3))
    state.car_boost_amount[:] = rng.uniform(0, 100, shape)
    state.car_handbrake[:] = rng.uniform(0, 1, shape)
    state.car_wheels_with_contact[:] = rng.integers(0, 2, (*shape, 4))
    for name, most in (
        ("demo_respawn_timer", 3), ("supersonic_time", 2), ("boost_active_time", 2),
        ("air_time_since_jump", 2), ("flip_time", 1.3), ("jump_time", 0.2),
    ):  # fmt: skip
        getattr(state, "car_" + name)[:] = rng.uniform(0, most, shape) * rng.integers(0, 2, shape)
    for name in ("has_jumped", "is_holding_jump", "is_jumping", "has_flipped", "has_double_jumped"):
        getattr(state, "car_" + name)[:] = rng.integers(0, 2, shape)
    state.car_flip_torque[:] = rng.uniform(-1, 1, (*shape, 3))
    state.car_bump_victim[:] = -1
    state.car_known[:] = 1
    derive(state)
    return state


def mirrored(state: MatchState) -> MatchState:
    """Return the same match with teams and goals exchanged: orange's cars stand first, as blue."""
    blue, orange = state.layout.blue, state.layout.orange
    turned = MatchState(orange, blue, state.matches)
    rows = [*range(blue, blue + orange), *range(blue)]
    for field in CAR_FIELDS:
        getattr(turned, "car_" + field.name)[:] = getattr(state, "car_" + field.name)[:, rows]
    turned.car_team[:] = 1 - turned.car_team
    turn = np.array([-1, -1, 1])
    for name in ("position", "linear_velocity", "angular_velocity"):
        getattr(turned, "ball_" + name)[:] = getattr(state, "ball_" + name) * turn
        getattr(turned, "car_" + name)[:] *= turn
    turned.ball_rotation[:] = state.ball_rotation * turn[:, None]
    turned.car_rotation[:] *= turn[:, None]
    turned.pad_timer[:] = state.pad_timer[:, ::-1]
    return turned


def left_for_right(state: MatchState) -> MatchState:
    """Return the same match with left and right exchanged: x is reversed."""
    other = MatchState(state.layout.blue, state.layout.orange, state.matches, state.buffer.copy())
    turn, spin = np.array([-1, 1, 1]), np.array([1, -1, -1])
    for kind in ("ball", "car"):
        for name, signs in (("position", turn), ("linear_velocity", turn), ("angular_velocity", spin)):
            getattr(other, f"{kind}_{name}")[:] *= signs
        getattr(other, f"{kind}_rotation")[:] *= turn[:, None] * turn[[1, 0, 1]]  # right points the other way
    pads = np.array(PAD_POSITIONS)[:, :2]
    opposite = np.abs(pads[:, None] - pads * turn[:2]).sum(-1).argmin(0)
    other.pad_timer[:] = state.pad_timer[:, opposite]
    return other


def after_a_tick(state: MatchState) -> MatchState:
    """Return the matches a tick of RocketSim later; the first car has all touches of the ball."""
    later, touches = MatchState(state.layout.blue, state.layout.orange, state.matches), [0] * state.matches
    arena, _ = make_arena([])
    for match in range(state.matches):
        reader = ArenaReader(arena, write_arena(arena, state, match), state.car_hitbox[match].astype(int))

        def count(*, match: int = match, **_: object) -> None:
            touches[match] += 1

        arena.set_ball_touch_callback(count)
        arena.step(1)
        reader.read_into(later, match)
    later.car_ball_touches[:, 0] = touches
    derive(later)
    return later


def hash_of_a_chase(arena: rsim.Arena, cars: list[rsim.Car], ticks: int, seed: int) -> str:
    """Chase the ball with some noise; return a hash of every state on the way."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    for _ in range(ticks):
        ball = arena.ball.get_state().pos
        for car in cars:
            state = car.get_state()
            right = state.rot_mat.right
            side = (ball.x - state.pos.x) * right.x + (ball.y - state.pos.y) * right.y
            jump = float(rng.random() < 0.03)
            row = [1.0, float(np.clip(side / 400, -1, 1)), 0.0, 0.0, 0.0, jump, 1.0, 0.0]
            car.set_controls(control_of(row))
        arena.step(1)
        for part in arena.get_gym_state()[2:]:
            digest.update(part[..., 1:].tobytes())  # the first number is the car's id
        if any(car.get_state().is_demoed for car in cars):
            break
    return digest.hexdigest()
