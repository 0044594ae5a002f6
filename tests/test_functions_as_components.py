"""A reward may be a plain function, and one more number of an observation, too."""

from typing import Any

import numpy as np
import pytest

from rlgym_bridge import ComponentSpec, RelativeObs, RepeatAction, TeamObs, add_number
from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.reward_base import WeightedSum
from rlgym_bridge.components.rewards import SpeedReward, TouchReward
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.components.spec import component_factory
from rlgym_bridge.state import MatchState
from tests.support.states import random_state
from tests.support.vector_parts import begun, play

OVER = np.zeros(3, bool)


@add_number(RelativeObs)
def speed(state: MatchState) -> np.ndarray:
    """Show how fast each car is, as a share of 2300 uu/s."""
    fast: np.ndarray = np.linalg.norm(state.car_linear_velocity, axis=-1) / 2300
    return fast


@add_number(speed)
def height(state: MatchState) -> np.ndarray:
    return state.car_position[..., 2]


@add_number(TeamObs)
def wrong(state: MatchState) -> Any:
    return np.zeros(state.matches)


def faster(before: MatchState, after: MatchState) -> np.ndarray:
    speeds = (np.linalg.norm(state.car_linear_velocity, axis=-1) for state in (after, before))
    return next(speeds) - next(speeds)


def flat(before: MatchState, after: MatchState) -> np.ndarray:
    return np.zeros(after.matches)


def endless(before: MatchState, after: MatchState) -> np.ndarray:
    return np.full((after.matches, after.layout.cars), np.nan)


@pytest.mark.parametrize("cars", [None, [3, 0]])
def test_an_observation_has_one_number_more(cars: list[int] | None) -> None:
    state = random_state(2, 2, 3, matches=3)
    plain, more = RelativeObs(zero_padding=None), height(zero_padding=None)
    seen, own = more.build_batch(state, cars), list(range(4)) if cars is None else cars
    np.testing.assert_array_equal(seen[..., :-2], plain.build_batch(state, cars))
    np.testing.assert_array_equal(seen[..., -1], state.car_position[:, own, 2])
    speeds = np.linalg.norm(state.car_linear_velocity[:, own], axis=-1) / 2300
    np.testing.assert_allclose(seen[..., -2], speeds, rtol=1e-6)
    assert seen.dtype == np.float32
    assert more.names(2, 2) == (*plain.names(2, 2), "speed", "height")
    assert more.size(2, 2) == seen.shape[2] == plain.size(2, 2) + 2
    assert more.get_obs_space("blue-0") == ("real", -1)


def test_its_dict_form_is_that_of_the_batch() -> None:
    state, more = random_state(1, 1, 1), speed(zero_padding=2)
    game = to_rlgym(state)
    more.reset(list(game.cars), game, {})
    built = more.build_obs(list(game.cars), game, {})
    rows = np.stack(list(built.values()))
    np.testing.assert_allclose(rows, more.build_batch(state)[0], rtol=1e-5, atol=1e-6)
    assert more.get_obs_space("blue-0") == ("real", len(built["blue-0"]))


def test_a_policy_folder_can_name_it() -> None:
    spec = ComponentSpec.of(speed, zero_padding=None)
    assert spec.to_json()["class"] == f"{__name__}:speed"
    parser = ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=8)
    made = component_factory(spec, parser, None, allow=["tests"])().obs_builder
    assert type(made) is speed and "2300" in (speed.__doc__ or "")


def test_numbers_of_another_shape_are_named_with_their_line() -> None:
    with pytest.raises(
        ValueError, match=r"wrong gave an array \(3,\) of float64, .* \(3, 2\).*\.py, line \d+\)"
    ):
        wrong(zero_padding=1).build_batch(random_state(1, 1, 3, matches=3))


def test_a_function_of_two_states_is_a_reward() -> None:
    before, after = (random_state(1, 1, seed, matches=3) for seed in (1, 2))
    given = WeightedSum([(faster, 2.0), (SpeedReward(), 1.0)]).reward_batch(before, after, OVER, OVER)
    expected = 2 * faster(before, after) + SpeedReward().reward_batch(before, after, OVER, OVER)
    np.testing.assert_allclose(given, expected, rtol=1e-5)
    reward = WeightedSum([(faster, 1.0), (TouchReward(), 1.0)])
    env = begun(2, reward_fn=reward)
    assert abs(play(env, 3, forward=True)[-1].rewards).max() > 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (flat, r"reward flat gave an array \(2,\) of float64, expected an array \(2, 2\) .*\.py, line \d+\)"),
        (endless, r"reward endless \(weight 0\.5\) gave nan for blue-0 in match 0 .*\.py, line \d+\)"),
    ],
)
def test_a_function_that_gives_no_reward_is_named_with_its_line(function: Any, message: str) -> None:
    env = begun(2, reward_fn=WeightedSum([(function, 0.5)]))
    with pytest.raises(ValueError, match=message):
        play(env, 1)
