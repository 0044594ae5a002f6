"""RelativeObs: DefaultObs, and what is around a car as seen from it."""

import os
import sys

import numpy as np
import pytest

from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.relative_obs import RelativeObs
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.game import GOAL_BACK_Y, GOAL_CENTRE_Z
from rlgym_bridge.policy.matrix_kernels import VARIABLE, processor_flags
from rlgym_bridge.state import MatchState
from tests.support.processes import run_to_end
from tests.support.states import TEAM_SIZES, random_state


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


@pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)
@pytest.mark.parametrize("places", [None, 3])
def test_it_is_default_obs_and_surroundings_in_the_cars_frame(
    blue: int, orange: int, places: int | None
) -> None:
    state = random_state(blue, orange, seed=1, matches=4)
    ours, default = RelativeObs(places), DefaultObs(places)
    obs, absolute = ours.build_batch(state), default.build_batch(state)
    assert obs.shape == (4, blue + orange, ours.size(blue, orange)) and obs.dtype == np.float32
    size = absolute.shape[2]
    np.testing.assert_array_equal(obs[..., :size], absolute)
    for match in range(4):
        for seat in range(blue + orange):
            expected = one_by_one(state, match, seat, places)
            np.testing.assert_allclose(obs[match, seat, size:], expected, atol=2e-6)
            names = ours.names(blue, orange, seat)
            assert len(names) == obs.shape[2] == len(set(names))


def test_both_teams_see_a_turned_match_alike() -> None:
    state = random_state(2, 2, seed=2)
    turned = MatchState(2, 2, 1, state.buffer.copy())
    sign = np.array([-1, -1, 1], np.float32)
    for name in ("position", "linear_velocity", "angular_velocity"):
        getattr(turned, f"ball_{name}")[:] *= sign
        getattr(turned, f"car_{name}")[:] *= sign
    turned.car_rotation[:] *= sign[:, None]
    size = DefaultObs(None).size(2, 2)
    ours, theirs = (RelativeObs(None).build_batch(one)[0, :, size:] for one in (state, turned))
    goals = slice(9, 15)
    other = np.r_[0:9, 15 : ours.shape[1]]
    np.testing.assert_allclose(ours[:, other], theirs[:, other], atol=1e-6)
    # What was blue's goal is orange's now.
    np.testing.assert_allclose(
        ours[:, goals].reshape(4, 2, 3), theirs[:, goals].reshape(4, 2, 3)[:, ::-1], atol=1e-6
    )


def test_its_dict_form_and_its_space_are_those_of_the_batch() -> None:
    state = random_state(2, 1, seed=3)
    game_state, ours = to_rlgym(state), RelativeObs(3)
    ours.reset(list(game_state.cars), game_state, {})
    found = ours.build_obs(list(game_state.cars), game_state, {})
    np.testing.assert_allclose(np.stack(list(found.values())), ours.build_batch(state)[0], atol=1e-6)
    assert {ours.get_obs_space(agent) for agent in found} == {("real", ours.size(2, 1))}
    assert RelativeObs(None).get_obs_space("somebody") == ("real", -1)


def test_one_match_and_some_seats_give_the_same_bits_as_many() -> None:
    state = random_state(3, 3, seed=4, matches=64)
    every = RelativeObs().build_batch(state)
    for match in (0, 17, 63):
        one = MatchState(3, 3, 1, state.buffer[match : match + 1].copy())
        assert RelativeObs().build_batch(one, [4, 1]).tobytes() == every[match : match + 1, [4, 1]].tobytes()


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
