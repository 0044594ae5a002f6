"""Make small learners, steps for them to learn from that nobody played, and runs that are resumed."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgym_bridge.policy.files import WEIGHTS_FILE
from rlgym_bridge.training.collector import Collector, rollout_layout
from rlgym_bridge.training.gradients import RecordedSteps
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.checkpoints import STATE_FILE
from rlgym_bridge.training.settings import TrainingSettings, check_settings
from tests.support.training_runs import SMALL


def empty_rollouts(learner: PPOLearner) -> dict[str, np.ndarray]:
    layout = rollout_layout(learner.settings, 1, learner.shape)
    return {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}


def play_rollouts(
    learner: PPOLearner, count: int, renewed: TrainingSettings | None = None
) -> list[tuple[dict[str, np.ndarray], dict[str, float]]]:
    """Return arrays and counts of some rollouts, one after another, of a collector with the present policy.

    With `renewed` settings it played a rollout by the learner's before.
    """
    arrays = empty_rollouts(learner)
    arrays["policies"][:] = learner.packed()
    collector = Collector(learner.settings, learner.shape, 0, arrays)
    collector.restart(5)
    if renewed is not None:
        collector.collect(((0, 0), 1, False))
        collector.renew(renewed)
        collector.restart(5)
    found = []
    for number in range(count):
        counts, _ = collector.collect(((0, number), 1, False))
        found.append(({name: array.copy() for name, array in arrays.items()}, counts))
    return found


def move_weights(learner: PPOLearner, by: float) -> None:
    """Move all weights at random, so that the policy is not uniform and unlike the one before."""
    with torch.no_grad():
        for parameter in learner.parameters:
            parameter += by * torch.randn_like(parameter)


def collected_by(learner: PPOLearner) -> CollectedSteps:
    rng = np.random.default_rng(0)
    rollouts = empty_rollouts(learner)
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
        found = learner.policy.log_probs_of(learner.policy(obs.flatten(0, 2)), actions.flatten(0, 2), masks)
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


def train_in_two_ways(settings: TrainingSettings, folder: Path) -> tuple[Path, Path]:
    """Train at one go, and once more from the first checkpoint on; return both last checkpoints."""
    whole = main(replace(settings, out=str(folder / "whole")), quiet=True).checkpoint
    first = folder / "resumed" / "checkpoints" / str(settings.checkpoint_every)
    shutil.copytree(whole.with_name(first.name), first)
    resumed = main(replace(settings, out=str(folder / "resumed")), resume=True, quiet=True).checkpoint
    assert resumed.name == whole.name != first.name
    return whole, resumed


def assert_same_learners(one: Path, other: Path) -> None:
    """Compare all that two checkpoints hold: weights, optimizer, scales, older versions, ratings."""
    assert (one / WEIGHTS_FILE).read_bytes() == (other / WEIGHTS_FILE).read_bytes()
    states = [torch.load(folder / STATE_FILE, weights_only=True) for folder in (one, other)]
    for state in states:
        del state["settings"]["out"]
    first, second = (dict(_leaves(state)) for state in states)
    assert first.keys() == second.keys() and len(first) > 20
    for place, value in first.items():
        same = torch.equal(value, second[place]) if isinstance(value, Tensor) else value == second[place]
        assert same, place


def _leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield all values of nested dicts, lists and tuples with where they are."""
    if isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*place, key))
    else:
        yield place, value
