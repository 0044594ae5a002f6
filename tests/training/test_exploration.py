"""A policy whose choice has narrowed, and what widens it again."""

from pathlib import Path

import pytest
import torch

from rlgym_bridge.training.ppo import batch_of, improve
from tests.support.small_learners import collected_by, learner_of, played_by

LOST = 41
"""The action that the policy has lost: its probability is below 1e-20."""


@pytest.mark.parametrize(("weight", "comes_back"), [("uniform", True), ("entropy", False)])
def test_only_the_uniform_policy_brings_an_action_back(weight: str, comes_back: bool, tmp_path: Path) -> None:
    only = {"entropy_coefficient": 0.0, "uniform_coefficient": 0.0, f"{weight}_coefficient": 0.1}
    learner = learner_of(tmp_path, asynchronous=False, learning_rate=0.01, **only)
    bias = learner.policy.layers[-1].bias
    with torch.no_grad():
        bias[LOST] = -50.0
    collected = collected_by(learner)
    collected.actions[collected.actions == LOST] = 0
    for _ in range(20):
        improve(learner, batch_of(learner, played_by(learner, collected)))
    assert (bias[LOST].item() > -49.0) == comes_back
