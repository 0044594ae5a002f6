"""Take gradient steps faster: by hand on a CPU, as CUDA graphs on a GPU.

    CPU: observations -> forward, activations kept -> loss and its derivatives -> backward -> gradients
    GPU: batch -> copied to where the graphs read it -> rows of a minibatch -> replayed step -> statistics

The formulas are those of `ppo.gradients_of`, which serves all other networks and devices.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import torch
from torch import Tensor

from rlgym_bridge.policy.shape import PERCEPTRON
from rlgym_bridge.policy.torch_network import FORBIDDEN, ActingNetwork, Perceptron, ValueNetwork
from rlgym_bridge.training.settings import TrainingSettings

_threshold_backward: Final = torch.ops.aten.threshold_backward.grad_input


class Backpropagation:
    """Gradients of a policy of discrete actions and of a critic, both with ReLU and no layer normalisation.

    Both are only read. Several threads may use it at once; each has its own memory.
    """

    def __init__(self, policy: ActingNetwork, critic: ValueNetwork, settings: TrainingSettings) -> None:
        self._policy, self._critic, self._settings = policy, critic, settings
        self._own = threading.local()

    @staticmethod
    def serves(settings: TrainingSettings, policy: ActingNetwork) -> bool:
        """Return whether these networks are such ones, in float32, with a loss that is known here."""
        plain = settings.activation == "relu" and not settings.layer_norm and not settings.bfloat16
        plain = plain and policy.shape.network == PERCEPTRON and not settings.value_clip
        return plain and policy.shape.distribution != "gaussian"

    @torch.no_grad()
    def gradients(
        self,
        shown: Tensor,
        actions: Tensor,
        log_probs: Tensor,
        advantages: Tensor,
        returns: Tensor,
        rows: int,
        masks: Tensor | None = None,
    ) -> tuple[list[Tensor], Tensor]:
        """Return what `ppo.gradients_of` does: gradients of policy and critic, and sums of `SUMMED`, `(6,)`.

        Observations `(n, S)` are as the networks see them; actions `(n,)` or `(n, k)`, the others `(n,)`, and
        masks `(n, choices)` or None are as in `ppo.Batch`. `rows` are those of the whole minibatch.
        """
        policy, critic = self._layers()
        settings, outputs = self._settings, policy.forward(shown)
        sizes = self._policy.shape.sizes
        if masks is not None:
            outputs = outputs.masked_fill(~masks, FORBIDDEN)
        decisions = [
            _Decision(logits, chosen, allowed)
            for logits, chosen, allowed in zip(
                outputs.split(sizes, 1),
                actions.view(len(shown), -1).unbind(1),
                [None] * len(sizes) if masks is None else masks.split(sizes, 1),
                strict=True,
            )
        ]
        change = sum(one.log_prob for one in decisions) - log_probs
        ratios = torch.exp(change)
        plain, clipped = ratios * advantages, ratios.clamp(1 - settings.clip, 1 + settings.clip) * advantages
        # Where the clipped term is the smaller one, the loss does not depend on the policy.
        by_log_prob = torch.where(clipped < plain, 0.0, plain).mul_(-1 / rows)
        entropy_weight, uniform_weight = (
            weight / rows for weight in (settings.entropy_coefficient, settings.uniform_coefficient)
        )
        parts = [one.by_logits(by_log_prob, entropy_weight, uniform_weight) for one in decisions]
        gradients = policy.backward(parts[0] if len(parts) == 1 else torch.cat(parts, 1))
        errors = critic.forward(shown)[:, 0] - returns
        gradients += critic.backward((errors / rows)[:, None])
        sums = (
            -torch.minimum(plain, clipped).sum(),
            0.5 * errors.dot(errors),
            sum(one.entropy.sum() for one in decisions),
            sum(one.from_uniform().sum() for one in decisions),
            (ratios - 1 - change).sum(),
            ((ratios - 1).abs() > settings.clip).sum(dtype=torch.float32),
        )
        return gradients, torch.stack(sums)  # type: ignore[arg-type]

    def _layers(self) -> "tuple[_Layers, _Layers]":
        """Return the layers of both networks with the memory of this thread."""
        if not hasattr(self._own, "layers"):
            assert isinstance(self._policy, Perceptron) and isinstance(self._critic, Perceptron)
            self._own.layers = _Layers(self._policy), _Layers(self._critic)
        found: tuple[_Layers, _Layers] = self._own.layers
        return found


class _Decision:
    """One choice of each row: its log-probability, its entropy, and their derivatives.

    Attributes:
        log_prob: `(n,)`, of what was chosen.
        entropy: `(n,)`, in nats.
    """

    def __init__(self, logits: Tensor, chosen: Tensor, allowed: Tensor | None = None) -> None:
        self._chosen, self._allowed = chosen[:, None], allowed
        self._logs = torch.log_softmax(logits, 1)  # (n, choices)
        self._probs = self._logs.exp()
        self.log_prob = self._logs.gather(1, self._chosen)[:, 0]
        self.entropy = (self._probs * self._logs).sum(1).neg_()

    def from_uniform(self) -> Tensor:
        """Return KL(uniform || policy) in nats, `(n,)`; uniform is over the allowed choices."""
        if self._allowed is not None:
            count = self._allowed.sum(1)
            return self._logs.where(self._allowed, 0.0).sum(1).neg_() / count - count.log()
        return self._logs.mean(1).neg_() - math.log(self._logs.shape[1])

    def by_logits(self, by_log_prob: Tensor, entropy_weight: float, uniform_weight: float) -> Tensor:
        """Return the derivatives of the loss by the logits, `(n, choices)`.

        `by_log_prob` `(n,)` is that by the log-probability; the others are weights of the entropy, which is
        taken off the loss, and of the divergence from the uniform policy.
        """
        # p * (weight * (log p + entropy) - by_log_prob + uniform weight), and by_log_prob for what was chosen
        shift = (self.entropy * entropy_weight).sub_(by_log_prob).add_(uniform_weight)
        found = torch.add(shift[:, None], self._logs, alpha=entropy_weight).mul_(self._probs)
        if uniform_weight and self._allowed is not None:
            found -= self._allowed * (uniform_weight / self._allowed.sum(1, keepdim=True))
        elif uniform_weight:
            found -= uniform_weight / found.shape[1]
        return found.scatter_add_(1, self._chosen, by_log_prob[:, None])


class _Layers:
    """Forward and backward through a perceptron, with activations in memory that stays."""

    def __init__(self, network: Perceptron) -> None:
        tensors = [parameter.detach() for parameter in network.layers.parameters()]
        self._pairs = list(zip(tensors[::2], tensors[1::2], strict=True))  # weight and bias of each layer
        self._inputs: list[Tensor] = []  # of each layer, the latest ones
        self._outputs: list[Tensor] = []  # (rows, width) of each layer
        self._by_outputs: list[Tensor] = []  # derivatives by them

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(n, outputs)` for `(n, inputs)`; the next call writes over it."""
        rows = len(inputs)
        if not self._outputs or len(self._outputs[0]) < rows:
            for kept in (self._outputs, self._by_outputs):
                kept[:] = [torch.empty(rows, len(bias)) for _, bias in self._pairs]
        self._inputs = []
        for (weight, bias), place in zip(self._pairs, self._outputs, strict=True):
            if self._inputs:
                inputs.relu_()
            self._inputs.append(inputs)
            inputs = torch.addmm(bias, inputs, weight.t(), out=place[:rows])
        return inputs

    def backward(self, by_outputs: Tensor) -> list[Tensor]:
        """Return the derivatives by all weights and biases, from those by the outputs `(n, outputs)`."""
        found: list[Tensor] = []
        for number in reversed(range(len(self._pairs))):
            inputs = self._inputs[number]
            found = [torch.mm(by_outputs.t(), inputs), by_outputs.sum(0), *found]
            if number:
                place = self._by_outputs[number - 1][: len(inputs)]
                torch.mm(by_outputs, self._pairs[number][0], out=place)
                by_outputs = _threshold_backward(place, inputs, 0, grad_input=place)
        return found


def add_up(parts: Sequence[list[Tensor]]) -> list[Tensor]:
    """Return the sums of the gradients of some parts, of any shapes; the first part's are written over."""
    total = parts[0]
    for more in parts[1:]:
        torch._foreach_add_(total, more)
    return total


WARM_UP: Final = 3
"""Steps of each kind that are not recorded: libraries set themselves up in them [PyTorch on CUDA graphs]."""

Step = Callable[[Tensor], Tensor]
"""Takes a gradient step with the rows `(n,)` int64 of a minibatch, and returns its statistics `(m,)`."""

Recorder = Callable[[Callable[[], Tensor]], tuple[Callable[[], None], Tensor]]
"""Records a function without running it; returns what runs it, and where its result is from then on."""


def record_graph(step: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
    """Record a function as a CUDA graph; return what runs it once, and its result `(m,)`, written anew."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph.replay, result


class RecordedSteps:
    """Takes gradient steps: the first ones of each kind operation by operation, all others as one graph.

    Graphs read and write fixed places. So every batch has to lie where the first one lay, see `keep`, and
    networks and optimiser must not be given other tensors after the first step.
    """

    def __init__(self, record: Recorder = record_graph) -> None:
        self._record = record
        self._kept: list[Tensor] = []
        self._plain: Counter[Hashable] = Counter()  # steps that were not recorded
        self._graphs: dict[Hashable, tuple[Tensor, Callable[[], None], Tensor]] = {}

    def keep(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the places of a batch, with its numbers in them; other shapes are recorded anew."""
        if [one.shape for one in tensors] == [one.shape for one in self._kept]:
            for place, tensor in zip(self._kept, tensors, strict=True):
                place.copy_(tensor)
        else:
            self._kept = list(tensors)
            self._graphs.clear()
            self._plain.clear()
        return self._kept

    def take(self, step: Step, rows: Tensor, kind: Hashable) -> Tensor:
        """Take a gradient step with rows `(n,)` int64; return what `step` does, `(m,)` float32.

        The step reads the batch where `keep` put it. `kind` is what else decides on its operations.
        """
        key = (len(rows), kind)
        if key not in self._graphs:
            if self._plain[key] < WARM_UP:
                self._plain[key] += 1
                return _take_aside(step, rows)
            own = rows.clone()
            self._graphs[key] = (own, *self._record(lambda: step(own)))
        own, replay, found = self._graphs[key]
        own.copy_(rows)
        replay()
        return found.clone()  # the next run writes over it


def _take_aside(step: Step, rows: Tensor) -> Tensor:
    """Take a step on a stream of its own, as steps are recorded on one."""
    if not rows.is_cuda:
        return step(rows)
    here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        found = step(rows)
    here.wait_stream(aside)
    return found
