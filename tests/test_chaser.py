import sys

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.game import BLUE, ORANGE, PAD_POSITIONS
from rlgym_bridge.policy.chaser import Charger, Chaser
from rlgym_bridge.sim.arena import ArenaReader, read_arena
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.state import MatchState, derive
from tests.support.chaser_matches import TABLE, DriveAtBall, Match, StandStill, play_match
from tests.support.processes import run_to_end
from tests.support.states import mirrored, random_state

SHARE_WON = {DriveAtBall: 0.70, StandStill: 0.95}
FIRST_SEED = 10_000  # none of these was used to tune the policy


def share_won(opponent: type, matches: int) -> float:
    won = 0
    for number in range(matches):
        players = [Chaser(), opponent()]
        chaser = number % 2  # sides alternate
        score = play_match(players[chaser], players[1 - chaser], FIRST_SEED + number).score
        won += score[chaser] > score[1 - chaser]
    return won / matches


def recorded_states(seed: int = 0, decisions: int = 450) -> list[MatchState]:
    match = Match((Chaser(), Chaser()), 1, seed)
    match.kickoff()
    states = []
    for _ in range(decisions):
        match.step()
        states.append(match.state.copy())
        if match.scored:
            match.kickoff()
    return states


def actions_of(chaser: Chaser, states: list[MatchState]) -> list[int]:
    return [int(chaser.act(None, state)[0, 0]) for state in states]


def chaser_for(seat: int, seed: int = 1) -> Chaser:
    chaser = Chaser()
    chaser.reset([seat], seed)
    return chaser


@pytest.mark.parametrize(
    ("opponent", "matches", "slack"),
    [
        (DriveAtBall, 6, 0.1),  # a sample
        *(pytest.param(opponent, 100, 0.0, marks=pytest.mark.slow) for opponent in SHARE_WON),
    ],
)
def test_it_beats_the_simple_bots(opponent, matches, slack):
    assert share_won(opponent, matches) >= SHARE_WON[opponent] - slack


@pytest.mark.parametrize("team", [BLUE, ORANGE])
def test_the_match_loop_counts_a_goal_for_the_team_that_shot_it(team: int) -> None:
    match = Match((StandStill(), StandStill()), 1, 0)
    match.kickoff()
    ball = rsim.BallState()
    ball.pos = rsim.Vec(300, 4900 if team == BLUE else -4900, 100)
    ball.vel = rsim.Vec(0, 3000 if team == BLUE else -3000, 0)
    match.arena.ball.set_state(ball)
    for _ in range(10):
        match.step()
    assert match.result.score == [int(team == BLUE), int(team == ORANGE)]


def test_equal_seeds_play_equally() -> None:
    states = recorded_states()
    assert actions_of(chaser_for(0), states) == actions_of(chaser_for(0), states)


def test_seats_and_kickoffs_differ() -> None:
    """Cars that see the same do not all do the same."""
    states = recorded_states(decisions=40)
    assert len({tuple(actions_of(chaser_for(0, seed), states)) for seed in range(8)}) > 1
    settled = states[3:4]  # at first the car hangs just above the floor
    starts = {tuple(actions_of(chaser_for(0, seed), settled * 3)) for seed in range(8)}
    assert len(starts) >= 3  # it reacts at once, one, or two decisions late


def test_a_kickoff_without_a_reset_is_noticed() -> None:
    start = recorded_states(decisions=4)[3]
    moving = start.copy()
    moving.ball_linear_velocity[:] = 500
    chaser = chaser_for(0)
    waits = set()
    for _ in range(12):
        waits.add(tuple(actions_of(chaser, [start] * 3)))
        chaser.act(None, moving)
    assert len(waits) > 1


def test_orange_plays_the_turned_field_as_blue_plays_it() -> None:
    for number in range(300):
        state = random_state(3, 0, number)
        blue, orange = Chaser(), Chaser()
        for chaser in (blue, orange):
            chaser.reset(range(3), 1)
        np.testing.assert_array_equal(blue.act(None, state), orange.act(None, mirrored(state)))


def test_matches_of_a_batch_do_not_mix() -> None:
    alone, batch = chaser_for(0), chaser_for(0)
    for number in range(100):
        state = random_state(1, 1, number, matches=3)
        first = MatchState(1, 1, 1, state.buffer[:1].copy())
        assert batch.act(None, state)[0] == alone.act(None, first)[0]


def test_cars_decided_together_decide_as_each_alone() -> None:
    together = Chaser()
    together.reset([4, 0, 2, 3, 1], 1)  # both teams, in any order
    alone = [chaser_for(car) for car in (4, 0, 2, 3, 1)]
    for number in range(100):
        state = random_state(2, 3, number)
        actions = together.act(None, state)[0].tolist()
        assert actions == [int(one.act(None, state)[0, 0]) for one in alone]


@pytest.mark.parametrize(("blue", "orange"), [(1, 0), (0, 1), (1, 1), (2, 3), (4, 4)])
def test_any_state_gives_an_action_of_the_table(blue: int, orange: int) -> None:
    chaser = Chaser()
    chaser.reset(range(blue + orange), 3)
    empty = MatchState(blue, orange, 2)  # no ball, no rotations, all at the origin
    for state in [empty, *(random_state(blue, orange, number, matches=2) for number in range(400))]:
        actions = chaser.act(None, state)
        assert actions.shape == (2, blue + orange)
        assert actions.dtype == np.int64
        assert actions.min() >= 0 and actions.max() < len(TABLE)


def test_a_demolished_car_keeps_still() -> None:
    state = recorded_states(decisions=60)[-1]
    state.car_demo_respawn_timer[:] = 2
    derive(state)
    assert not TABLE[chaser_for(0).act(None, state)[0, 0]].any()


@pytest.mark.parametrize("seed", range(12))
def test_a_car_thrown_into_the_air_lands_on_its_wheels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    match = Match((Chaser(), StandStill()), 1, seed)
    match.kickoff()
    car = match.cars[0].get_state()
    car.pos = rsim.Vec(*rng.uniform(-2500, 2500, 2), 900)
    car.vel = rsim.Vec(*rng.uniform(-800, 800, 2), 0)
    car.rot_mat = rsim.Angle(*rng.uniform(-3, 3, 3)).as_rot_mat()
    car.ang_vel = rsim.Vec(*rng.uniform(-3, 3, 3))
    car.is_on_ground = False
    match.cars[0].set_state(car)
    ball = rsim.BallState()
    ball.pos = rsim.Vec(3000, 4500, 93)
    match.arena.ball.set_state(ball)
    for _ in range(15 * 4):
        match.step()
        if match.state.car_on_ground[0, 0] and match.state.car_position[0, 0, 2] < 30:
            break
    assert match.state.car_rotation[0, 0, 2, 2] > 0.9


def test_a_car_on_its_roof_gets_up() -> None:
    match = Match((Chaser(), StandStill()), 1, 0)
    match.kickoff()
    car = match.cars[0].get_state()
    car.pos = rsim.Vec(-1500, -3000, 40)
    car.rot_mat = rsim.Angle(0, 0, np.pi).as_rot_mat()
    car.vel = rsim.Vec(0, 0, 0)
    match.cars[0].set_state(car)
    for _ in range(15 * 3):
        match.step()
    assert match.state.car_rotation[0, 0, 2, 2] > 0.9


def test_it_fetches_a_big_pad_when_empty_and_far_away() -> None:
    match = Match((Chaser(), StandStill()), 1, 0)
    match.kickoff()
    x, y = PAD_POSITIONS[15]
    car = match.cars[0].get_state()
    car.pos, car.vel, car.boost = rsim.Vec(x, y - 1500, 17), rsim.Vec(0, 800, 0), 0
    car.rot_mat = rsim.Angle(np.pi / 2, 0, 0).as_rot_mat()
    match.cars[0].set_state(car)
    ball = rsim.BallState()
    ball.pos = rsim.Vec(3000, 4500, 93)
    match.arena.ball.set_state(ball)
    boost = []
    for _ in range(15 * 2):
        match.step()
        boost.append(float(match.state.car_boost_amount[0, 0]))
    assert max(boost) > 80


def test_one_car_of_a_team_goes_and_the_others_stand_off() -> None:
    match = Match((Chaser(), Chaser()), 3, 4)
    match.kickoff()
    while not sum(match.result.touches):
        match.step()
    state = read_arena(ArenaReader(match.arena, match.cars))
    gaps = np.linalg.norm(state.car_position[0] - state.ball_position[0], axis=1)
    for team in (gaps[:3], gaps[3:]):
        assert sorted(team)[1] > 1000


def test_it_needs_neither_the_simulator_nor_the_game() -> None:
    program = "import sys, rlgym_bridge.policy.chaser; print({'rlbot', 'RocketSim'} & set(sys.modules))"
    done = run_to_end([sys.executable, "-c", program], check=True)
    assert done.stdout.strip() == "set()"


def jumps_at_kickoffs(blue: Chaser, orange: Chaser) -> np.ndarray:
    """Return how often the cars of 20 kickoffs jump before the ball is hit, `(2,)`."""
    arenas, random = RocketSim2(20, 1, 1), np.random.default_rng(0)
    state = blank_state(1, 1, 20)
    KickoffMutator().apply_batch(state, random)
    derive(state)
    arenas.put(range(20), state)
    blue.reset([0])
    orange.reset([1])
    jumped = np.zeros((20, 2), bool)
    table = LookupTableAction.make_lookup_table()
    for _ in range(60):
        actions = np.concatenate([blue.act(None, arenas.state), orange.act(None, arenas.state)], 1)
        arenas.step(np.repeat(table[actions][:, :, None], 8, 2))
        at_kickoff = np.abs(arenas.state.ball_position[:, :2]).max(1) < 1
        jumped |= (arenas.state.car_position[..., 2] > 40) & at_kickoff[:, None]
    return jumped.sum(0)


def test_charger_drives_at_every_kickoff() -> None:
    jumps = jumps_at_kickoffs(Charger(), Charger())
    assert jumps.max() <= 1, "cars that hit a ball at once, which then stays, lift each other"
    assert jumps_at_kickoffs(Charger(), Chaser())[1] > 10


@pytest.mark.parametrize("spots", [[2, 3], [4]])
def test_charger_shoots_at_a_goal_that_nobody_guards(spots: list[int]) -> None:
    state = blank_state(1, 1, 10)
    KickoffMutator(spots=spots).apply_batch(state, np.random.default_rng(0))
    state.car_position[:, 1] = (3500, 3000, 17)
    derive(state)
    arenas, charger = RocketSim2(10, 1, 1), Charger()
    arenas.put(range(10), state)
    charger.reset([0])
    table, scored = LookupTableAction.make_lookup_table(), np.zeros(10, bool)
    rows = np.zeros((10, 2, 8, 8), np.float32)
    for _ in range(75):
        rows[:, 0] = table[charger.act(None, arenas.state)]
        arenas.step(rows)
        scored |= (arenas.state.goal_scored > 0) & (arenas.state.ball_position[:, 1] > 0)
    assert scored.sum() >= 8
