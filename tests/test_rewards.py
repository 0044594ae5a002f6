"""Rewards: fair to both teams, the same in both forms, and the numbers that they say."""

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlgym.api import RewardFunction
from rlgym.rocket_league.reward_functions import CombinedReward
from rlgym.rocket_league.reward_functions import GoalReward as RLGymGoalReward
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouchReward

from rlgym_bridge.components.batch_form import third_party_part
from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.components.rewards import (
    AirTouchReward,
    BatchReward,
    BoostKeptReward,
    BoostPickedUpReward,
    DemolitionReward,
    FaceBallReward,
    FlyToBallReward,
    GoalReward,
    InAirReward,
    KickoffSpeedReward,
    MateDistanceReward,
    SaveReward,
    SpeedReward,
    TouchReward,
    VelocityBallToGoalReward,
    VelocityPlayerToBallReward,
    WeightedSum,
    name_of_bad,
)
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.sim.arena import ArenaReader, make_arena, read_arena, write_arena
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.training.settings import REWARDS
from tests.support.states import mirrored, random_state

# Before any test makes RLGym's engine: it puts up with loaded meshes, `make_arena` does not.

TEAM_SIZES = [(1, 1), (2, 2), (3, 3), (1, 0), (0, 1), (1, 3), (4, 2)]
EACH: dict[str, BatchReward] = {name: make() for name, make in REWARDS.items()}
EACH["sum"] = WeightedSum([(reward, i - 4.5) for i, reward in enumerate(EACH.values())])
EACH["team sum"] = WeightedSum([(GoalReward(), 3), (TouchReward(), 1)], team_spirit=0.3, zero_sum=True)

every_reward = pytest.mark.parametrize("reward", EACH.values(), ids=EACH.keys())
every_size = pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)


def random_step(blue: int, orange: int, seed: int, matches: int = 40) -> tuple[MatchState, MatchState]:
    """Return two states in which every reward has something to say in some match."""
    rng = np.random.default_rng(seed)
    states = []
    for part in range(2):
        state = random_state(blue, orange, 2 * seed + part, matches)
        cars = (matches, blue + orange)
        goals = state.ball_position[2 - 2 * part :: 5, 1]  # of other matches before and after
        goals[:] = rng.choice([-5300, 5300], len(goals))
        state.car_ball_touches[:] = rng.integers(0, 2, cars) * rng.integers(0, 4, cars)
        state.car_bump_victim[:] = rng.integers(-1, blue + orange, cars)
        states.append(state)
    before, after = states
    shots = np.arange(matches) % 5 == 1
    goal = rng.choice([-1, 1], matches)
    before.ball_position[shots] = np.outer(goal, (0, 4000, 0))[shots] + (0, 0, 300)
    before.ball_linear_velocity[shots] = np.outer(goal, (0, 2500, 0))[shots]
    after.ball_position[3::5, :2] = after.ball_linear_velocity[3::5] = 0  # kickoffs
    for state in states:
        derive(state)
    return before, after


def replace_ball(state: MatchState, x: float = 0.0, speed: float = 0.0) -> MatchState:
    copied = state.copy()
    copied.ball_position[0, 0] += x
    copied.ball_linear_velocity[0, 0] += speed
    return copied


def nobody(state: MatchState) -> np.ndarray:
    return np.zeros(state.matches, np.bool_)


def judge(reward: BatchReward, before: MatchState, after: MatchState) -> np.ndarray:
    return reward.reward_batch(before, after, nobody(after), nobody(after))


def exchanged(state: MatchState) -> MatchState:
    """Return the same matches with teams and goals exchanged."""
    blue, orange = state.layout.blue, state.layout.orange
    other = mirrored(state)
    victims = other.car_bump_victim
    other.car_bump_victim[:] = np.where(
        victims < 0, -1, np.where(victims < blue, victims + orange, victims - blue)
    )
    other.goal_scored[:] = state.goal_scored
    return other


def at(blue: int = 1, orange: int = 1) -> MatchState:
    """A still match: ball in the centre, cars far from it, nobody touches anything."""
    state = blank_state(blue, orange, 1)
    state.car_position[0, :, 0] = 500 * np.arange(blue + orange)
    state.car_position[0, :, 2] = 17
    state.car_wheels_with_contact[:] = 1
    derive(state)
    return state


# --- what holds for every reward -------------------------------------------------------------------


@every_size
def test_teams_and_goals_exchanged_exchange_the_rewards(blue, orange):
    before, after = random_step(blue, orange, 3)
    turned = exchanged(before), exchanged(after)
    rows = [*range(blue, blue + orange), *range(blue)]
    for name, reward in EACH.items():
        as_is, other = judge(reward, before, after), judge(reward, *turned)
        np.testing.assert_allclose(as_is[:, rows], other, rtol=0, atol=2e-6, err_msg=name)


@every_size
def test_every_car_gets_one_finite_float32(blue, orange):
    before, after = random_step(blue, orange, 4)
    copies = [state.buffer.tobytes() for state in (before, after)]
    for name, reward in EACH.items():
        rewards = judge(reward, before, after)
        assert rewards.shape == (40, blue + orange) and rewards.dtype == np.float32, name
        assert np.isfinite(rewards).all(), name
        assert [state.buffer.tobytes() for state in (before, after)] == copies, name
        assert not any(np.shares_memory(rewards, state.buffer) for state in (before, after)), name


@every_reward
def test_every_reward_says_something_in_random_steps(reward):
    assert judge(reward, *random_step(2, 2, 5)).any()


@every_reward
def test_matches_of_a_batch_do_not_mix(reward):
    before, after = random_step(2, 1, 6)
    whole = judge(reward, before, after)
    for match in range(0, before.matches, 7):
        one = [MatchState(2, 1, 1, state.buffer[match : match + 1].copy()) for state in (before, after)]
        np.testing.assert_array_equal(judge(reward, *one)[0], whole[match])


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(TEAM_SIZES), st.integers(0, 10**6))
def test_the_dict_form_gives_what_the_batch_form_gives(sizes, seed):
    steps = [state for part in range(2) for state in random_step(*sizes, seed + part, matches=1)]
    games = [to_rlgym(state) for state in steps]
    agents = list(games[0].cars)
    no = dict.fromkeys(agents, False)
    for reward in EACH.values():
        reward.reset(agents, games[0], {})
        for before, game, after in zip(steps, games[1:], steps[1:], strict=False):
            given_out = reward.get_rewards(agents, game, no, no, {})
            expected = judge(reward, before, after)[0]
            np.testing.assert_array_equal([given_out[agent] for agent in agents], expected)
            assert all(type(number) is float for number in given_out.values())


@every_reward
def test_the_dict_form_answers_for_the_agents_asked(reward):
    before, after = random_step(2, 2, 8, matches=1)
    expected = dict(zip(after.agents, judge(reward, before, after)[0], strict=True))
    games = [to_rlgym(state) for state in (before, after)]
    for game in games:
        game.cars = {agent: game.cars[agent] for agent in reversed(list(game.cars))}
    # The bumped cars are named by agent, so that another order changes nothing.
    asked = ["orange-1", "blue-0"]
    reward.reset(asked, games[0], {})
    rewards = reward.get_rewards(asked, games[1], {}, {}, {})
    assert list(rewards) == asked
    for agent in asked:
        assert rewards[agent] == pytest.approx(expected[agent], abs=2e-6)


OF_THE_LIVING = "velocity_to_ball face_ball boost_kept boost_picked_up in_air fly_to_ball mate_distance speed"


@pytest.mark.parametrize("name", [*OF_THE_LIVING.split(), "kickoff_speed"])
def test_a_demolished_car_gets_nothing_for_how_it_lies_there(name):
    before, after = random_step(2, 2, 9)
    after.car_demo_respawn_timer[:] = 1.5
    derive(after)
    assert not judge(EACH[name], before, after).any()


def test_the_dict_form_needs_a_reset_and_the_same_cars():
    one, two = to_rlgym(at()), to_rlgym(at(2, 2))
    with pytest.raises(RuntimeError, match=r"GoalReward.get_rewards needs the state before: call reset"):
        GoalReward().get_rewards(["blue-0"], one, {}, {}, {})
    reward = GoalReward()
    reward.reset(["blue-0"], one, {})
    with pytest.raises(ValueError, match="expected the same cars until reset"):
        reward.get_rewards(["blue-0"], two, {}, {}, {})
    with pytest.raises(ValueError, match=r"agent 'green-0' has no car in the state, which has .*'blue-0'"):
        reward.get_rewards(["green-0"], one, {}, {}, {})


# --- goals and touches -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "expected"), [(5300, [1, 1, -1, -1]), (-5300, [-1, -1, 1, 1]), (5200, [0] * 4)]
)
def test_a_goal_is_worth_one_and_costs_the_other_team_one(y, expected):
    before, after = at(2, 2), at(2, 2)
    after.ball_position[0, 1] = y
    derive(after)
    np.testing.assert_array_equal(judge(GoalReward(), before, after), [expected])
    np.testing.assert_array_equal(judge(GoalReward(), after, after), [[0] * 4])  # counted already


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(0, 10**6))
def test_goal_rewards_of_equal_teams_add_up_to_nothing(size, seed):
    rewards = judge(GoalReward(), *random_step(size, size, seed))
    assert rewards.any() and not rewards.sum(1).any()


def test_goals_and_touches_are_rlgyms_on_the_step_they_happen():
    before, after = random_step(2, 2, 10)
    before.goal_scored[:] = 0
    goals, touches = judge(GoalReward(), before, after), judge(TouchReward(), before, after)
    for match in range(after.matches):
        game = to_rlgym(after, match)
        for ours, theirs in ((goals, RLGymGoalReward()), (touches, RLGymTouchReward())):
            given_out = theirs.get_rewards(list(game.cars), game, {}, {}, {})
            np.testing.assert_array_equal(ours[match], list(given_out.values()))


def test_a_strong_touch_is_a_share_of_6000():
    before, after = at(), at()
    before.ball_linear_velocity[0] = (0, -900, 0)
    after.ball_linear_velocity[0] = (1200, 700, 0)  # a change of 1200, 1600: 2000
    after.car_ball_touches[0] = (3, 0)
    np.testing.assert_allclose(
        judge(TouchReward(strength=True), before, after), [[2000 / 6000, 0]], rtol=1e-6
    )
    np.testing.assert_array_equal(judge(TouchReward(), before, after), [[1, 0]])


def test_an_air_touch_counts_by_the_balls_height():
    before, after = at(), at()
    after.car_ball_touches[0, 1] = 1
    for height, expected in ((93.15, 0), (1022.95, 0.5), (1952.75, 1), (90.0, 0), (2000.0, 1)):
        after.ball_position[0, 2] = height
        np.testing.assert_allclose(judge(AirTouchReward(), before, after), [[0, expected]], atol=1e-6)


# --- speed, facing, boost --------------------------------------------------------------------------


def test_speed_towards_the_ball_is_a_share_of_2300():
    state = at()
    state.ball_position[0] = (300, 400, 17)
    state.car_position[0, :, 0] = 0
    state.car_linear_velocity[0] = [(1150 * 0.6, 1150 * 0.8, 0), (0, -2300, 0)]
    np.testing.assert_allclose(judge(VelocityPlayerToBallReward(), state, state), [[0.5, -0.8]], rtol=1e-6)


def test_speed_in_any_direction_is_a_share_of_2300():
    state = at()
    state.car_linear_velocity[0] = [(0, 690, -920), (0, -2300, 0)]
    np.testing.assert_allclose(judge(SpeedReward(), state, state), [[0.5, 1.0]])


def test_kickoffs_count_the_square_of_speed_to_the_ball():
    state = at()
    state.ball_position[0], state.ball_linear_velocity[0] = (0, 0, 93), 0
    state.car_position[0] = [(0, -3000, 93), (0, 3000, 93)]
    state.car_linear_velocity[0] = [(800, 1150, 0), (0, 2300, 0)]
    np.testing.assert_allclose(judge(KickoffSpeedReward(), state, state), [[0.25, -1]], rtol=1e-6)
    for moved in (replace_ball(state, x=2.0), replace_ball(state, speed=5.0)):
        assert not judge(KickoffSpeedReward(), state, moved).any()


def test_flying_to_a_high_ball_counts_by_speed_and_height():
    state = at()
    state.ball_position[0] = (0, 0, 1000)
    state.car_position[0] = [(0, 0, 250), (0, 0, 1200)]
    state.car_linear_velocity[0] = [(0, 0, 1150), (0, 0, -1150)]
    state.car_wheels_with_contact[:] = 0
    derive(state)
    reward = FlyToBallReward()
    np.testing.assert_allclose(judge(reward, state, state), [[0.5 * 0.25, 0.5]], rtol=1e-6)
    for field, value in (("ball_position", (0, 0, 299)), ("car_linear_velocity", (1, 0, 0))):
        other = state.copy()
        getattr(other, field)[0] = value
        assert judge(reward, other, other).max() < 1e-6, "a low ball, a car that does not come nearer"
    state.car_wheels_with_contact[:] = 1
    derive(state)
    assert not judge(reward, state, state).any(), "cars on the ground"
    with pytest.raises(ValueError, match=r"lowest is 3000, expected 91\.25 to 2,?044 uu"):
        FlyToBallReward(lowest=3000)


def test_facing_the_ball_is_the_cosine_of_the_angle():
    state = at()
    state.ball_position[0] = (300, 400, 17)
    state.car_position[0, :, 0] = 0
    state.car_rotation[0, 1] *= [[-1], [-1], [1]]
    np.testing.assert_allclose(judge(FaceBallReward(), state, state), [[0.6, -0.6]], rtol=1e-6)


def test_a_car_in_the_balls_very_centre_gets_nothing_and_no_nan():
    state = at()
    state.car_position[0, 0] = state.ball_position[0]
    state.car_linear_velocity[0] = 100
    for reward in (FaceBallReward(), VelocityPlayerToBallReward()):
        assert judge(reward, state, state)[0, 0] == 0


def test_the_balls_speed_to_the_net_is_a_share_of_6000():
    state = at(2, 1)
    state.ball_position[0] = (0, 0, 321.3875)
    state.ball_linear_velocity[0] = (1000, 3000, 0)
    np.testing.assert_allclose(judge(VelocityBallToGoalReward(), state, state), [[0.5, 0.5, -0.5]], rtol=1e-6)
    state.ball_position[0, 1] = 5210  # over the line, not yet a goal
    assert judge(VelocityBallToGoalReward(), state, state)[0, 0] == pytest.approx(0.5)


def test_boost_counts_by_its_square_root():
    before, after = at(2, 2), at(2, 2)
    before.car_boost_amount[0] = (0, 81, 50, 0)
    after.car_boost_amount[0] = (100, 36, 50, 12)
    np.testing.assert_allclose(
        judge(BoostKeptReward(), before, after), [[1, 0.6, math.sqrt(0.5), math.sqrt(0.12)]], rtol=1e-6
    )
    np.testing.assert_allclose(
        judge(BoostPickedUpReward(), before, after), [[1, 0, 0, math.sqrt(0.12)]], rtol=1e-6
    )


def test_the_boost_of_a_respawn_is_not_picked_up():
    before, after = at(), at()
    before.car_demo_respawn_timer[0, 0] = 0.01
    derive(before)
    after.car_boost_amount[0] = 33
    np.testing.assert_allclose(judge(BoostPickedUpReward(), before, after), [[0, math.sqrt(0.33)]], rtol=1e-6)


def test_a_car_is_told_how_far_its_nearest_mate_is():
    state = at(3, 2)
    state.car_position[0, :, :2] = [(0, 0), (300, 400), (0, 3000), (0, 1), (0, 2)]
    reward = MateDistanceReward()
    np.testing.assert_allclose(judge(reward, state, state), [[0.25, 0.25, 1, 5e-4, 5e-4]], rtol=1e-5)
    assert not judge(reward, at(), at()).any(), "a car without mates"
    state.car_demo_respawn_timer[0, [1, 3]] = 1.5
    derive(state)
    np.testing.assert_allclose(judge(reward, state, state), [[1, 0, 1, 0, 0]])
    assert judge(MateDistanceReward(far=6000), state, state)[0, 0] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="far is 0, expected"):
        MateDistanceReward(far=0)


def test_in_the_air_are_cars_with_less_than_three_wheels_down():
    state = at(2, 1)
    state.car_wheels_with_contact[0, 0] = (1, 1, 0, 0)
    state.car_wheels_with_contact[0, 1] = (1, 1, 0, 1)
    derive(state)
    np.testing.assert_array_equal(judge(InAirReward(), state, state), [[1, 0, 0]])


# --- saves -----------------------------------------------------------------------------------------

SHOT = ((0, -3120, 300), (0, -2000, 0))  # on blue's goal, on the line in a second


def save_of(shot: Any, then: Any, touches: Any = (1, 0), seconds: float = 2.0) -> list[float]:
    """Return blue's and orange's reward for a step from one ball to another."""
    states = []
    for position, velocity in (shot, then):
        state = at()
        state.ball_position[0], state.ball_linear_velocity[0] = position, velocity
        derive(state)
        states.append(state)
    states[1].car_ball_touches[0] = touches
    return judge(SaveReward(seconds), *states)[0].tolist()


AWAY = ((0, -3000, 300), (500, 1500, 200))


def test_a_touch_that_turns_a_shot_away_is_a_save():
    assert save_of(SHOT, AWAY) == [1, 0]
    assert save_of(SHOT, AWAY, touches=(2, 1)) == [1, 0]
    turn = np.array([-1, -1, 1])
    shot, away = ([np.array(vector) * turn for vector in ball] for ball in (SHOT, AWAY))
    assert save_of(shot, away, touches=(0, 1)) == [0, 1]


@pytest.mark.parametrize(
    ("then", "touches", "expected"),
    [
        (((0, -3200, 300), (2000, -1000, 0)), (1, 0), [1, 0]),  # wide
        (((0, -3200, 300), (0, -1000, 500)), (1, 0), [1, 0]),  # over the bar
        (((0, -3200, 300), (0, -100, 0)), (1, 0), [1, 0]),  # too slow to count as a shot
        (((0, -3200, 300), (0, 0, 0)), (1, 0), [1, 0]),  # stopped
        (AWAY, (0, 0), [0, 0]),  # nobody touched it
        (AWAY, (0, 1), [0, 0]),  # an opponent did
        (((0, -3300, 300), (100, -1800, 0)), (1, 0), [0, 0]),  # it still flies in
        (((0, -5300, 300), (0, -1800, 0)), (1, 0), [0, 0]),  # it is in
        (((0, -5300, 300), (0, 900, 0)), (1, 0), [0, 0]),  # it was in and comes out
    ],
)
def test_a_save_is_a_touch_that_sends_a_shot_elsewhere(then, touches, expected):
    assert save_of(SHOT, then, touches) == expected


@pytest.mark.parametrize(
    ("shot", "seconds", "expected"),
    [
        (((0, -3120, 300), (0, 2000, 0)), 2, 0),  # away from the goal
        (((0, -3120, 300), (1000, -2000, 0)), 2, 0),  # 1000 uu beside the middle
        (((0, -3120, 300), (810, -2000, 0)), 2, 0),  # would graze a post: 892.755 - 91.25 is 801.5
        (((0, -3120, 300), (800, -2000, 0)), 2, 1),
        (((0, -3120, 300), (0, -2000, 260)), 2, 0),  # would graze the bar: 642.775 - 91.25 is 551.5
        (((0, -3120, 300), (0, -2000, 250)), 2, 1),
        (((0, -3120, 300), (0, -2000, -3000)), 2, 1),  # would bounce
        (((0, -1000, 93), (0, -2000, 0)), 2, 0),  # 2.06 s from the line
        (((0, -1000, 93), (0, -2000, 0)), 2.1, 1),
        (((0, -1130, 93), (0, -2000, 0)), 2, 1),
        (((0, -5200, 93), (0, -50, 0)), 2, 1),  # off the line, into the field
        (((0, -3120, 300), (0, 0, 0)), 2, 0),  # lies still
    ],
)
def test_shots_are_judged_up_to_the_edge_of_goal_and_time(shot, seconds, expected):
    assert save_of(shot, AWAY, seconds=seconds) == [expected, 0]


def test_a_save_needs_some_time_ahead():
    with pytest.raises(ValueError, match="seconds is 0, expected seconds, 1e-09 or more"):
        SaveReward(seconds=0)


# --- demolitions -----------------------------------------------------------------------------------


def demolition(victims: dict[int, int], timers: dict[int, float], earlier: dict[int, float]) -> list[float]:
    """Return the rewards of a 2v2 step: car -> whom it bumped, respawn timers after and before."""
    before, after = at(2, 2), at(2, 2)
    for car, victim in victims.items():
        after.car_bump_victim[0, car] = victim
    for state, values in ((after, timers), (before, earlier)):
        for car, timer in values.items():
            state.car_demo_respawn_timer[0, car] = timer
        derive(state)
    return judge(DemolitionReward(), before, after)[0].tolist()


def test_who_demolishes_gains_what_the_victim_loses():
    assert demolition({0: 2}, {2: 2.95}, {}) == [1, 0, -1, 0]
    assert demolition({0: 2, 3: 1}, {2: 2.95, 1: 2.99}, {}) == [1, -1, -1, 1]
    assert demolition({0: 2, 2: 0}, {2: 2.95, 0: 2.95}, {}) == [0, 0, 0, 0]
    assert demolition({0: 2, 1: 2}, {2: 2.95}, {}) == [0.5, 0.5, -1, 0]


def test_bumps_and_old_or_friendly_demolitions_do_not_count():
    assert demolition({0: 2}, {}, {}) == [0] * 4  # a bump
    assert demolition({0: 2}, {2: 2.8}, {2: 2.9}) == [0] * 4  # demolished before
    assert demolition({0: 2}, {}, {2: 0.01}) == [0] * 4  # it respawned
    assert demolition({}, {2: 2.95}, {}) == [0] * 4  # by nobody that is known
    assert demolition({3: 2}, {2: 2.95}, {}) == [0] * 4


def test_a_car_demolished_in_its_respawns_step_counts():
    assert demolition({1: 3}, {3: 2.97}, {3: 0.01}) == [0, 1, 0, -1]


def test_a_demolition_in_rocketsim_is_seen():
    before = at(1, 1)
    before.ball_position[0, 2] = 1500
    before.car_position[0] = [(-700, 0, 17), (0, 0, 17)]
    before.car_rotation[0, 1] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]  # its side to the other
    before.car_linear_velocity[0, 0] = (2290, 0, 0)
    before.car_supersonic_time[0, 0], before.car_boost_amount[0, 0] = 1, 100
    before.car_controls[0, 0] = (1, 0, 0, 0, 0, 0, 1, 0)
    derive(before)
    arena, _ = make_arena([0, 1])
    reader = ArenaReader(arena, write_arena(arena, before))
    states = [before]
    for _ in range(6):
        for _ in range(8):
            arena.step(1)
        states.append(read_arena(reader))
    rewards = np.concatenate([judge(DemolitionReward(), *step) for step in pairwise(states)])
    assert rewards[rewards.any(1)].tolist() == [[1, -1]]


# --- sums ------------------------------------------------------------------------------------------


class Given(BatchReward):
    """A reward that gives some numbers."""

    def __init__(self, *rewards: float) -> None:
        super().__init__()
        self.rewards = rewards

    def reward_batch(self, before, after, terminated, truncated):
        return np.tile(np.array(self.rewards, np.float32), (after.matches, 1))


class ThirdParty(RewardFunction):
    """A reward of somebody else, which counts its calls and gives each car its place in the dict."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def reset(self, agents, initial_state, shared_info):
        self.asked = [list(agents)]

    def get_rewards(self, agents, state, is_terminated, is_truncated, shared_info):
        assert set(is_terminated) >= set(agents) and set(is_truncated) >= set(agents)
        self.asked.append(list(agents))
        return {agent: float(list(state.cars).index(agent)) for agent in agents}


def summed(weighted: list, **options: Any) -> list[float]:
    state = at(2, 2)
    return judge(WeightedSum(weighted, **options), state, state)[0].tolist()


def test_a_sum_weighs_its_parts():
    assert summed([(Given(1, 2, 3, 4), 2), (Given(1, 0, 0, 1), -0.5)]) == [1.5, 4, 6, 7.5]


def test_team_spirit_moves_each_towards_the_mean_of_its_team():
    assert summed([(Given(1, 3, 10, 20), 1)], team_spirit=0.5) == [1.5, 2.5, 12.5, 17.5]
    assert summed([(Given(1, 3, 10, 20), 1)], team_spirit=1) == [2, 2, 15, 15]


def test_what_one_team_gets_is_taken_from_the_other():
    assert summed([(Given(1, 3, 10, 20), 1)], zero_sum=True) == [-14, -12, 8, 18]
    assert summed([(Given(1, 3, 10, 20), 1)], team_spirit=0.5, zero_sum=True) == [-13.5, -12.5, 10.5, 15.5]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.floats(0, 1), st.integers(0, 10**6))
def test_zero_sum_rewards_of_equal_teams_add_up_to_nothing(size, spirit, seed):
    parts = [(TouchReward(), 1), (FaceBallReward(), 2), (BoostKeptReward(), 0.5)]
    rewards = judge(WeightedSum(parts, spirit, zero_sum=True), *random_step(size, size, seed))
    np.testing.assert_allclose(rewards.sum(1), 0, atol=1e-5)


@pytest.mark.parametrize(("blue", "orange"), [(2, 0), (0, 2)])
def test_a_team_without_opponents_keeps_its_rewards(blue, orange):
    state = at(blue, orange)
    reward = WeightedSum([(Given(1, 3), 1)], team_spirit=1, zero_sum=True)
    np.testing.assert_array_equal(judge(reward, state, state), [[2, 2]])


def test_a_third_party_part_works_in_the_dict_form_alone():
    third_party, state = ThirdParty(), at(1, 1)
    reward = WeightedSum([(Given(1, 2), 1), (WeightedSum([(third_party, 3)]), 2)])
    assert third_party_part(reward) is third_party
    with pytest.raises(
        TypeError, match=r"WeightedSum holds ThirdParty, which has no reward_batch .* get_rewards"
    ):
        judge(reward, state, state)
    game = to_rlgym(state)
    reward.reset(["orange-0"], game, {})
    no = {"orange-0": False}
    assert reward.get_rewards(["orange-0"], game, no, no, {}) == {"orange-0": 8.0}
    assert third_party.asked == [["orange-0"], ["orange-0"]]


def test_a_shared_third_party_part_is_asked_about_all_cars():
    third_party, game = ThirdParty(), to_rlgym(at(2, 2))
    reward = WeightedSum([(third_party, 1)], team_spirit=1, zero_sum=True)
    reward.reset(["blue-0"], game, {})
    no = {"blue-0": False}
    assert reward.get_rewards(["blue-0"], game, no, no, {}) == {"blue-0": 0.5 - 2.5}
    assert third_party.asked == [list(game.cars)] * 2


def test_a_third_party_sum_equals_rlgyms():
    before, after = random_step(2, 2, 12, matches=1)
    games = [to_rlgym(state) for state in (before, after)]
    parts = [(RLGymTouchReward(), 2.0), (ThirdParty(), 0.5)]
    results = []
    for reward in (WeightedSum(parts), CombinedReward(*parts)):
        reward.reset(list(games[0].cars), games[0], {})
        no = dict.fromkeys(games[0].cars, False)
        results.append(reward.get_rewards(list(games[1].cars), games[1], no, no, {}))
    assert results[0] == results[1]


def test_overriding_the_dict_form_alone_ends_the_batch_form():
    class Mine(TouchReward):
        def get_rewards(self, agents, state, is_terminated, is_truncated, shared_info):
            return dict.fromkeys(agents, 5.0)

    class Both(Mine):
        def reward_batch(self, before, after, terminated, truncated):
            return super().reward_batch(before, after, terminated, truncated)

    assert third_party_part(TouchReward()) is None and third_party_part(Both()) is None
    mine = Mine()
    assert third_party_part(mine) is mine
    with pytest.raises(TypeError, match="WeightedSum holds Mine"):
        judge(WeightedSum([(mine, 1)]), at(), at())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, "no rewards to add up"),
        (([TouchReward()],), TypeError, "expected pairs of an RLGym reward, or a function"),
        (([(max, 1)],), TypeError, "rewards hold .*max.*expected pairs"),
        (([(TouchReward(), math.nan)],), ValueError, "the weight of TouchReward is nan, expected a finite"),
        (([(TouchReward(), 1e31)],), ValueError, r"the weight of TouchReward is 1e\+31, .* 1e30 at most"),
        (([(TouchReward(), 1)], 1.5), ValueError, r"team_spirit is 1.5, expected 0 to 1"),
        (([(TouchReward(), 1)], math.nan), ValueError, "team_spirit is nan"),
    ],
)
def test_sums_of_nonsense_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        WeightedSum(*arguments)


# --- numbers that are not finite -------------------------------------------------------------------


def test_a_reward_of_nan_is_named_with_its_car_and_match():
    before, after = random_step(2, 2, 13)
    reward = WeightedSum([(GoalReward(), 1), (TouchReward(strength=True), 2)], 0.5, zero_sum=True)
    assert name_of_bad(reward, judge(reward, before, after), after.agents) is None
    before.ball_linear_velocity[3, 1] = np.nan
    rewards = judge(reward, before, after)
    expected = "reward TouchReward (weight 2) gave nan for blue-0 in match "
    assert name_of_bad(reward, rewards, after.agents) == expected + "3"
    assert name_of_bad(reward, rewards, after.agents, first_match=100) == expected + "103"
    outer = WeightedSum([(BoostKeptReward(), 1), (reward, 7)])
    assert name_of_bad(outer, judge(outer, before, after), after.agents) == expected + "3"


def test_nan_of_a_part_alone_or_of_the_sum_is_named_too():
    state = at(1, 1)
    lone = Given(1, math.inf)
    found = name_of_bad(lone, judge(lone, state, state), state.agents)
    assert found.startswith("reward Given gave inf for orange-0 in match 0 (")
    large = WeightedSum([(Given(3e38, 0), 2)])
    with np.errstate(over="ignore"):
        numbers = judge(large, state, state)
    assert name_of_bad(large, numbers, state.agents) == "reward WeightedSum gave inf for blue-0 in match 0"

    class Broken(ThirdParty):
        def get_rewards(self, agents, *rest):
            return {agent: math.nan if agent == "orange-0" else 1.0 for agent in agents}

    mixed, game = WeightedSum([(GoalReward(), 1), (Broken(), 0.25)]), to_rlgym(state)
    mixed.reset(list(game.cars), game, {})
    no = dict.fromkeys(game.cars, False)
    numbers = np.array([list(mixed.get_rewards(list(game.cars), game, no, no, {}).values())])
    expected = "reward Broken (weight 0.25) gave nan for orange-0 in match 0"
    found = name_of_bad(mixed, numbers, state.agents)
    assert re.fullmatch(rf"{re.escape(expected)} \({re.escape(__file__)}, line \d+\)", found)
