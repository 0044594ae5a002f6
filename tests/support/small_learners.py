"""Make small learners, and steps for them to learn from that nobody played."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgym_bridge.training.collector import rollout_layout
from rlgym_bridge.training.gradients import RecordedSteps
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.settings import check_settings
from tests.support.training_runs import SMALL


def collected_by(learner: PPOLearner) -> CollectedSteps:
    rng = np.random.default_rng(0)
    layout = rollout_layout(learner.settings, 1, learner.shape)
    rollouts = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}
    rollouts["obs"][:] = rng.normal(size=rollouts["obs"].shape)
    rollouts["rewards"][:] = rng.normal(size=rollouts["rewards"].shape)
    rollouts["actions"][:] = rng.integers(90, size=rollouts["actions"].shape) % np.array(learner.shape.sizes)
    if learner.shape.masked:  # each choice that was made is allowed, and half of the others
        starts = np.cumsum((0, *learner.shape.sizes[:-1]))
        chosen = rollouts["actions"].reshape(*rollouts["rewards"].shape, -1) + starts
        rollouts["masks"][:] = rng.random(rollouts["masks"].shape) < 0.5
        np.put_along_axis(rollouts["masks"], chosen, True, -1)
    return played_by(learner, CollectedSteps.of(learner, rollouts))


def played_by(learner: PPOLearner, collected: CollectedSteps) -> CollectedSteps:
    """Return the same steps as if the learner's present policy had played them."""
    obs, actions = learner.shown(collected.obs[:, :-1]), torch.from_numpy(collected.actions)
    masks = None if collected.masks is None else torch.from_numpy(collected.masks).flatten(0, 2)
    with torch.no_grad():
        found = learner.policy.log_probs(obs.flatten(0, 2), actions.flatten(0, 2), masks)
    return replace(collected, log_probs=found.numpy().reshape(collected.rewards.shape))


def learner_of(out: Path, asynchronous: bool, **changes: Any) -> PPOLearner:
    learner = PPOLearner(check_settings(SMALL | {"out": str(out), "minibatch": 16} | changes))
    if asynchronous:  # as on a GPU
        learner.asynchronous, learner.backpropagation = True, None
        learner.recorded = RecordedSteps(record_by_repeating)
        learner._ready_optimizer()
    return learner


def record_by_repeating(step: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
    """Do as `record_graph` does, on a CPU: nothing is computed until the first run."""
    result = torch.full((8,), torch.nan)

    def run() -> None:
        result.copy_(step())

    return run, result
