"""A collector decides for all its matches at once."""

from typing import Any

import numpy as np
import pytest

from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.training.collector import Collector, SharedArrays, rollout_layout
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.settings import check_settings


def test_a_step_takes_one_product_of_all_cars_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    few: dict[str, Any] = {"matches": 8, "rollout_steps": 3, "collectors": 1, "snapshot_share": 0.25}
    settings = check_settings(few | {"policy_layers": [8], "critic_layers": [8]})
    learner = PPOLearner(settings)
    shape: PolicyShape = learner.shape
    arrays = SharedArrays(rollout_layout(settings, 1, shape))
    arrays["policies"][:] = learner.packed()
    batches: list[int] = []

    def count(network: Network, inputs: np.ndarray) -> np.ndarray:
        batches.append(len(inputs))
        return call(network, inputs)

    call = Network.__call__
    monkeypatch.setattr(Network, "__call__", count)
    try:
        collector = Collector(settings, shape, 0, arrays)
        collector.restart(0)
        collector.collect(((0,), 1, False))
    finally:
        arrays.close()
    assert batches == 3 * [16, 2]  # all cars; those that a snapshot drives in two of eight matches
