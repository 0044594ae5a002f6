"""Many arenas at once are the same arenas as one by one: states, trajectories, delays, respawns."""

import numpy as np
import pytest

from rlgym_bridge.clock import Clock, Event, Timing
from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.rlgym_state import from_rlgym, to_rlgym
from rlgym_bridge.game import BALL_REST_Z, Phase
from rlgym_bridge.sim.arena import ArenaReader, control_of, make_arena, read_arena, write_arena
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.state import MatchState, derive
from tests.support.reference_loop import FreshEngine
from tests.support.states import kickoff, ram

TABLE = LookupTableAction().parse_batch(np.arange(90)[None])[0, :, 0]


def kickoffs(team_size: int, matches: int) -> MatchState:
    one = kickoff(team_size)
    return MatchState(team_size, team_size, matches, np.repeat(one.buffer, matches, 0))


def started(matches: int, team_size: int, **options: object) -> RocketSim2:
    arenas = RocketSim2(matches, team_size, team_size, thrust=False, **options)
    arenas.put(range(matches), kickoffs(team_size, matches))
    return arenas


def held(rng: np.random.Generator, matches: int, cars: int, ticks: int = 8) -> np.ndarray:
    rows = TABLE[rng.integers(90, size=(matches, cars))]
    return np.broadcast_to(rows[:, :, None], (matches, cars, ticks, 8))


@pytest.mark.parametrize("team_size", [1, 2, 3])
@pytest.mark.parametrize("changing", [False, True], ids=["rows held", "rows changing"])
def test_trajectories_are_rlgyms_to_the_bit(team_size: int, changing: bool) -> None:
    start = kickoff(team_size)
    start.ball_position[0] = start.car_position[0, 0] + 700 * start.car_rotation[0, 0, :, 0]
    start.ball_position[0, 2] = BALL_REST_Z
    ahead = start.car_rotation[0, 0, :, 0].copy()  # and an orange car runs into the blue one from behind
    start.car_position[0, team_size] = start.car_position[0, 0] - 400 * ahead
    start.car_rotation[0, team_size] = start.car_rotation[0, 0]
    start.car_linear_velocity[0, team_size] = 1500 * ahead
    derive(start)
    arenas = RocketSim2(1, team_size, team_size, thrust=False)
    arenas.put([0], start)
    engine = FreshEngine(rlbot_delay=True)
    engine._tick_count = 0
    engine.set_state(to_rlgym(start), {})
    rng = np.random.default_rng(team_size)
    touches = bumps = 0
    for step in range(250):
        rows = held(rng, 1, 2 * team_size)
        if changing:
            rows = TABLE[rng.integers(90, size=rows.shape[:3])]
        if step < 60:  # into the ball first
            straight = [1, 0, 0, 0, 0, 0, step % 3 > 0, 0]
            rows = np.broadcast_to(np.array(straight, np.float32), rows.shape)
        arenas.step(rows)
        theirs = from_rlgym(engine.step(dict(zip(engine._cars, rows[0], strict=True)), {}))
        ours = arenas.state
        if ours.car_is_demoed.any():
            break  # RLGym's respawns are random
        for name in (*(f"ball_{n}" for n in BODY), *(f"car_{n}" for n in BODY), "car_boost_amount"):
            assert getattr(ours, name).tobytes() == getattr(theirs, name).tobytes(), name
        np.testing.assert_array_equal(ours.pad_timer, theirs.pad_timer)
        np.testing.assert_array_equal(ours.car_ball_touches, theirs.car_ball_touches)
        np.testing.assert_array_equal(ours.car_is_holding_jump, theirs.car_is_holding_jump)
        touches += ours.car_ball_touches.sum()
        bumps += (ours.car_bump_victim >= 0).any()
    assert touches and bumps, (touches, bumps)
    del engine._arena


BODY = ("position", "rotation", "linear_velocity", "angular_velocity")


@pytest.mark.parametrize("delay", [0, 1, 2, 5, 8, 11, 16, 21])
@pytest.mark.parametrize("changing", [False, True], ids=["rows held", "rows changing"])
def test_rows_act_on_the_ticks_of_a_live_matchs_clock(delay: int, changing: bool) -> None:
    rng = np.random.default_rng(delay)
    decisions = [TABLE[rng.integers(90, size=(2, 8))] for _ in range(30)]
    if not changing:
        decisions = [np.broadcast_to(rows[:, :1], rows.shape) for rows in decisions]
    arenas = started(1, 1)
    for rows in decisions:
        arenas.step(rows[None], [delay])
    arena, _ = make_arena([])
    cars = write_arena(arena, kickoff(1))
    clock, coming = Clock(Timing(action_delay=delay), cars=2), iter(decisions)
    for tick in range(8 * len(decisions)):
        if clock.see(tick, Phase.KICKOFF) in (Event.DECIDE, Event.RESET):
            clock.submit(list(next(coming)))
        row = clock.row()
        for car, one in zip(cars, row, strict=True):
            car.set_controls(control_of(one.tolist()))
        arena.step(1)
    there = read_arena(ArenaReader(arena, cars))
    assert there.car_position.tobytes() == arenas.state.car_position.tobytes()
    np.testing.assert_array_equal(arenas.state.car_controls[0], np.array(row))


@pytest.mark.parametrize(
    "late", [[(3, 12)] * 5, [(n, n) for n in (3, 1, 5, 0, 8, 2)]], ids=["one for each car", "changing"]
)
def test_delays_cut_old_rows_or_hold_the_last(late: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(0)
    rows = TABLE[rng.integers(90, size=(len(late), 1, 2, 8))]  # another row every tick
    arenas, ticks = started(1, 1), started(1, 1)
    drives = np.zeros((len(late) * 8, 2, 8), np.float32)
    for step, delays in enumerate(late):
        arenas.step(rows[step], np.array([delays]))
        for car, delay in enumerate(delays):
            first = step * 8 + delay
            drives[first:, car] = rows[step, 0, car, -1]  # held until something newer comes
            drives[first : first + 8, car] = rows[step, 0, car, : max(0, len(drives) - first)]
    for drive in drives:
        ticks.step(drive[None, :, None], [0])
    np.testing.assert_array_equal(arenas.state.car_position, ticks.state.car_position)
    np.testing.assert_array_equal(arenas.state.car_rotation, ticks.state.car_rotation)
    np.testing.assert_array_equal(arenas.state.car_controls[0], drives[-1])


def test_rows_that_wait_are_gone_with_the_match_they_were_for() -> None:
    rng = np.random.default_rng(0)
    fresh, used = started(1, 1), started(1, 1)
    used.step(held(rng, 1, 2), [20])
    used.put([0], kickoff(1))
    idle = np.zeros((1, 2, 24, 8), np.float32)
    for one in (fresh, used):
        one.step(idle, [0])
    np.testing.assert_array_equal(fresh.state.car_position, used.state.car_position)


def test_demolished_cars_come_back_where_the_seed_says() -> None:
    def play(seed: int) -> list[bytes]:
        arenas = RocketSim2(2, 2, 2, seed=seed)
        start = kickoffs(2, 2)
        for match in range(2):
            ram(start, match)
        derive(start)
        arenas.put([0, 1], start)
        rng, states, wrecks = np.random.default_rng(0), [], 0
        for _ in range(70):
            arenas.step(held(rng, 2, 4))
            wrecks += arenas.state.car_is_demoed.any(1).all()
            states.append(arenas.state.buffer.tobytes())
        assert wrecks and not arenas.state.car_is_demoed.any()
        return states

    once, again, other = play(3), play(3), play(4)
    assert once == again
    assert once[:40] == other[:40] and once[-1] != other[-1]


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="matches is 0, expected 1 or more"):
        RocketSim2(0, 1, 1)
    with pytest.raises(ValueError, match="1 states for 2 matches, expected one each"):
        started(2, 1).put([0, 1], kickoff(1))
    for wrong in ([-1], [0.5]):
        with pytest.raises(ValueError, match="expected whole ticks, 0 or more"):
            started(1, 1).step(np.zeros((1, 2, 8, 8), np.float32), wrong)


def test_full_throttle_and_boost_push_with_the_games_thrust() -> None:
    start = kickoffs(1, 2)
    start.car_position[..., 2], start.car_controls[1, :, 6], start.car_controls[1, :, 0] = 900, 1, 1
    start.car_wheels_with_contact[:] = 0
    derive(start)
    arenas = RocketSim2(2, 1, 1, thrust=True)
    arenas.put([0, 1], start)
    arenas.step(np.broadcast_to(start.car_controls[:, :, None], (2, 2, 8, 8)))
    speed = np.linalg.norm(arenas.state.car_linear_velocity[..., :2], axis=-1)
    np.testing.assert_allclose(speed[0], 0, atol=0.1)
    np.testing.assert_allclose(speed[1], 1058.33 * 8 / 120, rtol=2e-3)
