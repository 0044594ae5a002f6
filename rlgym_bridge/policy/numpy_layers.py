"""The layers of a perceptron in numpy.

Weights are named `layers.0.weight` (out, in), `layers.0.bias` (out,), `layers.1.weight` ..., with an
activation between layers and nothing after the last. Where every layer but the last has `norms.0.weight`
(out,) and `norms.0.bias` (out,), layer normalisation stands before each activation.
"""

from collections.abc import Mapping

import numpy as np

from rlgym_bridge.policy.activations import ACTIVATIONS, normalise_layer


class Network:
    """A perceptron, float32.

    Args:
        weights: `layers.N.weight` (out, in) and `layers.N.bias` (out,), for N from 0 without a gap; and
            `norms.N.weight` and `norms.N.bias` (out,) of all layers but the last, or of none.
        activation: One of `ACTIVATIONS`, between the layers.

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
        """Return the outputs.

        Args:
            inputs: `(batch, inputs)` float32.

        Returns:
            `(batch, outputs)` float32; at batch 1 it is overwritten by the next call.
        """
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
        """Return the outputs, each row's to the last bit as it would be alone.

        A product of matrices adds in another order than a product of a vector and a matrix. For the rows of
        one team it is hardly quicker.

        Args:
            inputs: `(batch, inputs)` float32.

        Returns:
            `(batch, outputs)` float32.
        """
        outputs = np.empty((len(inputs), self.outputs), np.float32)
        for i in range(len(inputs)):
            outputs[i] = self(inputs[i : i + 1])[0]
        return outputs


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
