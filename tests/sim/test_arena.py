"""Arenas that play the same match twice, and the way from RocketSim to the state and back."""

import sys

import numpy as np
import pytest
import RocketSim as rsim
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator

from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.components.rlgym_state import from_rlgym, to_rlgym
from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.sim.arena import (
    ArenaReader,
    is_pinned,
    make_arena,
    place_cars,
    read_arena,
    set_mutators,
    write_arena,
)
from rlgym_bridge.state import derive
from tests.support.processes import run_to_end
from tests.support.reference_loop import FreshEngine
from tests.support.states import hash_of_a_chase, kickoff

TEAMS = [[0, 1], [0, 0, 1, 1], [0, 0, 0, 1, 1, 1], [0] * 4 + [1] * 4, [0, 0, 1], [1], []]


@pytest.mark.parametrize("teams", TEAMS, ids=str)
def test_cars_lie_in_the_pinned_order_whatever_the_team_sizes(teams: list[int]) -> None:
    arena, cars = make_arena(teams)
    assert [car.team for car in cars] == teams
    for _ in range(10):
        cars = place_cars(arena, teams)
        assert is_pinned(arena, cars)


@pytest.mark.parametrize("team_size", [1, 2, 3])
def test_a_used_arena_with_new_cars_plays_as_a_new_one(team_size: int) -> None:
    start = kickoff(team_size)
    teams = [0] * team_size + [1] * team_size
    arena, cars = make_arena(teams)
    hashes = []
    for seed in range(4):
        hash_of_a_chase(arena, cars, 150 + 30 * seed, seed)
        cars = write_arena(arena, start)
        hashes.append(hash_of_a_chase(arena, cars, 600, seed=99))
        cars = write_arena(arena, start)
    assert len(set(hashes)) == 1


@pytest.mark.parametrize("team_size", [1, 2, 3])
def test_rlgyms_engine_goes_on_alike_to_the_bit(team_size: int) -> None:
    start = kickoff(team_size)
    arena, _ = make_arena([])
    ours = hash_of_a_chase(arena, write_arena(arena, start), 600, seed=1)
    engine = FreshEngine(rlbot_delay=False)
    engine._tick_count = 0
    engine.set_state(to_rlgym(start), {})
    theirs = hash_of_a_chase(engine._arena, list(engine._cars.values()), 600, seed=1)
    assert ours == theirs


def test_another_process_plays_the_same_match() -> None:
    code = (
        "from rlgym_bridge.sim.arena import make_arena, write_arena;"
        "from tests.support.states import hash_of_a_chase, kickoff; arena, _ = make_arena([]);"
        "print(hash_of_a_chase(arena, write_arena(arena, kickoff(2)), 600, seed=3))"
    )
    runs = [run_to_end([sys.executable, "-c", code], check=True).stdout for _ in range(3)]
    assert len(set(runs)) == 1


def test_rlgyms_engine_may_have_loaded_the_meshes_before() -> None:
    code = (
        "from rlgym.rocket_league.sim import RocketSimEngine; RocketSimEngine();"
        "from rlgym_bridge.sim.arena import make_arena; make_arena([0, 1])"
    )
    run_to_end([sys.executable, "-c", code], check=True)


def test_the_reader_sees_what_rlgyms_engine_sees() -> None:
    engine = RocketSimEngine(rlbot_delay=False)
    game = engine.create_base_state()
    FixedTeamSizeMutator(2, 2).apply(game, {})
    KickoffMutator().apply(game, {})
    engine.set_state(game, {})
    cars = list(engine._cars.values())
    reader = ArenaReader(engine._arena, cars)
    rng = np.random.default_rng(0)
    rows = np.zeros((4, 8), np.float32)
    for tick in range(2000):
        if tick % 25 == 0:
            rows = rng.uniform(-1, 1, (4, 8)).astype(np.float32)
            rows[:, 5:] = rows[:, 5:] > 0
        theirs = from_rlgym(engine.step({name: rows[i : i + 1] for i, name in enumerate(engine._cars)}, {}))
        ours = read_arena(reader)
        for name in ("frame", "phase", "car_controls", "car_ball_touches"):  # not RLGym's, or the simulator's
            getattr(theirs, name)[:] = getattr(ours, name)
        assert ours.buffer.tobytes() == theirs.buffer.tobytes(), tick
    del engine._arena


def test_a_state_written_and_read_is_the_same_but_rounded() -> None:
    state = kickoff(2)
    arena, _ = make_arena([])
    cars = write_arena(arena, state)
    back = read_arena(ArenaReader(arena, cars))
    for name in ("frame", "phase", "car_controls"):
        getattr(back, name)[:] = getattr(state, name)
    np.testing.assert_allclose(back.buffer, state.buffer, atol=5e-4)


def test_wrong_line_ups_are_refused() -> None:
    with pytest.raises(ValueError, match="team 0 has 5 cars, expected at most 4"):
        make_arena([0] * 5)
    with pytest.raises(ValueError, match=r"teams are \[2\], expected 0 \(blue\) or 1"):
        make_arena([2])
    with pytest.raises(ValueError, match="1 hitboxes for 2 cars"):
        make_arena([0, 1], [0])
    with pytest.raises(ValueError, match=r"hitboxes are \[6\], expected numbers 0..5"):
        make_arena([0], [6])
    arena, cars = make_arena([1, 0])
    with pytest.raises(ValueError, match=r"cars have teams \[1, 0\], expected blue"):
        ArenaReader(arena, cars)


DRAG = 0.03 * 200  # uu/s^2 of the speed that it has after half a second, at most


def fall(arena: rsim.Arena, ticks: int = 60) -> float:
    """Return the ball's acceleration, uu/s^2 upwards."""
    before = arena.ball.get_state().vel.z
    for _ in range(ticks):
        arena.step(1)
    return (arena.ball.get_state().vel.z - before) / (ticks * TICK_SECONDS)


@pytest.mark.parametrize("lies", [True, False])
def test_a_resting_ball_falls_by_new_gravity_once_it_moves(lies: bool) -> None:
    arena, _ = make_arena([0])
    ball = arena.ball.get_state()
    ball.pos, ball.vel = rsim.Vec(0, 0, 1000), rsim.Vec(0, 0, 0 if lies else 1)
    arena.ball.set_state(ball)
    config = arena.get_mutator_config()
    config.gravity = rsim.Vec(0, 0, -325)
    set_mutators(arena, config)
    ball.vel = rsim.Vec(0, 0, 1)
    arena.ball.set_state(ball)
    assert fall(arena) == pytest.approx(-325, abs=DRAG)


def test_a_state_of_other_gravity_falls_by_it() -> None:
    arena, _ = make_arena([0, 1])
    state = blank_state(1, 1, 1)
    state.car_position[0] = [[2000, -3000, 17], [-2000, 3000, 17]]
    for gravity in (0.5, 1.0, 1.6):
        state.gravity[:] = gravity
        state.ball_position[0] = (0, 0, 1500)
        state.ball_linear_velocity[0] = (0, 0, 5)
        derive(state)
        write_arena(arena, state)
        assert fall(arena) == pytest.approx(-650 * gravity, abs=2 * DRAG)
        np.testing.assert_allclose(arena.get_mutator_config().gravity.z, -650 * gravity, rtol=1e-6)
