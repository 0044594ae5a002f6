"""Measure a decision of one car in numpy: `OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.decision`.

Prints the processor time of the observation, and of observation and network together, for each candidate
that one policy for 1v1, 2v2 and 3v3 may have.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from rlgym_bridge import DefaultObs, RelativeObs, TeamObs
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.state import MatchState
from tests.support.states import random_state

_OBSERVATIONS = {"DefaultObs": DefaultObs, "RelativeObs": RelativeObs, "TeamObs": TeamObs}
_LAYERS = {"2x256": (256, 256), "3x512": (512, 512, 512)}
_SIZES = (1, 3)
_ACTIONS = 90
_AT_ONCE = 200  # decisions of a candidate before the next one has its turn
_HEAD, _OTHERS, _BLOCK, _WIDTH = 87, 5, 27, 64  # of TeamObs; the last one of the attention

Decide = Callable[[np.ndarray], np.ndarray]
"""Observations (1, 1, size) float32 to one action (1, 1)."""


def draw_weights(widths: tuple[int, ...], layer_norm: bool) -> dict[str, np.ndarray]:
    """Return weights of a policy folder for layers of these widths, inputs and outputs included."""
    rng, weights = np.random.default_rng(0), {}
    for i, (inputs, outputs) in enumerate(pairwise(widths)):
        weights[f"layers.{i}.weight"] = rng.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        weights[f"layers.{i}.bias"] = np.zeros(outputs, np.float32)
        if layer_norm and i < len(widths) - 2:
            weights[f"norms.{i}.weight"] = np.ones(outputs, np.float32)
            weights[f"norms.{i}.bias"] = np.zeros(outputs, np.float32)
    return weights


def make_perceptron(size: int, layers: tuple[int, ...], layer_norm: bool) -> Decide:
    """Return the decision of a perceptron, as the bot takes it."""
    weights = draw_weights((size, *layers, _ACTIONS), layer_norm)
    policy = NetworkPolicy(weights, "categorical", (_ACTIONS,), "argmax")
    policy.reset([0])
    return lambda obs: policy.act(obs, None)


def make_attention(layers: tuple[int, ...]) -> Decide:
    """Return the decision of a perceptron behind one head of attention over the other cars.

    Each block of TeamObs becomes 64 numbers, of which keys and values are made. The car's own numbers ask.
    """
    rng = np.random.default_rng(0)
    embed, keys, values, query = (
        rng.normal(0, inputs**-0.5, (inputs, _WIDTH)).astype(np.float32)
        for inputs in (_BLOCK, _WIDTH, _WIDTH, _HEAD)
    )
    rest = make_perceptron(_HEAD + _WIDTH, layers, False)

    def decide(obs: np.ndarray) -> np.ndarray:
        own, blocks = obs[0, 0, :_HEAD], obs[0, 0, _HEAD:].reshape(_OTHERS, _BLOCK)
        embedded = blocks @ embed
        np.maximum(embedded, 0, out=embedded)
        scores = (embedded @ keys) @ (own @ query)
        scores *= _WIDTH**-0.5
        scores[blocks[:, 0] == 0] = -1e9
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        seen = shares @ (embedded @ values)
        return rest(np.concatenate([own, seen])[None, None])

    return decide


def make_candidates() -> dict[str, tuple[type[DefaultObs], Decide]]:
    """Return observation and decision of each candidate by its name."""
    found: dict[str, tuple[type[DefaultObs], Decide]] = {}
    for name, kind in _OBSERVATIONS.items():
        size = kind(zero_padding=3).size(1, 1)
        for layers, widths in _LAYERS.items():
            for layer_norm in (False, True):
                found[f"{name}, {layers}{', layer_norm' * layer_norm}"] = (
                    kind,
                    make_perceptron(size, widths, layer_norm),
                )
    for layers, widths in _LAYERS.items():
        found[f"TeamObs, attention, {layers}"] = (TeamObs, make_attention(widths))
    return found


def measure(
    candidates: dict[str, tuple[type[DefaultObs], Decide]], state: MatchState, rounds: int
) -> dict[str, tuple[float, float]]:
    """Return microseconds of processor time by name: of the observation, and of the whole decision.

    The median of each round, and of these the least: what others do on the machine only adds to it.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, (kind, decide) in candidates.items():
            obs, observing, whole = kind(zero_padding=3), [], []
            for number in range(_AT_ONCE):
                began = time.process_time_ns()
                seen = obs.build_batch(state, (0,))
                observed = time.process_time_ns()
                decide(seen)
                ended = time.process_time_ns()
                if number:  # the first one makes tables
                    observing.append(observed - began)
                    whole.append(ended - began)
            times[name].append((statistics.median(observing) / 1e3, statistics.median(whole) / 1e3))
    return {
        name: (min(pair[0] for pair in pairs), min(pair[1] for pair in pairs))
        for name, pairs in times.items()
    }


def main() -> None:
    """Print a table of all candidates in 1v1 and 3v3."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of 200 decisions (default: 20)")
    options = parser.parse_args()
    candidates = make_candidates()
    found = [measure(candidates, random_state(size, size, seed=0), options.rounds) for size in _SIZES]
    print("| observation and network | " + " | ".join(f"{s}v{s}: observation | whole" for s in _SIZES) + " |")
    print("|---|" + "---|" * (2 * len(_SIZES)))
    for name in candidates:
        cells = [f"{microseconds:.0f}" for times in found for microseconds in times[name]]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
