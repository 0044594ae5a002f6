"""The networks of single-machine training as an RLlib module."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchMultiCategorical
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor

from rlgym_bridge.policy.numpy_layers import ACTIVATIONS
from rlgym_bridge.policy.numpy_network import LOG_STD_RANGE
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.policy.torch_network import Critic, PolicyNetwork


class PolicyModule(TorchRLModule, ValueFunctionAPI, InferenceOnlyAPI):
    """A perceptron for the policy and one for the critic; RLlib makes it from a `RLModuleSpec`.

    `model_config` may hold `policy_layers` and `critic_layers`, widths of hidden layers, (256, 256) each when
    not given; and `obs_clip`: then observations are normalised by the buffers `obs_mean` and `obs_std`, which
    whoever trains has to set, and clipped to plus and minus this. `activation` is one of
    `policy.numpy_layers.ACTIVATIONS`, and `layer_norm` says whether layer normalisation stands before each.

    Attributes:
        shape: Of the policy.
        policy: The policy's network; `policy.arrays()` are the tensors of a policy folder.
        critic: The critic's network; a module for inference alone has none.
    """

    def setup(self) -> None:
        """Make the networks; raises ValueError for a wrong `model_config`, or a space of no known kind."""
        config: dict[str, Any] = {
            "policy_layers": (256, 256), "critic_layers": (256, 256), "obs_clip": None, "activation": "relu",
            "layer_norm": False,
        }  # fmt: skip
        given = dict(self.model_config or {})
        given.pop("vf_share_layers", None)  # RLlib adds that for PPO
        if unknown := sorted(given.keys() - config.keys()):
            raise ValueError(
                f"model_config has {', '.join(unknown)}; PolicyModule knows policy_layers, critic_layers, "
                "activation, layer_norm and obs_clip"
            )
        config |= given
        layers, critic_layers = (_widths(name, config[name]) for name in ("policy_layers", "critic_layers"))
        clip, activation, layer_norm = config["obs_clip"], config["activation"], config["layer_norm"]
        if clip is not None and not (isinstance(clip, int | float) and 0 < clip < math.inf):
            raise ValueError(f"obs_clip is {clip!r}, expected a number above 0; or None to take all as it is")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}, expected one of {', '.join(ACTIVATIONS)}")
        if not isinstance(layer_norm, bool):
            raise ValueError(f"layer_norm is {layer_norm!r}, expected True or False")
        shape = _shape_of(self.observation_space, self.action_space, layers, clip)
        self.shape = replace(shape, activation=activation, layer_norm=layer_norm)
        self.policy = PolicyNetwork(self.shape)
        self.critic = Critic(self.shape.obs_size, critic_layers, self.shape.activation, layer_norm)
        if clip is not None:
            self.register_buffer("obs_mean", torch.zeros(self.shape.obs_size))
            self.register_buffer("obs_std", torch.ones(self.shape.obs_size))
        if self.shape.distribution == "multi_categorical":
            self.action_dist_cls = TorchMultiCategorical.get_partial_dist_cls(
                space=self.action_space, input_lens=list(self.shape.sizes)
            )

    def get_non_inference_attributes(self) -> list[str]:
        """Return what is not needed to act."""
        return ["critic"]

    def compute_values(self, batch: Mapping[str, Any], embeddings: Any = None) -> Tensor:
        """Return `(rows,)` float32: how much reward is to come."""
        values: Tensor = self.critic.values(self._shown(batch))
        return values

    def _forward(self, batch: Mapping[str, Any], **kwargs: Any) -> dict[str, Any]:
        outputs = self.policy(self._shown(batch))
        if self.shape.distribution == "gaussian":
            log_std = self.policy.log_std.clamp(*LOG_STD_RANGE)
            outputs = torch.cat([outputs, log_std.expand_as(outputs)], 1)
        return {Columns.ACTION_DIST_INPUTS: outputs}

    def _shown(self, batch: Mapping[str, Any]) -> Tensor:
        obs: Tensor = batch[Columns.OBS]
        if self.shape.obs_clip is None:
            return obs
        shown: Tensor = (obs - self.obs_mean) / self.obs_std
        return shown.clamp(-self.shape.obs_clip, self.shape.obs_clip)


def _shape_of(
    obs: gym.Space[Any], actions: gym.Space[Any], layers: tuple[int, ...], obs_clip: float | None
) -> PolicyShape:
    """Return the shape of a policy for some spaces."""
    if not isinstance(obs, gym.spaces.Box) or len(obs.shape) != 1 or not obs.shape[0]:
        raise ValueError(f"the observation space is {obs}, expected a Box of one dimension")
    if isinstance(actions, gym.spaces.Discrete) and not actions.start:
        kind, sizes = "categorical", (int(actions.n),)
    elif isinstance(actions, gym.spaces.MultiDiscrete) and actions.nvec.ndim == 1 and not actions.start.any():
        kind, sizes = "multi_categorical", tuple(actions.nvec.tolist())
    elif isinstance(actions, gym.spaces.Box) and len(actions.shape) == 1:
        kind, sizes = "gaussian", actions.shape
    else:
        raise ValueError(
            f"the action space is {actions}, expected Discrete or MultiDiscrete of one dimension, both "
            "counted from 0, or Box(k,)"
        )
    return PolicyShape(obs.shape[0], kind, sizes, layers, obs_clip)


def _widths(name: str, given: Any) -> tuple[int, ...]:
    widths = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (None,)
    if not all(isinstance(width, int) and width > 0 for width in widths):
        raise ValueError(f"{name} is {given!r}, expected widths of hidden layers, such as (256, 256)")
    return widths
