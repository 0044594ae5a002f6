"""Observations: the numbers they say, from a table, the same for both teams."""

import copy
import os
import sys

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
from rlgym_compat.v1.physics_object import PhysicsObject
from rlgym_compat.v1.player_data import PlayerData

from rlgym_bridge import AdvancedObs, RelativeObs, TeamObs
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.rlgym_state import from_rlgym, to_rlgym
from rlgym_bridge.game import GOAL_BACK_Y, GOAL_CENTRE_Z, PAD_COUNT
from rlgym_bridge.policy.matrix_kernels import VARIABLE, processor_flags
from rlgym_bridge.state import MatchState
from tests.support.processes import run_to_end
from tests.support.states import TEAM_SIZES, mirrored, random_state

every_builder = pytest.mark.parametrize("make", [DefaultObs, RelativeObs, TeamObs, AdvancedObs])
every_size = pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)

# --- what holds for every builder --------------------------------------------------------------------


@every_size
@every_builder
def test_both_teams_see_the_same_match_the_same_way(make, blue, orange):
    state, builder = random_state(blue, orange, 5, matches=3), make(3)
    as_is, turned = builder.build_batch(state), builder.build_batch(mirrored(state))
    rows = [*range(blue, blue + orange), *range(blue)]
    np.testing.assert_allclose(as_is[:, rows], turned, rtol=0, atol=0 if make is DefaultObs else 1e-6)


@every_size
@every_builder
def test_every_number_has_a_name_of_its_own(make, blue, orange):
    for padding in (3, 4) if make is TeamObs else (None, 3, 4):
        builder = make(padding)
        for seat in range(blue + orange):
            names = builder.names(blue, orange, seat)
            assert len(set(names)) == len(names) == builder.size(blue, orange)
            assert builder.build_batch(random_state(blue, orange, 0), [seat]).shape[2] == len(names)


@every_builder
def test_the_dict_form_and_the_space_are_those_of_the_batch(make):
    state, builder = random_state(2, 1, seed=3), make(3)
    game = to_rlgym(state)
    builder.reset(list(game.cars), game, {})
    built = builder.build_obs(list(game.cars), game, {})
    known = [not name.startswith("previous/") for name in builder.names(2, 1)]  # RLGym's states have none
    shown = np.stack(list(built.values()))
    np.testing.assert_allclose(shown[:, known], builder.build_batch(state)[0][:, known], atol=1e-6)
    assert {builder.get_obs_space(agent) for agent in built} == {("real", builder.size(2, 1))}


@every_builder
@pytest.mark.parametrize("size", [1, 2, 3])
def test_one_match_and_some_cars_give_the_same_bits_as_many(make, size):
    state, builder = random_state(size, size, seed=4, matches=64), make(3)
    every = builder.build_batch(state)
    assert every.shape == (64, 2 * size, builder.size(size, size)) and every.dtype == np.float32
    for match in (0, 17, 63):
        alone = MatchState(size, size, 1, state.buffer[match : match + 1].copy())
        for cars in ([2 * size - 1, 0], *([car] for car in range(2 * size))):
            assert builder.build_batch(alone, cars).tobytes() == every[match : match + 1, cars].tobytes()


@every_builder
def test_the_state_is_untouched_and_the_result_is_new(make):
    state, builder = random_state(1, 1, 16), make(3)
    before = state.buffer.copy()
    builder.build_batch(state)[:] = 7
    np.testing.assert_array_equal(state.buffer, before)
    assert (builder.build_batch(state) != 7).any()


@every_builder
@pytest.mark.parametrize(("blue", "orange", "team"), [(3, 1, "blue"), (1, 3, "orange")])
def test_more_cars_than_places_are_refused(make, blue, orange, team):
    state = random_state(blue, orange, 17)
    with pytest.raises(ValueError, match=rf"the {team} team has 3 cars and {make.__name__} has room for 2"):
        make(2).build_batch(state, [0])
    with pytest.raises(ValueError, match=rf"the {team} team has 3 cars"):
        make(2).build_obs(["orange-0"], to_rlgym(state), {})


@every_builder
@pytest.mark.parametrize("car", [4, -1])
def test_a_missing_car_is_refused_with_the_cars_there_are(make, car):
    with pytest.raises(ValueError, match=rf"there is no car {car}, expected one of the 4 cars 0\.\.3"):
        make(3).build_batch(random_state(2, 2, 18), [car])


@every_builder
def test_an_agent_without_a_car_is_refused(make):
    with pytest.raises(ValueError, match=r"agent 'orange-7' has no car .*'blue-0', 'orange-0'"):
        make(3).build_obs(["orange-7"], to_rlgym(random_state(1, 1, 19)), {})


@pytest.mark.parametrize(
    ("make", "padding", "message"),
    [
        *(
            (DefaultObs, n, r"zero_padding is .*expected a whole number of cars, or None, 1 to 64")
            for n in (0, -1, True)
        ),
        (TeamObs, None, "expected the cars of the largest"),
        (TeamObs, 0, "is 0"),
    ],
)
def test_padding_that_cannot_be_is_refused(make, padding, message):
    with pytest.raises(ValueError, match=message):
        make(padding)


# --- DefaultObs --------------------------------------------------------------------------------------


def rlgym_rows(game: GameState, padding: int | None) -> np.ndarray:
    built = RLGymDefaultObs(padding).build_obs(list(game.cars), game, {})
    return np.stack(list(built.values()))


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


# --- RelativeObs -------------------------------------------------------------------------------------


def one_by_one(state: MatchState, match: int, seat: int, places: int | None) -> list[float]:
    """Say it again for one car, number by number."""
    blue, cars = state.layout.blue, state.layout.cars
    forward, right, up = state.car_rotation[match, seat].T
    here, speed = state.car_position[match, seat], state.car_linear_velocity[match, seat]
    ball, ball_speed = state.ball_position[match], state.ball_linear_velocity[match]
    is_blue = seat < blue
    goal = np.array([0, GOAL_BACK_Y if is_blue else -GOAL_BACK_Y, GOAL_CENTRE_Z])
    own_goal = goal * [1, -1, 1]
    vectors = [
        (ball - here) / 2300,
        (ball - here) / np.linalg.norm(ball - here),
        (ball_speed - speed) / 2300,
        (goal - ball) / np.linalg.norm(goal - ball),
        (own_goal - ball) / np.linalg.norm(own_goal - ball),
    ]
    for team in (True, False):
        rows = [row for row in range(cars) if ((row < blue) == is_blue) == team and row != seat]
        for row in rows:
            vectors += [
                (state.car_position[match, row] - here) / 2300,
                (state.car_linear_velocity[match, row] - speed) / 2300,
            ]
        if places is not None:
            vectors += [np.zeros(3)] * 2 * (places - team - len(rows))
    return [float(vector @ axis) for vector in vectors for axis in (forward, right, up)]


@every_size
@pytest.mark.parametrize("places", [None, 3])
def test_it_is_default_obs_and_surroundings_in_the_cars_frame(
    blue: int, orange: int, places: int | None
) -> None:
    state = random_state(blue, orange, seed=1, matches=4)
    ours, default = RelativeObs(places), DefaultObs(places)
    obs, absolute = ours.build_batch(state), default.build_batch(state)
    assert obs.shape == (4, blue + orange, ours.size(blue, orange))
    size = absolute.shape[2]
    np.testing.assert_array_equal(obs[..., :size], absolute)
    for match in range(4):
        for seat in range(blue + orange):
            expected = one_by_one(state, match, seat, places)
            np.testing.assert_allclose(obs[match, seat, size:], expected, atol=2e-6)


def test_a_car_inside_the_ball_has_no_direction_to_it() -> None:
    state = random_state(1, 1, seed=5)
    state.ball_position[0] = state.car_position[0, 0]
    obs = RelativeObs(None).build_batch(state)
    names = RelativeObs(None).names(1, 1)
    start = names.index("relative/ball/direction/forward")
    assert np.isfinite(obs).all() and not obs[0, 0, start : start + 3].any()


@pytest.mark.skipif(not processor_flags() >= {"avx2", "fma"}, reason="the processor has no fused products")
def test_its_bits_do_not_depend_on_the_processors_kernels() -> None:
    code = """
import hashlib, numpy
from rlgym_bridge import RelativeObs
from rlgym_bridge.components.mutators import RandomStateMutator, blank_state
state = blank_state(3, 3, 64)
RandomStateMutator().apply_batch(state, numpy.random.default_rng(1))
print(hashlib.sha256(RelativeObs(3).build_batch(state).tobytes()).hexdigest())
"""
    hashes = {
        run_to_end([sys.executable, "-c", code], env=os.environ | {VARIABLE: kernels}).stdout
        for kernels in ("NEHALEM", "HASWELL")  # without and with fused products
    }
    assert len(hashes) == 1 and len(hashes.pop().strip()) == 64


# --- TeamObs -----------------------------------------------------------------------------------------


def by_name(builder: RelativeObs | TeamObs, state: MatchState, car: int) -> dict[str, np.ndarray]:
    """Return each number that a car is shown, `(matches,)`, by its name."""
    blue, orange = state.layout.blue, state.layout.orange
    numbers = builder.build_batch(state, (car,))[:, 0].T
    return dict(zip(builder.names(blue, orange, car), numbers, strict=True))


def others_of(state: MatchState, car: int) -> dict[str, list[int]]:
    """Return team mates and opponents of a car, in the order of the state."""
    blue = state.layout.blue
    cars = [other for other in range(state.layout.cars) if other != car]
    mates = [other for other in cars if (other < blue) == (car < blue)]
    return {"ally": mates, "enemy": [other for other in cars if other not in mates]}


@every_size
def test_it_has_relative_obs_numbers_nearest_first(blue: int, orange: int) -> None:
    state = random_state(blue, orange, seed=1, matches=4)
    for car in range(blue + orange):
        seen, plain = by_name(TeamObs(3), state, car), by_name(RelativeObs(3), state, car)
        for name, numbers in seen.items():
            if not name.startswith(("ally-", "enemy-")):
                np.testing.assert_array_equal(numbers, plain[name], name)
        for match in range(4):
            for group, cars in others_of(state, car).items():
                away = [
                    np.linalg.norm(state.car_position[match, i] - state.car_position[match, car])
                    for i in cars
                ]
                for place in range(3 - (group == "ally")):
                    who = f"{group}-{place}"
                    block = {
                        name.removeprefix(f"{who}/"): numbers[match]
                        for name, numbers in seen.items()
                        if name.startswith(f"{who}/")
                    }
                    if place >= len(cars):
                        assert not any(block.values())
                        continue
                    assert block.pop("there") == 1
                    source = f"{group}-{int(np.argsort(away)[place])}"
                    for name, number in block.items():
                        relative = name.startswith("relative/")
                        was = name.replace("/", f"/{source}/", 1) if relative else f"{source}/{name}"
                        assert number == plain[was][match], name


@every_size
def test_it_has_222_numbers_for_all_team_sizes(blue: int, orange: int) -> None:
    obs = TeamObs()
    state = random_state(blue, orange, seed=2, matches=2)
    assert obs.build_batch(state).shape == (2, blue + orange, 222)
    assert obs.get_obs_space("somebody") == ("real", 222)
    assert obs.names(blue, orange) == obs.names(1, 1)


def test_exchanged_cars_look_the_same() -> None:
    state = random_state(3, 3, seed=3, matches=16)
    exchanged = MatchState(3, 3, 16, state.buffer.copy())
    start, stride = state.layout.car_start, state.layout.car_stride
    cars = exchanged.buffer[:, start:].reshape(16, 6, stride)
    cars[:] = cars[:, [0, 2, 1, 5, 3, 4]]
    assert TeamObs().build_batch(state, (0,)).tobytes() == TeamObs().build_batch(exchanged, (0,)).tobytes()
    assert RelativeObs().build_batch(state, (0,)).tobytes() != (
        RelativeObs().build_batch(exchanged, (0,)).tobytes()
    )


def test_an_absent_mate_differs_from_one_in_the_same_place() -> None:
    state = random_state(2, 1, seed=4)
    state.buffer[0, state.layout.car_start :] = 0  # all cars at the origin, not turned, not moving
    names = TeamObs().names(2, 1)
    numbers = TeamObs().build_batch(state, (0,))[0, 0]
    first, second = (
        numbers[[i for i, name in enumerate(names) if name.startswith(f"ally-{place}/")]]
        for place in range(2)
    )
    assert first.tolist() == [1.0] + [0.0] * 26 and second.tolist() == [0.0] * 27


def test_equally_far_cars_keep_the_order_of_the_state() -> None:
    state = random_state(1, 3, seed=5)
    state.car_position[0] = [[0, 0, 17], [0, 900, 17], [900, 0, 17], [-900, 0, 17]]
    seen = by_name(TeamObs(), state, 0)
    places = [[float(seen[f"enemy-{i}/position/{axis}"][0]) * 2300 for axis in "xy"] for i in range(3)]
    np.testing.assert_allclose(places, [[0, 900], [900, 0], [-900, 0]], atol=1e-3)


# --- AdvancedObs -------------------------------------------------------------------------------------


KINDS = {
    "AdvancedObs": ({}, 107),
    "AdvancedObsPadder": ({"zero_padding": 3, "has_jump": True}, 237),
    "DefaultObs": ({"relative": False}, 89),
}


def players_of(game: GameState) -> list[PlayerData]:
    players = []
    for number, car in enumerate(game.cars.values()):
        player = PlayerData()
        player.update_from_v2(car, number, 0, False)
        players.append(player)
    return players


def car_numbers(player: PlayerData, ball: PhysicsObject, orange: bool, kind: str) -> list[np.ndarray]:
    body = player.inverted_car_data if orange else player.car_data
    relative = [(ball.position - body.position) / 2300, (ball.linear_velocity - body.linear_velocity) / 2300]
    flags = [player.boost_amount, player.on_ground, player.has_flip, player.is_demoed]
    flags += [player.has_jump] * (kind == "AdvancedObsPadder")
    return [
        *(relative if kind != "DefaultObs" else []), body.position / 2300, body.forward(), body.up(),
        body.linear_velocity / 2300, body.angular_velocity / np.pi, np.array(flags, float),
    ]  # fmt: skip


def expected(state: MatchState, match: int, car: int, kind: str) -> np.ndarray:
    """Return a bot's observation in RLGym v1, from rlgym-compat's objects."""
    game, orange = to_rlgym(state, match), car >= state.layout.blue
    players = players_of(game)
    ball = PhysicsObject.create_from_v2(game.inverted_ball if orange else game.ball)
    pads = game.inverted_boost_pad_timers if orange else game.boost_pad_timers
    numbers = [
        ball.position / 2300, ball.linear_velocity / 2300, ball.angular_velocity / np.pi,
        state.car_controls[match, car], (pads == 0).astype(float),
        *car_numbers(players[car], ball, orange, kind),
    ]  # fmt: skip
    own = players[car].inverted_car_data if orange else players[car].car_data
    groups: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for number, player in enumerate(players):
        if number == car:
            continue
        body = player.inverted_car_data if orange else player.car_data
        block = car_numbers(player, ball, orange, kind)
        if kind != "DefaultObs":
            away = (body.position - own.position, body.linear_velocity - own.linear_velocity)
            block += [vector / 2300 for vector in away]
        groups[player.team_num != players[car].team_num].append(np.concatenate(block))
    if kind == "AdvancedObsPadder":
        for group, places in zip(groups, (2, 3), strict=True):
            group += [np.zeros(32)] * (places - len(group))
    return np.concatenate([*numbers, *groups[0], *groups[1]])


@every_size
@pytest.mark.parametrize("kind", KINDS)
def test_it_shows_the_numbers_of_rlgym_v1(kind: str, blue: int, orange: int) -> None:
    arguments, size = KINDS[kind]
    state, builder = random_state(blue, orange, seed=3, matches=3), AdvancedObs(**arguments)
    seen = builder.build_batch(state)
    if (blue, orange) == (1, 1):
        assert seen.shape[2] == builder.size(1, 1) == size
    for match in range(3):
        for car in range(blue + orange):
            np.testing.assert_allclose(seen[match, car], expected(state, match, car, kind), atol=2e-6)
