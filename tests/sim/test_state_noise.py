"""Noise of observations: how large it is, where it comes from, and what it leaves alone."""

import numpy as np
import pytest

from rlgym_bridge.components.conditions import TimeoutCondition
from rlgym_bridge.components.mutators import RandomStateMutator, blank_state
from rlgym_bridge.sim.state_noise import StateNoise
from rlgym_bridge.sim.vector_env import Step, VectorEnv
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.training_runs import SMALL
from tests.support.vector_parts import components, peers, play

NOISE = {"ball_position": 20.0, "car_linear_velocity": 30.0, "car_rotation": 0.02}


def run(noise: dict[str, float] | None, steps: int = 12) -> tuple[np.ndarray, list[Step], VectorEnv]:
    parts = components(truncation_cond=TimeoutCondition(0.4))
    env = VectorEnv(3, lambda: parts, obs_noise=noise)
    return env.reset(5), play(env, steps, forward=True), env


def test_noise_has_its_deviation_and_leaves_the_rest_alone() -> None:
    state = blank_state(1, 1, 4000)
    RandomStateMutator().apply_batch(state, np.random.default_rng(0))
    before = state.buffer.copy()
    seen = StateNoise(NOISE).seen(state, np.random.default_rng(1))
    np.testing.assert_array_equal(state.buffer, before)
    assert (seen.ball_position - state.ball_position).std() == pytest.approx(20.0, rel=0.05)
    assert (seen.car_linear_velocity - state.car_linear_velocity).std() == pytest.approx(30.0, rel=0.05)
    turns = np.swapaxes(state.car_rotation, -1, -2) @ seen.car_rotation
    np.testing.assert_allclose(
        turns @ np.swapaxes(turns, -1, -2), np.broadcast_to(np.eye(3), turns.shape), atol=1e-5
    )
    assert (turns[..., 2, 1] - turns[..., 1, 2]).std() / 2 == pytest.approx(0.02, rel=0.05)
    for name in ("car_position", "car_boost_amount", "ball_linear_velocity", "pad_timer", "car_on_ground"):
        np.testing.assert_array_equal(getattr(seen, name), getattr(state, name))


def test_observations_have_noise_and_nothing_else_has() -> None:
    (exact_first, exact, _), (first, noisy, env) = run(None), run(NOISE)
    assert not np.array_equal(first, exact_first)
    assert any(len(step.final_obs) for step in noisy)
    for one, other in zip(exact, noisy, strict=True):
        assert not np.array_equal(one.obs, other.obs)
        for name in ("rewards", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert abs(env.state.ball_position[:, 2] - 93).max() < 5  # nobody has hit it


def test_equal_seeds_give_equal_noise() -> None:
    (first, one, _), (again, other, _) = run(NOISE), run(NOISE)
    np.testing.assert_array_equal(first, again)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left.obs, right.obs)


def test_noise_of_zero_is_none() -> None:
    (first, one, _), (again, other, _) = run({"ball_position": 0}), run(None)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(one[-1].obs, other[-1].obs)


def test_third_party_components_are_named_where_noise_is_set() -> None:
    with pytest.raises(ValueError, match=r"expected none where components have no batch form: DefaultObs"):
        VectorEnv(1, peers, obs_noise=NOISE)
    own = check_settings(SMALL | {"obs_noise": NOISE})
    with pytest.raises(SettingsError, match=r"a make_env of its own, in which it has no effect"):
        Task(own).check()
