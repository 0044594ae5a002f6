"""DefaultObs: RLGym's numbers, from a table, the same for both teams."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlgym.api import ObsBuilder, RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.api import GameState
from rlgym.rocket_league.done_conditions import GoalCondition
from rlgym.rocket_league.obs_builders import DefaultObs as RLGymDefaultObs
from rlgym.rocket_league.reward_functions import GoalReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.rlgym_state import from_rlgym, to_rlgym
from rlgym_bridge.game import PAD_COUNT
from rlgym_bridge.state import MatchState
from tests.support.states import TEAM_SIZES, mirrored, random_state


def rlgym_rows(game: GameState, padding: int | None) -> np.ndarray:
    built = RLGymDefaultObs(padding).build_obs(list(game.cars), game, {})
    return np.stack(list(built.values()))


@pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)
@pytest.mark.parametrize("padding", [None, 3])
def test_both_teams_see_the_same_match_the_same_way(blue, orange, padding):
    state, builder = random_state(blue, orange, 5, matches=3), DefaultObs(padding)
    as_is, turned = builder.build_batch(state), builder.build_batch(mirrored(state))
    rows = [*range(blue, blue + orange), *range(blue)]
    np.testing.assert_array_equal(as_is[:, rows], turned)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TEAM_SIZES), st.sampled_from([None, 3]), st.integers(0, 2**32 - 1))
def test_numbers_are_rlgyms_over_random_matches(sizes, padding, seed):
    state, builder = random_state(*sizes, seed), DefaultObs(padding)
    game = to_rlgym(state)
    expected = rlgym_rows(game, padding)
    np.testing.assert_allclose(builder.build_batch(state)[0], expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(builder.build_batch(from_rlgym(game))[0], expected, rtol=0, atol=1e-6)
    built = builder.build_obs(list(game.cars), game, {})
    assert list(built) == list(game.cars)
    np.testing.assert_allclose(np.stack(list(built.values())), expected, rtol=0, atol=1e-6)


def simulated(blue: int, orange: int, steps: int) -> list[GameState]:
    """Return the states of a match of random actions, with a car demolished at its start."""
    env = RLGym(
        MutatorSequence(FixedTeamSizeMutator(blue, orange), KickoffMutator()),
        RLGymDefaultObs(None), RepeatAction(LookupTableAction(), 8), GoalReward(), RocketSimEngine(),
        GoalCondition(),
    )  # fmt: skip
    env.reset()
    start = env.state
    striker, victim = start.cars["blue-0"], start.cars["orange-0"]
    for car, y in ((striker, -1500), (victim, -900)):
        car.physics.position = np.array([700, y, 17], np.float32)
        car.physics.rotation_mtx = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    striker.physics.linear_velocity = np.array([0, 2300, 0], np.float32)
    striker.supersonic_time = 0.5
    env.set_state(start)
    rng, states = np.random.default_rng(blue + 10 * orange), []
    for _ in range(steps):
        # Half of the time forwards with boost, so that speeds are those of a match; else anything.
        actions = {a: np.array([rng.integers(0, 90) if rng.random() < 0.5 else 22]) for a in env.agents}
        env.step(actions)
        states.append(env.state)
    return states


@pytest.mark.parametrize(("blue", "orange"), [(1, 1), (2, 2), (1, 3), (3, 3)])
def test_numbers_are_rlgyms_over_simulated_matches(blue, orange):
    states = simulated(blue, orange, 150)
    cars = [car for game in states for car in game.cars.values()]
    assert any(car.is_demoed for car in cars)
    assert any(car.is_flipping for car in cars)
    assert any(car.is_boosting for car in cars)
    assert any(timer > 0 for game in states for timer in game.boost_pad_timers)
    for padding in (None, 3):
        batch = DefaultObs(padding).build_batch(from_rlgym(states))
        expected = np.stack([rlgym_rows(game, padding) for game in states])
        np.testing.assert_allclose(batch, expected, rtol=0, atol=1e-6)


def test_a_batch_equals_its_matches_and_seats_one_by_one():
    state, builder = random_state(2, 3, 8, matches=6), DefaultObs()
    batch = builder.build_batch(state)
    assert batch.shape == (6, 5, builder.size(2, 3))
    assert batch.dtype == np.float32
    for match in range(6):
        alone = MatchState(2, 3, buffer=state.buffer[match : match + 1])
        for seat in range(5):
            np.testing.assert_array_equal(builder.build_batch(alone, [seat])[0, 0], batch[match, seat])


def test_seats_come_in_the_order_asked_for():
    state, builder = random_state(2, 2, 9), DefaultObs()
    np.testing.assert_array_equal(builder.build_batch(state, (3, 0)), builder.build_batch(state)[:, [3, 0]])


def test_cars_named_by_the_user_are_seen_as_by_rlgym():
    state = random_state(2, 2, 10)
    named = to_rlgym(state, agents=["ann", "bob", "cid", "dee"])
    order = ["dee", "bob", "cid", "ann"]  # orange first
    named.cars = {agent: named.cars[agent] for agent in order}
    ours = DefaultObs().build_obs(["cid", "ann"], named, {})
    theirs = RLGymDefaultObs().build_obs(["cid", "ann"], named, {})
    assert list(ours) == ["cid", "ann"]
    for agent, row in ours.items():
        np.testing.assert_allclose(row, theirs[agent], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)
@pytest.mark.parametrize("padding", [None, 3, 4])
def test_every_number_has_a_name_of_its_own(blue, orange, padding):
    builder = DefaultObs(padding)
    for seat in range(blue + orange):
        names = builder.names(blue, orange, seat)
        assert len(set(names)) == len(names) == builder.size(blue, orange)
        assert builder.build_batch(random_state(blue, orange, 0), [seat]).shape[2] == len(names)


def test_names_say_what_the_numbers_are():
    state, builder = random_state(2, 2, 11), DefaultObs()
    for seat, turn in ((0, 1), (3, -1)):
        seen = dict(zip(builder.names(2, 2, seat), builder.build_batch(state, [seat])[0, 0], strict=True))
        ally, enemy = (1, 2) if seat == 0 else (2, 0)
        assert seen["ball/position/x"] == pytest.approx(turn * state.ball_position[0, 0] / 2300)
        assert seen["ball/position/z"] == pytest.approx(state.ball_position[0, 2] / 2300)
        pad = 12 if seat == 0 else PAD_COUNT - 1 - 12
        assert seen["pad/12/timer"] == pytest.approx(state.pad_timer[0, pad] / 10)
        assert seen["self/handbrake"] == state.car_handbrake[0, seat]
        assert seen["self/forward/y"] == turn * state.car_rotation[0, seat, 1, 0]
        assert seen["ally-0/boost_amount"] == pytest.approx(state.car_boost_amount[0, ally] / 100)
        assert seen["enemy-0/up/x"] == turn * state.car_rotation[0, enemy, 0, 2]
        assert seen["enemy-1/is_supersonic"] == state.car_is_supersonic[0, enemy + 1]
        assert seen["ally-1/padding/3"] == seen["enemy-2/padding/19"] == 0


def test_coefficients_scale_as_rlgyms_do():
    game = to_rlgym(random_state(2, 1, 14))
    args = (2, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    ours = DefaultObs(*args).build_obs(list(game.cars), game, {})
    theirs = RLGymDefaultObs(*args).build_obs(list(game.cars), copy.deepcopy(game), {})
    for agent, row in ours.items():
        np.testing.assert_allclose(row, theirs[agent], rtol=1e-6)


@pytest.mark.parametrize("padding", [None, 3])
def test_it_is_an_rlgym_builder_with_rlgyms_spaces(padding):
    ours, theirs = DefaultObs(padding), RLGymDefaultObs(padding)
    assert isinstance(ours, ObsBuilder)
    assert ours.get_obs_space("blue-0") == theirs.get_obs_space("blue-0")
    game = to_rlgym(random_state(2, 1, 15))
    for builder in (ours, theirs):
        builder.reset(list(game.cars), game, {})
    assert ours.get_obs_space("blue-0") == theirs.get_obs_space("blue-0")
    ours.build_obs(["blue-0"], game, {})
    assert ours.get_obs_space("blue-0") == ("real", ours.size(2, 1))


def test_the_state_is_untouched_and_the_result_is_new():
    state, builder = random_state(1, 1, 16), DefaultObs()
    before = state.buffer.copy()
    first = builder.build_batch(state)
    first[:] = 7
    np.testing.assert_array_equal(state.buffer, before)
    assert (builder.build_batch(state) != 7).any()


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("blue", "orange", "team"), [(3, 1, "blue"), (1, 3, "orange")])
def test_more_cars_than_places_are_refused(blue, orange, team):
    state = random_state(blue, orange, 17)
    with pytest.raises(ValueError, match=rf"the {team} team has 3 cars and DefaultObs has room for 2"):
        DefaultObs(2).build_batch(state, [0])
    with pytest.raises(ValueError, match=rf"the {team} team has 3 cars"):
        DefaultObs(2).build_obs(["orange-0"], to_rlgym(state), {})


@pytest.mark.parametrize("car", [4, -1])
def test_a_missing_car_is_refused_with_the_cars_there_are(car):
    with pytest.raises(ValueError, match=rf"there is no car {car}, expected one of the 4 cars 0\.\.3"):
        DefaultObs().build_batch(random_state(2, 2, 18), [car])


def test_an_agent_without_a_car_is_refused():
    with pytest.raises(ValueError, match=r"agent 'orange-7' has no car .*'blue-0', 'orange-0'"):
        DefaultObs().build_obs(["orange-7"], to_rlgym(random_state(1, 1, 19)), {})


@pytest.mark.parametrize("padding", [0, -1, True])
def test_padding_below_one_is_refused(padding):
    with pytest.raises(
        ValueError, match=r"zero_padding is .*expected a whole number of cars, or None, 1 to 64"
    ):
        DefaultObs(padding)
