"""The network: a perceptron, and an action picked from what it gives."""

import os
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from rlgym_bridge.policy.manifest import Normalisation
from rlgym_bridge.policy.matrix_kernels import VARIABLE, choose_kernels, kernels_for, processor_flags
from rlgym_bridge.policy.numpy_network import NetworkPolicy, categorical
from tests.support.policy_folders import KINDS, OBS_1V1, observations, random_weights
from tests.support.processes import run_to_end


@pytest.mark.parametrize("distribution", KINDS)
def test_a_batch_acts_as_its_observations_one_by_one(distribution):
    _, sizes, outputs = KINDS[distribution]
    policy = NetworkPolicy(random_weights(OBS_1V1, 64, 64, outputs), distribution, sizes)
    obs = observations(5)
    policy.reset([0, 1], 1)
    together = policy.act(obs)
    policy.reset([0, 1], 1)
    single = [
        [policy.act(obs[match : match + 1, seat : seat + 1])[0, 0] for seat in range(2)] for match in range(5)
    ]
    np.testing.assert_allclose(together, np.array(single), rtol=0, atol=1e-5)


def test_the_network_is_a_perceptron_with_relu_between_layers():
    weights = random_weights(OBS_1V1, 16, 12, 90)
    x = observations(1)[0].astype(np.float64)
    for i in range(3):
        x = x @ weights[f"layers.{i}.weight"].T.astype(np.float64) + weights[f"layers.{i}.bias"]
        x = np.maximum(x, 0) if i < 2 else x
    policy = NetworkPolicy(weights, "categorical", (90,), "argmax")
    np.testing.assert_array_equal(policy.act(observations(1))[0], x.argmax(1))


@pytest.mark.parametrize("distribution", KINDS)
def test_equal_seeds_and_seats_alone_give_equal_episodes(distribution):
    _, sizes, outputs = KINDS[distribution]
    obs = np.repeat(observations(1), 30, 0)

    def episode(policy_seed: int, seats: list[int], seed: int | None, resets: int = 1) -> bytes:
        policy = NetworkPolicy(random_weights(OBS_1V1, outputs), distribution, sizes, seed=policy_seed)
        for _ in range(resets):
            policy.reset(seats, seed)
            policy.act(obs)
        policy.reset(seats, seed)
        return policy.act(obs).tobytes()

    assert episode(1, [0, 1], 2) == episode(1, [0, 1], 2, resets=3)
    assert episode(1, [0, 1], None, 2) == episode(1, [0, 1], None, 2)
    others = [(1, [0, 1], 3), (1, [2, 3], 2), (2, [0, 1], 2), (1, [0, 1], None), (1, [0, 1], -2)]
    assert len({episode(1, [0, 1], 2), *(episode(*other) for other in others)}) == 6
    assert episode(1, [0, 1], None, 1) != episode(1, [0, 1], None, 2)


@pytest.mark.parametrize("rows", [1, 20_000])
def test_sampled_choices_come_as_often_as_their_probability(rows):
    logits = np.array([0.0, 2.0, -np.inf, 1.0, -1.0, -np.inf], np.float32)
    rng = np.random.default_rng(0)
    if rows == 1:
        picked = np.concatenate([categorical(logits[None], rng) for _ in range(20_000)])
    else:
        picked = categorical(np.tile(logits, (rows, 1)), rng)
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(np.bincount(picked, minlength=6) / 20_000, expected, atol=0.012)


@pytest.mark.parametrize("rows", [1, 2])
def test_the_largest_draw_never_picks_the_impossible(rows):
    class Largest:
        def random(self, size=None):
            last = 1 - 2.0**-53
            return last if size is None else np.full(size, last)

    for seed in range(50):
        logits = np.random.default_rng(seed).normal(size=(rows, 9)).astype(np.float32)
        logits[:, 7:] = -np.inf
        assert (categorical(logits, Largest()) == 6).all()


def test_multi_categorical_picks_each_from_its_own_logits():
    weights = {
        "layers.0.weight": np.zeros((5, 4), np.float32),
        "layers.0.bias": np.array([0, 9, 0, -9, 9], np.float32),
    }
    policy = NetworkPolicy(weights, "multi_categorical", (3, 2))
    np.testing.assert_array_equal(policy.act(np.zeros((2, 1, 4), np.float32)), [[[1, 1]], [[1, 1]]])


@pytest.mark.parametrize("own_tensor", [True, False])
def test_gaussian_actions_have_the_networks_mean_and_spread(own_tensor):
    mean, log_std = np.array([0.5, -3.0]), np.array([-1.0, 0.5])
    bias = mean if own_tensor else np.concatenate([mean, log_std])
    weights = {
        "layers.0.weight": np.zeros((len(bias), 3), np.float32),
        "layers.0.bias": bias.astype(np.float32),
    }
    if own_tensor:
        weights["log_std"] = log_std.astype(np.float32)
    drawn = NetworkPolicy(weights, "gaussian", (2,)).act(np.zeros((20_000, 1, 3), np.float32))[:, 0]
    assert drawn.dtype == np.float32
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.04)
    np.testing.assert_allclose(drawn.std(0), np.exp(log_std), rtol=0.02)
    best = NetworkPolicy(weights, "gaussian", (2,), "argmax").act(np.zeros((1, 1, 3), np.float32))
    np.testing.assert_allclose(best[0, 0], mean)


def test_observations_are_normalised_and_clipped_first():
    rng = np.random.default_rng(1)
    mean, std, weights = rng.normal(size=92), rng.uniform(0.1, 3, 92), random_weights(92, 8)
    scaling = Normalisation(tuple(mean), tuple(std), 0.7)
    obs = observations()
    by_policy = NetworkPolicy(weights, "categorical", (8,), "argmax", normalisation=scaling).act(obs)
    by_hand = NetworkPolicy(weights, "categorical", (8,), "argmax").act(
        np.clip((obs - mean) / std, -0.7, 0.7)
    )
    np.testing.assert_array_equal(by_policy, by_hand)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_observation_that_is_not_finite_is_refused(value):
    policy, obs = NetworkPolicy(random_weights(92, 90), "categorical", (90,)), observations()
    obs[2, 1, 5] = value
    with pytest.raises(ValueError, match=r"number 5 of the observation of match 2, car 1 is (nan|inf)"):
        policy.act(obs)
    obs[2, 1, 5] = 1e30  # absurd, but a number
    assert policy.act(obs).shape == (6, 2)


@pytest.mark.parametrize("obs", [None, np.zeros((1, 92)), np.zeros((1, 1, 91))])
def test_an_observation_of_another_shape_is_refused(obs):
    policy = NetworkPolicy(random_weights(92, 90), "categorical", (90,))
    with pytest.raises(ValueError, match=r"observations have shape .*expected \(matches, cars, 92\)"):
        policy.act(obs)


# --- kernels of matrix products ---------------------------------------------------------------------


AVX2 = {"avx2", "fma"}
AVX512 = {"avx512f", "avx512dq", "avx512bw", "avx512cd", "avx512vl"}


@pytest.mark.parametrize(
    ("flags", "kernels"),
    [
        (AVX2 | AVX512 | {"amx_tile"}, "SKYLAKEX"),
        (AVX2 | {"avx512f"}, "HASWELL"),
        (AVX2, "HASWELL"),
        ({"avx", "sse4_2"}, None),
        (set(), None),
    ],
    ids=["avx512", "part of avx512", "avx2", "avx", "unknown"],
)
def test_the_best_kernels_that_can_run_are_chosen(flags: set[str], kernels: str | None) -> None:
    assert kernels_for(flags) == kernels


def test_what_the_environment_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "NEHALEM")
    choose_kernels()
    assert os.environ[VARIABLE] == "NEHALEM"


@pytest.mark.skipif(not processor_flags() >= AVX2, reason="the processor has no AVX2, or nobody can tell")
def test_a_bots_products_use_vectors_of_256_bits_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(one["internal_api"] == "openblas" for one in threadpool_info()):
        pytest.skip("numpy has another library here")
    monkeypatch.delenv(VARIABLE, raising=False)
    code = """
import rlgym_bridge, numpy
from threadpoolctl import threadpool_info
print(*(one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"))
"""
    done = run_to_end([sys.executable, "-c", code])
    assert done.stdout.strip() in ("SkylakeX", "Haswell"), done.stderr
