"""Policy and critic in torch, with three distributions of actions over the policy's outputs."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional

from rlgym_bridge.policy.activations import LEAKY_SLOPE, NORM_EPS
from rlgym_bridge.policy.numpy_network import LOG_STD_RANGE
from rlgym_bridge.policy.shape import PolicyShape

FORBIDDEN: Final = -1e30
"""Logit of a choice that a mask forbids: its probability is 0 exactly, and its logarithm finite."""


def _leaky_relu(values: Tensor) -> Tensor:
    return functional.leaky_relu(values, LEAKY_SLOPE)


_ACTIVATIONS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    "relu": torch.relu_,
    "leaky_relu": _leaky_relu,
    "tanh": torch.tanh,
    "silu": functional.silu,
    "gelu": functional.gelu,
}
"""The functions of `activations.ACTIVATIONS` in torch."""


class Perceptron(nn.Module):
    """Linear layers with an activation between them; parameters are named as in a policy folder.

    Args:
        widths: Of inputs, hidden layers and outputs.
        last_gain: Of the last layer's weights, whose rows are orthogonal, as all layers' are.
        activation: Its name in `activations.ACTIVATIONS`.
        layer_norm: Whether layer normalisation stands before each activation.
    """

    def __init__(
        self, widths: Sequence[int], last_gain: float, activation: str = "relu", layer_norm: bool = False
    ) -> None:
        super().__init__()
        layers = [nn.Linear(inputs, outputs) for inputs, outputs in pairwise(widths)]
        for layer in layers:
            gain = last_gain if layer is layers[-1] else math.sqrt(2)
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)
        hidden = widths[1:-1] if layer_norm else ()
        self.norms = nn.ModuleList(nn.LayerNorm(width, NORM_EPS) for width in hidden)
        self._activate = _ACTIVATIONS[activation]

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(rows, outputs)` for `(rows, inputs)`."""
        for i, layer in enumerate(self.layers[:-1]):
            inputs = layer(inputs)
            if self.norms:
                inputs = self.norms[i](inputs)
            inputs = self._activate(inputs)
        with torch.autocast(inputs.device.type, enabled=False):  # rounding here would move probabilities
            outputs: Tensor = self.layers[-1](inputs.float())
        return outputs


class PolicyNetwork(Perceptron):
    """A perceptron and a distribution of actions over its outputs.

    A gaussian's deviations are parameters of their own, the same for all observations.

    Args:
        shape: Of the policy.
    """

    def __init__(self, shape: PolicyShape) -> None:
        # Small weights at the end: all actions are about equally likely at first.
        widths = (shape.obs_size, *shape.layers, shape.outputs)
        super().__init__(widths, 0.01, shape.activation, shape.layer_norm)
        self.shape = shape
        if shape.distribution == "gaussian":
            self.log_std = nn.Parameter(torch.zeros(shape.sizes))

    def evaluate_actions(
        self, obs: Tensor, actions: Tensor, masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log-probabilities of actions, the policy's entropies, and how far it is from uniform.

        Args:
            obs: `(rows, size)` float32, normalised if the policy's are.
            actions: `(rows,)` int64, `(rows, choices)` int64 or `(rows, k)` float32.
            masks: `(rows, outputs)` bool, the choices that were allowed; None for all. Others have the
                probability 0, and no part in entropy and divergence.

        Returns:
            `(rows,)` each, in nats: logarithms of probabilities (of densities for a gaussian); entropies; and
            what `divergence_from_uniform` returns.
        """
        outputs = self(obs).float()
        if self.shape.distribution == "gaussian":
            normal = self._normal(outputs)
            densities = normal.log_prob(actions).sum(1)
            return densities, normal.entropy().sum(1), self.divergence_from_uniform(outputs)
        if masks is not None:
            outputs = outputs.masked_fill(~masks, FORBIDDEN)
        choices = actions.reshape(len(actions), -1).unbind(1)
        log_prob, entropy = torch.zeros(()), torch.zeros(())
        for logits, chosen in zip(outputs.split(self.shape.sizes, 1), choices, strict=True):
            logs = torch.log_softmax(logits, 1)
            log_prob = log_prob + logs.gather(1, chosen[:, None])[:, 0]
            entropy = entropy - (logs.exp() * logs).sum(1)
        return log_prob, entropy, self.divergence_from_uniform(outputs, masks)

    def log_probs(self, obs: Tensor, actions: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return the log-probabilities of actions, `(rows,)`; arguments are those of `evaluate_actions`."""
        outputs = self(obs).float()
        if self.shape.distribution == "gaussian":
            densities: Tensor = self._normal(outputs).log_prob(actions)
            return densities.sum(1)
        if masks is not None:
            outputs = outputs.masked_fill(~masks, FORBIDDEN)
        choices = actions.reshape(len(actions), -1, 1).unbind(1)
        logs = (torch.log_softmax(logits, 1) for logits in outputs.split(self.shape.sizes, 1))
        chosen = [each.gather(1, choice) for each, choice in zip(logs, choices, strict=True)]
        return torch.cat(chosen, 1).sum(1)

    def _normal(self, means: Tensor) -> Normal:
        return Normal(means, self.log_std.clamp(*LOG_STD_RANGE).exp(), validate_args=False)

    def divergence_from_uniform(self, outputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return KL(uniform || policy) in nats, `(rows,)` float32; 0 for a gaussian.

        It is the larger the less likely the unlikely actions are, which hardly count in the entropy.

        Args:
            outputs: `(rows, outputs)` float32 of the network, `FORBIDDEN` where masks say no.
            masks: As `evaluate_actions` takes them; uniform is over the allowed choices.
        """
        found = outputs.new_zeros(len(outputs))
        if self.shape.distribution == "gaussian":
            return found
        if masks is None:
            for logits in outputs.split(self.shape.sizes, 1):
                found = found + logits.logsumexp(1) - logits.mean(1) - math.log(logits.shape[1])
            return found
        parts = (every.split(self.shape.sizes, 1) for every in (outputs, masks))
        for logits, allowed in zip(*parts, strict=True):
            count = allowed.sum(1)
            mean = logits.where(allowed, 0.0).sum(1) / count
            found = found + logits.logsumexp(1) - mean - count.log()
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the parameters by their names in a policy folder."""
        return {name: value.cpu().numpy() for name, value in self.state_dict().items()}


class Critic(Perceptron):
    """A perceptron that estimates the return, the rewards to come.

    Args:
        obs_size: Numbers in an observation.
        layers: Widths of the hidden layers.
        activation: As `Perceptron` takes it.
        layer_norm: As `Perceptron` takes it.
    """

    def __init__(
        self, obs_size: int, layers: Sequence[int], activation: str = "relu", layer_norm: bool = False
    ) -> None:
        super().__init__((obs_size, *layers, 1), 1.0, activation, layer_norm)

    def values(self, obs: Tensor) -> Tensor:
        """Return value estimates `(rows,)` float32 for observations `(rows, size)`."""
        values: Tensor = self(obs)[:, 0].float()
        return values
