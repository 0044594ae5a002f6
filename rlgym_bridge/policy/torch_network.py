"""Policy and critic in torch, with three distributions of actions over the policy's outputs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional

from rlgym_bridge.components.spec import import_named
from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.policy import shape as shapes
from rlgym_bridge.policy.numpy_layers import LEAKY_SLOPE, NORM_EPS
from rlgym_bridge.policy.numpy_network import LOG_STD_RANGE

_POLICY_GAIN: Final = 0.01  # of the last layer: all actions are about equally likely at first

FORBIDDEN: Final = -1e30
"""Logit of a choice that a mask forbids: its probability is 0 exactly, and its logarithm finite."""


_ACTIVATIONS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    "relu": torch.relu_,
    "leaky_relu": partial(functional.leaky_relu, negative_slope=LEAKY_SLOPE),
    "tanh": torch.tanh,
    "silu": functional.silu,
    "gelu": functional.gelu,
}
"""The functions of `activations.ACTIVATIONS` in torch."""


class SteppingNetwork(nn.Module):
    """A network that may remember `state_size` numbers of each row from step to step; 0 without memory."""

    state_size: int = 0

    def step(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs `(rows, outputs)` and the memory `(rows, state_size)` after a step.

        `state` is 0 where an episode begins, which `starts` `(rows,)` bool says.
        """
        return self(inputs), state


class Perceptron(SteppingNetwork):
    """Linear layers with an activation between them; parameters are named as in a policy folder.

    `widths` are those of inputs, hidden layers and outputs; `last_gain` is that of the last layer's weights,
    whose rows are orthogonal, as all layers' are.
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


class PlayerAttention(Perceptron):
    """The network of `numpy_layers.AttentionNetwork`, to be trained; a perceptron of `layers` follows."""

    common: Tensor
    blocks: Tensor
    enemies: Tensor

    def __init__(
        self, places: shapes.PlayerPlaces, outputs: int, layers: Sequence[int], last_gain: float,
        activation: str = "relu", layer_norm: bool = False,
    ) -> None:  # fmt: skip
        width = shapes.ATTENTION_WIDTH
        super().__init__((2 * width, *layers, outputs), last_gain, activation, layer_norm)
        self.own, self.car = nn.Linear(len(places.common), width), nn.Linear(places.blocks.shape[1], width)
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        for part, gain in (
            (self.own, math.sqrt(2)), (self.car, math.sqrt(2)), (self.query, 1.0), (self.key, 1.0),
            (self.value, 1.0), (self.mix, 1.0),
        ):  # fmt: skip
            nn.init.orthogonal_(part.weight, gain)
            nn.init.zeros_(part.bias)
        self.team = nn.Parameter(0.1 * torch.randn(2, width))
        self._there = places.there
        for name in ("common", "blocks", "enemies"):
            self.register_buffer(name, torch.from_numpy(getattr(places, name)), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(rows, outputs)` for `(rows, inputs)`."""
        blocks = inputs[:, self.blocks]  # (rows, places, numbers)
        own = self._activate(self.own(inputs[:, self.common]))
        cars = self._activate(self.car(blocks) + self.team[self.enemies])
        every = torch.cat((own[:, None], cars), 1)  # (rows, 1 + places, width)
        heads = (shapes.ATTENTION_HEADS, shapes.ATTENTION_WIDTH // shapes.ATTENTION_HEADS)
        # One query, many cars: it is cheaper to turn the query than all keys, and the sum than all values.
        # A key's bias adds as much to each car's score, which changes no share.
        query = self.query(own).unflatten(-1, heads) * heads[1] ** -0.5
        asked = torch.einsum("rhd,hdw->rhw", query, self.key.weight.unflatten(0, heads).to(query.dtype))
        scores = (asked @ every.transpose(1, 2)).float()  # (rows, heads, 1 + places)
        there = nn.functional.pad(blocks[..., self._there] > 0, (1, 0), value=True)
        shares = scores.masked_fill(~there[:, None], FORBIDDEN).softmax(2)
        sums = shares.to(every.dtype) @ every  # (rows, heads, width)
        values = torch.einsum("rhw,hdw->rhd", sums, self.value.weight.unflatten(0, heads).to(sums.dtype))
        seen = values.flatten(1) + self.value.bias
        return super().forward(torch.cat((own, self.mix(seen)), 1))


class GruPerceptron(Perceptron):
    """The network of `numpy_layers.GruNetwork`, to be trained; a perceptron of `layers` follows."""

    def __init__(
        self, inputs: int, outputs: int, layers: Sequence[int], last_gain: float, activation: str = "relu",
        layer_norm: bool = False,
    ) -> None:  # fmt: skip
        width = shapes.GRU_WIDTH
        super().__init__((2 * width, *layers, outputs), last_gain, activation, layer_norm)
        self.enter, self.cell, self.state_size = nn.Linear(inputs, width), nn.GRUCell(width, width), width
        nn.init.orthogonal_(self.enter.weight, math.sqrt(2))
        for name, parameter in (*self.cell.named_parameters(), ("enter_bias", self.enter.bias)):
            (nn.init.zeros_ if "bias" in name else nn.init.orthogonal_)(parameter)

    def step(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs and the memory after a step; see `SteppingNetwork.step`."""
        entered = self._activate(self.enter(inputs))
        after: Tensor = self.cell(entered, state).float()
        return super().forward(torch.cat((entered, after), 1)), after


class OwnNetwork(SteppingNetwork):
    """A network of the user's own, `module:Class`; raises ValueError unless it gives the outputs."""

    def __init__(self, path: str, kind: Any, inputs: int, outputs: int) -> None:
        super().__init__()
        self._inputs = inputs
        if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
            raise ValueError(f"network is {path}, which is {kind!r}, expected a class of torch.nn.Module")
        try:
            self.net: nn.Module = kind(inputs, outputs)
            self.state_size = int(getattr(self.net, "state_size", 0))
            zeros = torch.zeros(2, inputs), torch.zeros(2, self.state_size), torch.ones(2, dtype=torch.bool)
            with torch.no_grad():
                found, state = self._call(*zeros)
        except Exception as error:  # whatever the user's code raises
            raise ValueError(
                f"network is {path}, which cannot be made or called: {describe_error(error)}; expected "
                f"{path.partition(':')[2]}({inputs}, {outputs}), which takes (rows, {inputs}) float32; with "
                "state_size above 0 state and starts, too, and gives outputs and state"
            ) from error
        if not isinstance(found, Tensor) or found.shape != (2, outputs):
            what = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ValueError(
                f"network is {path}, which gives {what} for observations (2, {inputs}), expected a tensor "
                f"(2, {outputs})"
            )
        if self.state_size and (not isinstance(state, Tensor) or state.shape != (2, self.state_size)):
            raise ValueError(
                f"network is {path}, which gives no state (2, {self.state_size}) for 2 rows, expected one of "
                "its state_size"
            )
        whole = [name for name, value in self.net.state_dict().items() if not value.is_floating_point()]
        if whole:
            raise ValueError(
                f"network is {path}, which has tensors of whole numbers ({', '.join(whole)}), expected "
                "floating point: LayerNorm in place of BatchNorm"
            )

    def check_learning(self, path: str) -> None:
        """Raise ValueError, which names the network `path`, unless it can be trained, each row by itself."""
        try:
            why = self._find_misfit()
        except Exception as error:  # whatever the user's code raises
            why = f"cannot be called: {describe_error(error)}"
        if why:
            raise ValueError(f"network is {path}, which {why}")

    def _find_misfit(self) -> str:
        """Say why nothing could learn from what the network gives for some observations; "" if it could."""
        given = torch.rand(2, self._inputs, generator=torch.Generator().manual_seed(0))
        starts, state = torch.ones(2, dtype=torch.bool), torch.zeros(2, self.state_size)
        obs = given.clone()
        found, after = self.step(obs, state, starts)
        if not torch.equal(obs, given):
            return "changes the observations that it is given, expected new tensors: x = x + 1, not x += 1"
        if not (found.isfinite().all() and after.isfinite().all()):
            return "gives numbers that are not finite for observations from 0 to 1, expected finite ones"
        if not found.requires_grad:
            return (
                "gives outputs that depend on no parameter that learns, expected one at least, and no "
                "detach(), no_grad() or whole numbers between them"
            )
        with torch.no_grad():
            again, _ = self.step(given.clone(), state, starts)
            alone = [self.step(given[row : row + 1].clone(), state[:1], starts[:1])[0] for row in (0, 1)]
        reach = 0.02 * float(found.detach().abs().max())  # of float16
        if not torch.allclose(found, again, 0, reach):
            return "answers twice the same observations differently, expected the same: no Dropout, no noise"
        if not torch.allclose(found, torch.cat(alone), 0, reach):
            return (
                "answers a row beside others and alone differently, expected the same: LayerNorm in place of "
                "BatchNorm, no mean over rows"
            )
        return ""

    def _call(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Any, Any]:
        if not self.state_size:
            return self.net(inputs), state
        outputs, after = self.net(inputs, state, starts)
        return outputs, after

    def step(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs and the memory after a step; see `SteppingNetwork.step`."""
        outputs, after = self._call(inputs, state, starts)
        return outputs.float(), after.float()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(rows, outputs)` for `(rows, inputs)`, without memory."""
        outputs: Tensor = self.net(inputs)
        return outputs.float()


class OwnInference:
    """A user's network with trained weights, `net.*`; raises ValueError for other weights."""

    def __init__(
        self, path: str, kind: Any, weights: Mapping[str, np.ndarray], inputs: int, outputs: int
    ) -> None:
        self._network, self.inputs, self.outputs = OwnNetwork(path, kind, inputs, outputs), inputs, outputs
        self.state_size = self._network.state_size
        expected = {name: tuple(value.shape) for name, value in self._network.state_dict().items()}
        there = {name: tuple(value.shape) for name, value in weights.items()}
        if expected != there:
            differing = sorted(set(expected.items()) ^ set(there.items()))
            raise ValueError(
                f"network is {path}, whose tensors differ from the weights in {differing[:4]}, expected the "
                "class as it was in training"
            )
        self._network.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        self._network.eval()

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Return `(batch, outputs)` float32 for `(batch, inputs)` float32."""
        with torch.no_grad():
            outputs: np.ndarray = self._network(torch.from_numpy(inputs)).numpy()
        return outputs

    def step(
        self, inputs: np.ndarray, state: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs and the memory after a step, as `numpy_layers.GruNetwork.step` does."""
        with torch.no_grad():
            outputs, after = self._network.step(*map(torch.from_numpy, (inputs, state, starts)))
        return outputs.numpy(), after.numpy()

    def row_by_row(self, inputs: np.ndarray) -> np.ndarray:
        """Return the outputs, each row's as it would be alone."""
        return np.concatenate([self(inputs[i : i + 1]) for i in range(len(inputs))])


class ActingNetwork(SteppingNetwork):
    """A network and a distribution of actions over its outputs."""

    shape: shapes.PolicyShape

    def take_shape(self, shape: shapes.PolicyShape) -> None:
        """Become the network of a policy of this shape."""
        self.shape = shape
        if shape.distribution == "gaussian":
            self.log_std = nn.Parameter(torch.zeros(shape.sizes))

    def evaluate_outputs(
        self, outputs: Tensor, actions: Tensor, masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log-probabilities of actions, the policy's entropies, and how far it is from uniform.

        All are `(rows,)`, in nats, for outputs `(rows, outputs)` of the network and actions `(rows,)` or
        `(rows, choices)` int64 or `(rows, k)` float32. Choices that masks `(rows, outputs)` bool forbid have
        the probability 0, and no part in entropy and divergence.
        """
        outputs = outputs.float()
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

    def log_probs_of(self, outputs: Tensor, actions: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return the log-probabilities of actions, `(rows,)`; arguments are those of `evaluate_outputs`."""
        outputs = outputs.float()
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
        """Return KL(uniform || policy) in nats, `(rows,)` float32, over allowed choices; 0 for a gaussian.

        It is the larger the less likely the unlikely actions are, which hardly count in the entropy.
        `outputs` `(rows, outputs)` are `FORBIDDEN` where masks say no.
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

    def divergence_from(self, outputs: Tensor, targets: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return KL(targets || policy) in nats, `(rows,)` float32, over the allowed choices.

        `targets` are probabilities `(rows, outputs)`; where those of a choice do not make 1 together they are
        scaled, and what they make is the weight of the row. A row whose targets are all forbidden counts 0.
        """
        outputs, allowed = outputs.float(), targets
        if masks is not None:
            outputs, allowed = outputs.masked_fill(~masks, FORBIDDEN), targets * masks
        found = outputs.new_zeros(len(outputs))
        for logits, wanted, given in zip(
            *(one.split(self.shape.sizes, 1) for one in (outputs, allowed, targets)), strict=True
        ):
            likely = wanted / wanted.sum(1, keepdim=True).clamp_min(1e-12)
            logs = torch.log_softmax(logits, 1)
            found = found + given.sum(1) * (torch.xlogy(likely, likely) - likely * logs).sum(1)
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the parameters by their names in a policy folder."""
        return {name: value.cpu().numpy() for name, value in self.state_dict().items()}


class PolicyNetwork(ActingNetwork, Perceptron):
    """A perceptron that acts."""

    def __init__(self, shape: shapes.PolicyShape) -> None:
        widths = (shape.obs_size, *shape.layers, shape.outputs)
        Perceptron.__init__(self, widths, _POLICY_GAIN, shape.activation, shape.layer_norm)
        self.take_shape(shape)


class ValueNetwork(SteppingNetwork):
    """A network that estimates the return, the rewards to come."""

    def values(self, obs: Tensor) -> Tensor:
        """Return value estimates `(rows,)` float32 for observations `(rows, size)`."""
        values: Tensor = self(obs)[:, 0].float()
        return values


class Critic(ValueNetwork, Perceptron):
    """A perceptron that estimates returns."""

    def __init__(
        self, obs_size: int, layers: Sequence[int], activation: str = "relu", layer_norm: bool = False
    ) -> None:
        Perceptron.__init__(self, (obs_size, *layers, 1), 1.0, activation, layer_norm)


class _AttentionPolicy(ActingNetwork, PlayerAttention):
    """Attention that acts."""


class _AttentionCritic(ValueNetwork, PlayerAttention):
    """Attention that estimates returns."""


class _GruPolicy(ActingNetwork, GruPerceptron):
    """A perceptron with memory that acts."""


class _GruCritic(ValueNetwork, GruPerceptron):
    """A perceptron with memory that estimates returns."""


class _OwnPolicy(ActingNetwork, OwnNetwork):
    """A network of a user that acts."""


class _OwnCritic(ValueNetwork, OwnNetwork):
    """A network of a user that estimates returns."""


def make_networks(
    shape: shapes.PolicyShape, critic_layers: Sequence[int]
) -> tuple[shapes.PolicyShape, ActingNetwork, ValueNetwork]:
    """Make policy and critic of a run, of one kind, and the shape with the policy's weights."""
    kind = shape.activation, shape.layer_norm
    if shape.network == shapes.PERCEPTRON:
        return shape, PolicyNetwork(shape), Critic(shape.obs_size, critic_layers, *kind)
    policy: ActingNetwork
    critic: ValueNetwork
    if shape.network == shapes.ATTENTION:
        places = shapes.PlayerPlaces.of(shape.names)
        policy = _AttentionPolicy(places, shape.outputs, shape.layers, _POLICY_GAIN, *kind)
        critic = _AttentionCritic(places, 1, critic_layers, 1.0, *kind)
    elif shape.network == shapes.GRU:
        policy = _GruPolicy(shape.obs_size, shape.outputs, shape.layers, _POLICY_GAIN, *kind)
        critic = _GruCritic(shape.obs_size, 1, critic_layers, 1.0, *kind)
    else:
        network = import_named(shape.network, None)
        own = _OwnPolicy(shape.network, network, shape.obs_size, shape.outputs)
        judge = _OwnCritic(shape.network, network, shape.obs_size, 1)
        own.check_learning(shape.network)
        judge.check_learning(shape.network)
        policy, critic = own, judge
    policy.take_shape(shape)
    found = policy.state_dict().items()
    weights = tuple((name, tuple(value.shape)) for name, value in found)
    policy.shape = replace(shape, weights=weights, state_size=policy.state_size)
    return policy.shape, policy, critic
