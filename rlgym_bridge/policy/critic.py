"""Make the critic of a checkpoint in numpy, for a search and for the page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlgym_bridge.policy.numpy_layers import AttentionNetwork, Network
from rlgym_bridge.policy.shape import ATTENTION, PlayerPlaces


def critic_tensors(state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the critic's tensors by name, of the numbers in a checkpoint's `training.pt`.

    Where the run standardised returns, the last layer gives them without that. Raises KeyError for other
    numbers.
    """
    tensors: dict[str, np.ndarray] = {name: tensor.numpy() for name, tensor in state["critic"].items()}
    count, _, spread = state.get("return_scale", (0, None, [0.0]))
    if state["settings"].get("standardize_returns", False) and float(spread[0]) > 0:
        last = max(int(name.split(".")[1]) for name in tensors if name.startswith("layers."))
        for name in (f"layers.{last}.weight", f"layers.{last}.bias"):
            tensors[name] = tensors[name] * np.float32(math.sqrt(float(spread[0]) / count))
    return tensors


def make_critic(
    tensors: Mapping[str, np.ndarray], network: str, activation: str, names: Sequence[str] | None
) -> Network:
    """Return a critic of an observation's `names`; raises ValueError for tensors that are none of it.

    `network` is `shape.ATTENTION`, or else the critic is a perceptron.
    """
    if network == ATTENTION:
        return AttentionNetwork(tensors, activation, PlayerPlaces.of(names))
    return Network(tensors, activation)
