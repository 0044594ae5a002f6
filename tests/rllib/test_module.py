"""`PolicyModule`: in RLlib it says what the same tensors say where a policy folder is played."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

import torch
from gymnasium import spaces
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.torch import TorchRLModule

from rlgym_bridge.policy.manifest import Normalisation
from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.training.rllib.match_runner import MatchRunner
from rlgym_bridge.training.rllib.module import PolicyModule
from tests.support.rllib_episodes import logp_of
from tests.support.rllib_matches import ppo

SPACES = {
    "categorical": spaces.Discrete(90),
    "multi_categorical": spaces.MultiDiscrete([3, 3, 3, 3, 3, 2, 2, 2]),
    "gaussian": spaces.Box(-1.0, 1.0, (8,)),
}
OBS = 21
each_kind = pytest.mark.parametrize("kind", SPACES)


def module_of(kind: str = "categorical", inference_only: bool = False, **config: Any) -> PolicyModule:
    """Return a module whose parameters and scale are those of a policy that has learned: any numbers."""
    torch.manual_seed(0)
    module = PolicyModule(
        observation_space=spaces.Box(-np.inf, np.inf, (OBS,)),
        action_space=SPACES[kind],
        inference_only=inference_only,
        model_config={"policy_layers": (16, 12), "critic_layers": (10,)} | config,
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
        for name, buffer in module.named_buffers():
            buffer.copy_(torch.rand_like(buffer) + 0.5 if name == "obs_std" else torch.randn_like(buffer))
    return module


def seen(rows: int = 64) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 2, (rows, OBS)).astype(np.float32)


def shown(module: PolicyModule, clip: float | None, obs: np.ndarray) -> np.ndarray:
    """Return observations as the networks are given them, in numpy."""
    if clip is None:
        return obs
    return ((obs - module.obs_mean.numpy()) / module.obs_std.numpy()).clip(-clip, clip)


def forward(module: PolicyModule, obs: np.ndarray, method: str = "forward_exploration") -> torch.Tensor:
    return getattr(module, method)({Columns.OBS: torch.from_numpy(obs)})[Columns.ACTION_DIST_INPUTS].detach()


@each_kind
@pytest.mark.parametrize("clip", [None, 1.5])
def test_the_likeliest_action_is_that_of_the_policy_in_a_folder(kind: str, clip: float | None) -> None:
    module = module_of(kind, obs_clip=clip)
    scale = None
    if clip is not None:
        scale = Normalisation(tuple(module.obs_mean.tolist()), tuple(module.obs_std.tolist()), clip)
    sizes = module.shape.sizes
    policy = NetworkPolicy(module.policy.arrays(), kind, sizes, "argmax", normalisation=scale)
    distribution = module.get_inference_action_dist_cls().from_logits(
        forward(module, seen(), "forward_inference")
    )
    actions = distribution.to_deterministic().sample().numpy()
    np.testing.assert_allclose(actions, policy.act(seen()[:, None])[:, 0], atol=1e-5)
    assert len(np.unique(actions, axis=0)) > 5, "it depends on the observation"


@each_kind
@pytest.mark.parametrize("clip", [None, 1.5])
def test_probabilities_are_those_of_the_tensors_of_a_folder(kind: str, clip: float | None) -> None:
    module = module_of(kind, obs_clip=clip)
    weights = dict(module.policy.arrays())
    log_std = weights.pop("log_std", None)
    inputs = Network(weights)(shown(module, clip, seen()))
    if log_std is not None:
        inputs = np.concatenate([inputs, np.broadcast_to(log_std, inputs.shape)], 1)
    SPACES[kind].seed(0)
    actions = np.stack([SPACES[kind].sample() for _ in inputs])
    expected = logp_of(SPACES[kind], inputs, actions)
    for method, distribution_of in (
        ("forward_exploration", module.get_exploration_action_dist_cls),
        ("forward_train", module.get_train_action_dist_cls),
    ):
        found = distribution_of().from_logits(forward(module, seen(), method)).logp(torch.from_numpy(actions))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    # What training on a single machine makes of the same tensors.
    rows, chosen = torch.from_numpy(shown(module, clip, seen())), torch.from_numpy(actions)
    alone, *_ = module.policy.evaluate_outputs(module.policy(rows), chosen)
    np.testing.assert_allclose(alone.detach(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("clip", [None, 1.5])
def test_the_critic_sees_what_the_policy_sees(clip: float | None) -> None:
    module = module_of(obs_clip=clip)
    critic = {name: value.numpy() for name, value in module.critic.state_dict().items()}
    values = module.compute_values({Columns.OBS: torch.from_numpy(seen())})
    assert values.shape == (64,) and values.dtype == torch.float32
    expected = Network(critic)(shown(module, clip, seen()))[:, 0]
    np.testing.assert_allclose(values.detach(), expected, atol=1e-5)


def test_networks_are_as_wide_as_the_config_says() -> None:
    default = PolicyModule(
        observation_space=spaces.Box(-np.inf, np.inf, (OBS,)), action_space=SPACES["gaussian"],
        model_config={"vf_share_layers": False},
    )  # fmt: skip
    for module, policy, critic in (
        (module_of(), [16, 12, 90], [10, 1]),
        (default, [256, 256, 8], [256, 256, 1]),
    ):
        assert [layer.out_features for layer in module.policy.layers] == policy
        assert [layer.out_features for layer in module.critic.layers] == critic
        assert set(dict(module.named_buffers())) == set(), "they are for obs_clip"


@each_kind
@pytest.mark.parametrize("clip", [None, 1.5])
def test_for_inference_the_critic_is_left_out(kind: str, clip: float | None) -> None:
    learner = module_of(kind, obs_clip=clip)
    runner = module_of(kind, inference_only=True, obs_clip=clip)
    assert hasattr(learner, "critic") and not hasattr(runner, "critic")
    assert not [name for name in runner.state_dict() if name.startswith("critic")]
    for state in (learner.get_state(inference_only=True), learner.get_state()):
        with torch.no_grad():
            for tensor in runner.state_dict().values():
                tensor.zero_()
        runner.set_state(state)
        assert torch.equal(forward(runner, seen()), forward(learner, seen()))
    assert set(learner.get_state(inference_only=True)) == set(runner.get_state())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"policy_layers": 256}, "policy_layers is 256, expected widths of hidden layers"),
        ({"policy_layers": (64, 0)}, r"policy_layers is \(64, 0\), expected widths"),
        ({"critic_layers": [2.5]}, r"critic_layers is \[2.5\], expected widths"),
        ({"activation": "mish"}, "activation is 'mish', expected one of relu, leaky_relu, tanh"),
        ({"layer_norm": 1}, "layer_norm is 1, expected True or False"),
        ({"critic_layers": "256"}, "critic_layers is '256', expected widths"),
        ({"obs_clip": -1.0}, "obs_clip is -1.0, expected a number above 0"),
        ({"obs_clip": np.nan}, "obs_clip is nan, expected a number above 0"),
        ({"policy_layer": (8)}, "model_config has policy_layer; .* policy_layers, critic_layers, activation"),
    ],
)
def test_networks_that_cannot_be_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        module_of("categorical", **config)


@pytest.mark.parametrize(
    ("obs", "actions", "message"),
    [
        (spaces.Discrete(4), SPACES["categorical"], r"observation space is Discrete\(4\), expected a Box"),
        (spaces.Box(0, 1, (3, 4)), SPACES["categorical"], "observation space is Box.*of one dimension"),
        (spaces.Dict(a=spaces.Box(0, 1, (3,))), SPACES["gaussian"], "observation space is Dict"),
        (spaces.Box(0, 1, (3,)), spaces.MultiBinary(4), r"action space is MultiBinary\(4\), expected"),
        (spaces.Box(0, 1, (3,)), spaces.Box(-1, 1, (2, 4)), "action space is Box"),
        (spaces.Box(0, 1, (3,)), spaces.Discrete(4, start=1), "action space is Discrete.*counted from 0"),
        (spaces.Box(0, 1, (3,)), spaces.MultiDiscrete([3, 2], start=[1, 0]), "action space is MultiDiscrete"),
        (spaces.Box(0, 1, (3,)), spaces.MultiDiscrete([[3, 2], [2, 2]]), "action space is MultiDiscrete"),
        (spaces.Box(0, 1, (3,)), spaces.Tuple([spaces.Discrete(2)]), "action space is Tuple"),
    ],
)
def test_spaces_of_another_kind_are_refused(
    obs: spaces.Space[Any], actions: spaces.Space[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PolicyModule(observation_space=obs, action_space=actions)


def test_a_ppo_learner_begins_at_the_policy_that_played() -> None:
    config = ppo().training(num_epochs=1, minibatch_size=10_000, lr=0.01)
    runner = MatchRunner(config=config)
    learner = config.build_learner(spaces=runner.get_spaces())
    runner.module.set_state(learner.module.get_state(inference_only=True))
    before = learner.module["blue"].get_state()
    found = learner.update(episodes=runner.sample(num_timesteps=2 * 14))
    for name in ("blue", "orange"):
        stats = {key: float(value.peek()) for key, value in found[name].items()}
        assert stats["num_module_steps_trained"] >= 2 * 14
        assert stats["mean_kl_loss"] == pytest.approx(0, abs=1e-6)
        assert np.isfinite(list(stats.values())).all() and stats["vf_loss"] > 0
    after = learner.module["blue"].get_state()
    assert all((before[key] != after[key]).any() for key in before)


def test_the_runner_refuses_modules_with_a_state() -> None:
    memory = DefaultModelConfig(use_lstm=True)
    spec = RLModuleSpec(module_class=DefaultPPOTorchRLModule, model_config=memory)
    with pytest.raises(ValueError, match="no modules that keep a state; use RLlib's MultiAgentEnvRunner"):
        MatchRunner(config=ppo(module=spec))


@pytest.mark.parametrize("pipe", ["env_to_module_connector", "module_to_env_connector"])
def test_the_runner_refuses_connectors_of_ones_own(pipe: str) -> None:
    with pytest.raises(ValueError, match=r"runs no connectors .* use RLlib's MultiAgentEnvRunner"):
        MatchRunner(config=ppo(**{pipe: lambda *_, **__: FlattenObservations(multi_agent=True)}))


class Still(TorchRLModule):
    """Says what to do, in place of a distribution."""

    def _forward(self, batch: Any, **_: Any) -> dict[str, Any]:
        return {Columns.ACTIONS: torch.full((len(batch[Columns.OBS]),), 4)}


def test_the_runner_plays_modules_that_choose_themselves() -> None:
    config = ppo(matches=1, module=RLModuleSpec(module_class=Still))
    (episode,) = MatchRunner(config=config).sample(num_timesteps=3)
    assert episode.get_actions(slice(None))["blue-0"].tolist() == [4, 4, 4]
