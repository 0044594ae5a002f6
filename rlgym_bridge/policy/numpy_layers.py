"""The layers of a perceptron in numpy, and attention over players, or a memory, before one.

Weights are named `layers.0.weight` (out, in), `layers.0.bias` (out,), `layers.1.weight` ..., with an
activation between layers and nothing after the last. Where every layer but the last has `norms.0.weight` and
`norms.0.bias` (out,), layer normalisation stands before each activation.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from rlgym_bridge.policy.shape import ATTENTION_HEADS, ATTENTION_WIDTH, GRU_WIDTH, PlayerPlaces

LEAKY_SLOPE: Final = 0.01  # slope of a leaky ReLU below 0 [torch's default]
NORM_EPS: Final = 1e-5  # number that layer normalisation adds to the variance [torch's default]

_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_SCALE: Final = 0.3275911  # the error function to 1.5e-7 [Abramowitz and Stegun, 7.1.26]


def _relu(values: np.ndarray) -> None:
    np.maximum(values, 0, out=values)


def _leaky_relu(values: np.ndarray) -> None:
    np.maximum(values, values * np.float32(LEAKY_SLOPE), out=values)


def _tanh(values: np.ndarray) -> None:
    np.tanh(values, out=values)


def _silu(values: np.ndarray) -> None:
    """Multiply by the logistic function, written so that no exponential overflows."""
    half = values * np.float32(0.5)
    np.tanh(half, out=values)
    values += 1
    values *= half


def _gelu(values: np.ndarray) -> None:
    """Multiply by the normal distribution's cumulative function, exactly, not by tanh."""
    size = np.abs(values)
    scaled = size * np.float32(np.sqrt(0.5))
    step = 1 / (1 + np.float32(_ERF_SCALE) * scaled)
    tail = np.zeros_like(step)
    for factor in reversed(_ERF):
        tail += np.float32(factor)
        tail *= step
    # Beyond 10 it is 0 in float32 as well, and its square would overflow far out.
    tail *= np.exp(-np.square(np.minimum(scaled, 10)))
    tail *= size
    tail *= np.float32(0.5)
    np.maximum(values, 0, out=values)
    values -= tail


ACTIVATIONS: Final[Mapping[str, Callable[[np.ndarray], None]]] = {
    "relu": _relu, "leaky_relu": _leaky_relu, "tanh": _tanh, "silu": _silu, "gelu": _gelu,
}  # fmt: skip
"""For each name a function that changes float32 numbers of any shape in place."""


def normalise_layer(values: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> None:
    """Give each row of `(n,)` or `(rows, n)` float32 the mean 0 and the variance 1, then scale and shift."""
    if values.ndim == 1:  # a live bot: numbers in place of arrays of one cost a third
        count = len(values)
        values -= np.add.reduce(values) / np.float32(count)
        variance_of_all = float(np.dot(values, values)) / count
        values *= np.float32(1 / math.sqrt(variance_of_all + NORM_EPS))
        values *= weight
        values += bias
        return
    values -= values.mean(-1, keepdims=True)
    variance = np.square(values).mean(-1, keepdims=True)
    values /= np.sqrt(variance + np.float32(NORM_EPS))
    values *= weight
    values += bias


class Network:
    """A perceptron, float32, with one of `ACTIVATIONS` between the layers.

    Attributes:
        inputs, outputs: Numbers taken and given.
        layers: Weight `(inputs, outputs)` and bias `(outputs,)` of each layer, float32.

    Raises:
        ValueError: A tensor is missing, unknown, of the wrong shape, no floating point, or not finite.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], activation: str = "relu") -> None:
        count = sum(name.startswith("layers.") and name.endswith(".weight") for name in weights)
        names = [f"layers.{i}.{part}" for i in range(count) for part in ("weight", "bias")]
        norms = [f"norms.{i}.{part}" for i in range(count - 1) for part in ("weight", "bias")]
        if not names or set(weights) not in ({*names}, {*names, *norms}):
            raise ValueError(
                f"tensors are {', '.join(sorted(weights)) or 'none'}; expected layers.0.weight, "
                "layers.0.bias, layers.1.weight and so on, without a gap; with layer normalisation "
                "norms.0.weight and norms.0.bias of every layer but the last, too"
            )
        self._activate = ACTIVATIONS[activation]
        pairs = [(weights[names[i]], weights[names[i + 1]]) for i in range(0, len(names), 2)]
        width = None
        for i, (weight, bias) in enumerate(pairs):
            check_tensor(f"layers.{i}.weight", weight, (None, width))
            check_tensor(f"layers.{i}.bias", bias, (weight.shape[0],))
            width = weight.shape[0]
        # Stored turned, so that a batch is `x @ w` over contiguous memory.
        self.layers = [
            (np.ascontiguousarray(weight.T, np.float32), np.array(bias, np.float32)) for weight, bias in pairs
        ]
        self._norms = []
        for i in range(count - 1 if set(norms) & set(weights) else 0):
            parts = [weights[f"norms.{i}.{part}"] for part in ("weight", "bias")]
            for part, tensor in zip(("weight", "bias"), parts, strict=True):
                check_tensor(f"norms.{i}.{part}", tensor, (len(self.layers[i][1]),))
            self._norms.append([np.array(tensor, np.float32) for tensor in parts])
        self._scratch = [np.empty(len(bias), np.float32) for _, bias in self.layers]
        self.inputs, self.outputs = pairs[0][0].shape[1], pairs[-1][0].shape[0]

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Return outputs `(batch, outputs)` float32; at batch 1 the next call overwrites them."""
        last = len(self.layers) - 1
        if len(inputs) == 1:
            vector: np.ndarray = inputs[0]  # matrix times vector into memory at hand is half the time
            for i, (weight, bias) in enumerate(self.layers):
                vector = np.dot(vector, weight, out=self._scratch[i])
                vector += bias
                if i < last:
                    if self._norms:
                        normalise_layer(vector, *self._norms[i])
                    self._activate(vector)
            return vector.reshape(1, -1)
        for i, (weight, bias) in enumerate(self.layers):
            inputs = inputs @ weight
            inputs += bias
            if i < last:
                if self._norms:
                    normalise_layer(inputs, *self._norms[i])
                self._activate(inputs)
        return inputs

    def row_by_row(self, inputs: np.ndarray) -> np.ndarray:
        """Return the outputs `(batch, outputs)`, each row's to the last bit as it would be alone.

        A product of matrices adds in another order than one of a vector and a matrix.
        """
        outputs = np.empty((len(inputs), self.outputs), np.float32)
        for i in range(len(inputs)):
            outputs[i] = self(inputs[i : i + 1])[0]
        return outputs


class GruNetwork(Network):
    """A perceptron over the observation and a memory [gated recurrent unit, Cho et al. 2014], float32.

    Besides those of `Network` it has the weights `enter.weight` (width, inputs) and `enter.bias` (width,),
    and those of torch's `GRUCell`, named `cell.*`. `state_size` numbers are remembered.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], activation: str) -> None:
        width = self.state_size = GRU_WIDTH
        shapes: dict[str, tuple[int | None, ...]] = {"enter.weight": (width, None), "enter.bias": (width,)}
        for end in ("ih", "hh"):
            shapes |= {f"cell.weight_{end}": (3 * width, width), f"cell.bias_{end}": (3 * width,)}
        if missing := [name for name in shapes if name not in weights]:
            raise ValueError(f"there is no tensor {missing[0]}, expected {', '.join(shapes)} for gru")
        super().__init__({name: one for name, one in weights.items() if name not in shapes}, activation)
        for name, shape in shapes.items():
            check_tensor(name, weights[name], shape)
        if self.inputs != 2 * width:
            raise ValueError(f"layers.0.weight takes {self.inputs} numbers, expected {2 * width} for gru")
        self._enter, self._input, self._memory = (
            (np.ascontiguousarray(weights[weight].T, np.float32), np.array(weights[bias], np.float32))
            for weight, bias in (
                ("enter.weight", "enter.bias"), ("cell.weight_ih", "cell.bias_ih"),
                ("cell.weight_hh", "cell.bias_hh"),
            )
        )  # fmt: skip
        self.inputs = weights["enter.weight"].shape[1]

    def step(
        self, inputs: np.ndarray, state: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return outputs `(batch, outputs)` and memory `(batch, state_size)`; starts are not read."""
        entered = inputs @ self._enter[0] + self._enter[1]
        self._activate(entered)
        given, kept = entered @ self._input[0] + self._input[1], state @ self._memory[0] + self._memory[1]
        width = self.state_size
        gates = 1 / (1 + np.exp(-(given[:, : 2 * width] + kept[:, : 2 * width])))
        reset, update = gates[:, :width], gates[:, width:]
        new = np.tanh(given[:, 2 * width :] + reset * kept[:, 2 * width :])
        after: np.ndarray = (1 - update) * new + update * state
        return super().__call__(np.concatenate((entered, after), 1)), after


class AttentionNetwork(Network):
    """A perceptron over the own car and what it attends to of the others, float32.

    The numbers of each car become `ATTENTION_WIDTH` numbers. The own car attends to all cars that are there,
    itself among them; the outcome stands beside its own numbers before the perceptron. So neither the order
    of the cars of a team matters, nor how many there are. Besides those of `Network` it has the weights
    `own`, `car`, `query`, `key`, `value` and `mix`, each `.weight` (out, in) and `.bias` (out,), and `team`
    (2, width), of team mates and opponents.
    """

    PARTS = ("own", "car", "query", "key", "value", "mix")

    def __init__(self, weights: Mapping[str, np.ndarray], activation: str, places: PlayerPlaces) -> None:
        names = ["team", *(f"{part}.{kind}" for part in self.PARTS for kind in ("weight", "bias"))]
        if missing := [name for name in names if name not in weights]:
            raise ValueError(f"there is no tensor {missing[0]}, expected {', '.join(names)} for attention")
        super().__init__({name: one for name, one in weights.items() if name not in names}, activation)
        width = ATTENTION_WIDTH
        inputs = {"own": len(places.common), "car": places.blocks.shape[1]}
        maps: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for part in self.PARTS:
            weight, bias = (weights[f"{part}.{kind}"] for kind in ("weight", "bias"))
            check_tensor(f"{part}.weight", weight, (width, inputs.get(part, width)))
            check_tensor(f"{part}.bias", bias, (width,))
            maps[part] = np.ascontiguousarray(weight.T, np.float32), np.array(bias, np.float32)
        self._own, self._car = maps["own"], maps["car"]
        self._ask, self._take = _join_heads(*(maps[part] for part in ("query", "key", "value", "mix")))
        check_tensor("team", weights["team"], (2, width))
        if self.inputs != 2 * width:
            raise ValueError(
                f"layers.0.weight takes {self.inputs} numbers, expected {2 * width} for attention"
            )
        self._places, self.inputs = places, len(places.common) + places.blocks.size
        self._of_place = np.array(weights["team"], np.float32)[places.enemies]  # (places, width)

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Return the outputs `(batch, outputs)` for `(batch, inputs)`, float32; see `Network.__call__`."""
        places, rows, width = self._places, len(inputs), ATTENTION_WIDTH
        blocks = inputs[:, places.blocks]  # (rows, places, numbers)
        own = _apply_layer(self._own, inputs[:, places.common])
        self._activate(own)
        cars = _apply_layer(self._car, blocks.reshape(-1, blocks.shape[2])).reshape(rows, -1, width)
        cars += self._of_place
        self._activate(cars)
        every = np.concatenate((own[:, None], cars), 1)  # (rows, 1 + places, width)
        there = np.ones((rows, 1, every.shape[1]), bool)
        there[:, 0, 1:] = blocks[..., places.there] > 0
        asked = _apply_layer(self._ask, own).reshape(rows, ATTENTION_HEADS, width)
        scores = np.where(there, asked @ every.swapaxes(1, 2), -np.inf)  # (rows, heads, 1 + places)
        shares = np.exp(scores - scores.max(2, keepdims=True))
        shares /= shares.sum(2, keepdims=True)
        seen = _apply_layer(self._take, (shares @ every).reshape(rows, -1))
        return super().__call__(np.concatenate((own, seen), 1))


_Layer = tuple[np.ndarray, np.ndarray]
"""Weight `(inputs, outputs)` and bias `(outputs,)`, float32."""


def _apply_layer(layer: _Layer, inputs: np.ndarray) -> np.ndarray:
    """Return a linear layer's outputs `(rows, outputs)` for `(rows, inputs)`."""
    weight, bias = layer
    outputs: np.ndarray = inputs @ weight
    outputs += bias
    return outputs


def _join_heads(query: _Layer, key: _Layer, value: _Layer, mix: _Layer) -> tuple[_Layer, _Layer]:
    """Return two layers that do what these four do: width to heads * width numbers, and back.

    A car's key is needed for its product with the query alone, and values only for their weighted sum. So
    keys move into the query's layer, and values into the last one. A key's bias adds as much to each car's
    score, which changes no share.
    """
    size = ATTENTION_WIDTH // ATTENTION_HEADS
    of_head = [slice(head * size, (head + 1) * size) for head in range(ATTENTION_HEADS)]
    ask = [np.hstack([one[..., at] @ key[0][:, at].T for at in of_head]) for one in query]
    take = np.vstack([value[0][:, at] @ mix[0][at] for at in of_head])
    scale = np.float32(size**-0.5)
    return (ask[0] * scale, ask[1] * scale), (take, value[1] @ mix[0] + mix[1])


def check_tensor(name: str, tensor: np.ndarray, shape: tuple[int | None, ...]) -> None:
    """Raise ValueError unless a tensor has a shape, `(None, 92)` for any number of rows, and is finite."""
    fits = len(tensor.shape) == len(shape) and all(
        length == expected if expected is not None else length > 0
        for length, expected in zip(tensor.shape, shape, strict=True)
    )
    if not fits or tensor.dtype.kind != "f":
        expected_shape = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise ValueError(
            f"{name} is {tensor.dtype}{tensor.shape}, expected floating point numbers of shape "
            f"{expected_shape}"
        )
    with np.errstate(over="ignore"):
        wrong = int((~np.isfinite(tensor.astype(np.float32))).sum())  # as it will be used
    if wrong:
        raise ValueError(f"{name} holds {wrong} numbers that are not finite; the training has diverged")
