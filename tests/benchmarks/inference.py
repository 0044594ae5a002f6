"""Compare the policy network in numpy and in torch: `python -m tests.benchmarks.inference [--rounds N]`.

Batches are those of collectors: 256 cars (128 matches of 1v1), the 26 of a snapshot, 768 (3v3). One thread
each. The times are of the processor, and the ratio is the median over rounds that measure both in turns.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
import torch
from torch.nn import functional

from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.policy.numpy_network import categorical

_LAYERS: Final = ((256, 256), (512, 512, 512))
_CARS: Final = (26, 64, 128, 256, 768)
_INPUTS, _ACTIONS = 113, 90
_SECONDS: Final = 0.05  # of a measurement


def make_weights(layers: Sequence[int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw the weights of a network, by the names of a policy folder."""
    widths, weights = (_INPUTS, *layers, _ACTIONS), {}
    for i in range(len(widths) - 1):
        matrix = rng.standard_normal((widths[i + 1], widths[i]), np.float32)
        weights[f"layers.{i}.weight"] = matrix * np.float32((2 / widths[i]) ** 0.5)
        weights[f"layers.{i}.bias"] = np.zeros(widths[i + 1], np.float32)
    return weights


def make_torch_network(weights: Mapping[str, np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the network in torch, from numpy to numpy."""
    tensors = [torch.from_numpy(array) for array in weights.values()]
    pairs = list(zip(tensors[::2], tensors[1::2], strict=True))

    @torch.inference_mode()
    def call(obs: np.ndarray) -> np.ndarray:
        values = torch.from_numpy(obs)
        for weight, bias in pairs[:-1]:
            values = functional.linear(values, weight, bias).relu_()
        outputs: np.ndarray = functional.linear(values, *pairs[-1]).numpy()
        return outputs

    return call


def measure(function: Callable[[], object], calls: int) -> float:
    """Return the microseconds of processor time of a call."""
    began = time.process_time()
    for _ in range(calls):
        function()
    return 1e6 * (time.process_time() - began) / calls


def main() -> None:
    """Print a line for each network and number of cars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    titles = ("cars", "numpy, us", "torch, us", "torch/numpy", "sampling, us")
    print("layers".ljust(16) + "".join(title.rjust(14) for title in titles))
    for layers in _LAYERS:
        weights = make_weights(layers, rng)
        in_numpy, in_torch = Network(weights), make_torch_network(weights)
        for cars in _CARS:
            obs = rng.standard_normal((cars, _INPUTS), np.float32)
            logits = in_numpy(obs)
            assert np.allclose(logits, in_torch(obs), atol=1e-3)
            parts = (partial(in_numpy, obs), partial(in_torch, obs), partial(categorical, logits, rng))
            calls = max(3, int(1e6 * _SECONDS / measure(parts[0], 5)))
            rounds = [[measure(part, calls) for part in parts] for _ in range(options.rounds)]
            numpy_us, torch_us, sampling = map(statistics.median, zip(*rounds, strict=True))
            ratio = statistics.median(found[1] / found[0] for found in rounds)
            print(
                f"{layers!s:<16}{cars:>14}{numpy_us:>14.0f}{torch_us:>14.0f}{ratio:>14.2f}{sampling:>14.0f}"
            )


if __name__ == "__main__":
    main()
