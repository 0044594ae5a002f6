"""Numpy plays the network that torch has learned."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rlgym_bridge.components.actions import (
    ContinuousAction,
    LookupTableAction,
    MultiDiscreteAction,
)
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.manifest import Normalisation
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS, Network
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.policy.torch_network import PolicyNetwork
from rlgym_bridge.training.running_scale import scaled
from rlgym_bridge.training.selfplay.snapshots import pack, unpack
from tests.support.policy_folders import save

OBS = 92
SHAPES = {
    "categorical": (LookupTableAction, (90,)),
    "multi_categorical": (MultiDiscreteAction, (3, 3, 3, 3, 3, 2, 2, 2)),
    "gaussian": (ContinuousAction, (8,)),
}
SCALING = Normalisation(tuple(np.linspace(-1, 1, OBS)), tuple(np.linspace(0.5, 2, OBS)), 3.0)
each_distribution = pytest.mark.parametrize("distribution", SHAPES)


def network(distribution: str, activation: str = "relu", layer_norm: bool = False) -> PolicyNetwork:
    torch.manual_seed(3)
    kind = activation, layer_norm
    made = PolicyNetwork(PolicyShape(OBS, distribution, SHAPES[distribution][1], (32, 16), 3.0, *kind))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return made


def observations(count: int) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(count, 2, OBS)).astype(np.float32)


@pytest.mark.parametrize(
    ("distribution", "activation"), [*((one, "relu") for one in SHAPES), ("categorical", "silu")]
)
def test_the_exported_folder_plays_what_torch_plays(
    distribution: str, activation: str, tmp_path: Path
) -> None:
    policy, obs = network(distribution, activation, layer_norm=activation == "silu"), observations(200)
    save(tmp_path, distribution, weights=policy.arrays(), obs_normalisation=SCALING, activation=activation)
    with torch.no_grad():
        outputs = policy(torch.from_numpy(scaled(obs, SCALING))).numpy()
    if distribution == "gaussian":
        expected = outputs
    else:
        parts = np.split(outputs, np.cumsum(policy.shape.sizes[:-1]), -1)
        expected = np.stack([part.argmax(-1) for part in parts], -1).reshape(200, 2, *policy.shape.action[0])
    played = load_policy(tmp_path, selection="argmax").policy.act(obs)
    np.testing.assert_allclose(played, expected, atol=1e-4)


@each_distribution
def test_a_packed_policy_draws_as_likely_as_torch_says(distribution: str) -> None:
    policy = network(distribution)
    row = pack(policy.shape, policy.arrays(), SCALING)
    assert row.shape == (policy.shape.numbers,)
    obs = np.repeat(observations(1)[:, :1], 8000, axis=0)
    drawn = unpack(policy.shape, row, (0, 1)).act(obs)[:, 0]
    assert (drawn.shape[1:], drawn.dtype.name) == policy.shape.action
    with torch.no_grad():
        shown = torch.from_numpy(scaled(obs[:, 0], SCALING))
        log_probs, entropies, _ = policy.evaluate_outputs(policy(shown), torch.from_numpy(drawn))
    # The mean of -log p over what was drawn is the entropy.
    assert float(-log_probs.mean()) == pytest.approx(float(entropies[0]), abs=0.08)


def test_a_gaussian_is_not_compared_with_the_uniform_policy() -> None:
    policy, actions = network("gaussian"), torch.zeros(5, 8)
    *_, from_uniform = policy.evaluate_outputs(policy(torch.randn(5, OBS)), actions)
    assert from_uniform.tolist() == [0.0] * 5


def test_only_the_distance_from_uniform_revives_lost_actions() -> None:
    policy = network("categorical")
    last = policy.layers[-1].bias
    with torch.no_grad():
        last[7] += 200.0  # all others are lost: their probabilities are 0 in float32
    _, entropies, from_uniform = policy.evaluate_outputs(policy(torch.randn(5, OBS)), torch.full((5,), 7))
    by_entropy = torch.autograd.grad(entropies.sum(), last, retain_graph=True)[0]
    by_uniform = torch.autograd.grad(from_uniform.mean(), last)[0]
    assert by_entropy.abs().max() < 1e-9
    np.testing.assert_allclose(np.delete(by_uniform.numpy(), 7), -1 / 90, rtol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("distribution", ["categorical", "multi_categorical"])
def test_probabilities_are_those_of_allowed_choices(distribution: str, masked: bool) -> None:
    policy, rng = network(distribution), np.random.default_rng(5)
    sizes = policy.shape.sizes
    starts = np.cumsum((0, *sizes[:-1]))
    actions = rng.integers(sizes, size=(5, len(sizes)))
    allowed = (rng.random((5, sum(sizes))) < 0.5) | (not masked)
    np.put_along_axis(allowed, actions + starts, True, 1)
    obs, chosen = torch.randn(5, OBS), torch.from_numpy(actions.reshape(5, *policy.shape.action[0]))
    with torch.no_grad():
        found = policy.evaluate_outputs(policy(obs), chosen, torch.from_numpy(allowed) if masked else None)
        logits = policy(obs).double().numpy()
    for row in range(5):
        expected = np.zeros(3)  # log-probability, entropy, KL(uniform || policy): sums over the decisions
        for start, size, action in zip(starts, sizes, actions[row], strict=True):
            few = allowed[row, start : start + size]
            weights = np.exp(logits[row, start : start + size]) * few
            shares = weights / weights.sum()
            logs = np.log(shares[few])
            expected += np.log(shares[action]), -(shares[few] * logs).sum(), -logs.mean() - np.log(few.sum())
        np.testing.assert_allclose([float(one[row]) for one in found], expected, atol=1e-4)


def test_the_same_seed_draws_the_same_and_another_one_does_not() -> None:
    policy = network("categorical")
    row = pack(policy.shape, policy.arrays(), None)
    obs = observations(50)
    first, again, other = (unpack(policy.shape, row, seed).act(obs) for seed in ((1, 2), (1, 2), (1, 3)))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("layer_norm", [False, True], ids=["plain", "layer norm"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_numpy_computes_what_torch_does(activation: str, layer_norm: bool) -> None:
    policy = network("categorical", activation, layer_norm)
    played = Network(policy.arrays(), activation)
    obs = 3 * observations(100)[:, 0]
    with torch.no_grad():
        expected = policy(torch.from_numpy(obs)).numpy()
    np.testing.assert_allclose(played(obs), expected, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(played(obs[:1]), expected[:1], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_are_torchs_far_out(activation: str) -> None:
    values = np.concatenate([np.linspace(-12, 12, 4001), [-1e30, -1e4, -0.0, 1e4, 1e30]]).astype(np.float32)
    functions = {"leaky_relu": torch.nn.functional.leaky_relu, "silu": torch.nn.functional.silu,
                 "gelu": torch.nn.functional.gelu, "relu": torch.relu, "tanh": torch.tanh}  # fmt: skip
    expected = functions[activation](torch.from_numpy(values)).numpy()
    ACTIVATIONS[activation](values)
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)


def test_layer_norms_that_do_not_fit_are_named() -> None:
    weights = network("categorical", layer_norm=True).arrays()
    with pytest.raises(ValueError, match=r"norms.1.bias is float32\(3,\), expected .* of shape \(16\)"):
        NetworkPolicy(weights | {"norms.1.bias": np.zeros(3, np.float32)}, "categorical", (90,))
    del weights["norms.1.bias"]
    with pytest.raises(
        ValueError, match=r"with layer normalisation norms.0.weight and norms.0.bias of every"
    ):
        NetworkPolicy(weights, "categorical", (90,))
