"""Gradients without autograd are autograd's, whatever the actions, coefficients and parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.training.gradients import Backpropagation
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import Batch, batch_of, gradients_of, improve
from rlgym_bridge.training.settings import check_settings
from tests.support.small_learners import collected_by, learner_of
from tests.support.training_runs import SMALL, stand_in

SEVERAL = "def parser(settings): return ComponentSpec.of(RepeatAction, ComponentSpec.of({}), repeats=8)"


def moved_learner(out: Path, **changes: Any) -> tuple[PPOLearner, Batch]:
    """Return a learner whose policy moved on since the batch was played, so that some ratios are clipped."""
    learner = PPOLearner(check_settings(SMALL | {"out": str(out)} | changes))
    batch = batch_of(learner, collected_by(learner))
    with torch.no_grad():
        for parameter in learner.parameters:
            parameter += 0.1 * torch.randn_like(parameter)
    return learner, batch


@pytest.mark.parametrize("parser", ["LookupTableAction", "MultiDiscreteAction"])
@pytest.mark.parametrize("coefficients", [(0.0, 0.0), (0.05, 0.0), (0.05, 0.3)])
@pytest.mark.parametrize("layers", [[], [16], [24, 8]])
def test_gradients_and_statistics_are_those_of_autograd(
    parser: str, coefficients: tuple[float, float], layers: list[int], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    entropy, uniform = coefficients
    learner, batch = moved_learner(
        tmp_path / "run", components=stand_in(tmp_path, monkeypatch, SEVERAL.format(parser)),
        entropy_coefficient=entropy, uniform_coefficient=uniform, policy_layers=layers, critic_layers=layers,
    )  # fmt: skip
    part = torch.randperm(len(batch.rows))[:50]
    found, sums = gradients_of(learner, batch, part, 70)
    assert learner.backpropagation is not None
    learner.backpropagation = None
    expected, their_sums = gradients_of(learner, batch, part, 70)
    assert 0 < float(their_sums[-1]) < 50  # some are clipped
    torch.testing.assert_close(sums, their_sums, rtol=1e-4, atol=1e-4)
    assert len(found) == len(expected) == len(learner.parameters)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def test_a_smaller_part_reads_nothing_of_a_larger_one_before(tmp_path: Path) -> None:
    learner, batch = moved_learner(tmp_path)
    few, more = torch.arange(7), torch.arange(7, 80)
    alone = gradients_of(learner, batch, few, 7)[0]
    gradients_of(learner, batch, more, 73)
    again = gradients_of(learner, batch, few, 7)[0]
    for one, other in zip(alone, again, strict=True):
        assert torch.equal(one, other)


def test_threads_do_not_share_activations(tmp_path: Path) -> None:
    ends = []
    for threads in (1, 4):
        learner = learner_of(tmp_path, False, threads=threads, minibatch=112)
        for _ in range(10):
            improve(learner, batch_of(learner, collected_by(learner)))
        ends.append(learner.packed())
    np.testing.assert_allclose(*ends, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{"activation": "tanh"}, {"layer_norm": True}, {"bfloat16": True}],
    ids=lambda one: next(iter(one)),
)
def test_other_networks_are_left_to_autograd(changes: dict[str, Any], tmp_path: Path) -> None:
    learner = learner_of(tmp_path, False, **changes)
    assert learner.backpropagation is None
    assert not Backpropagation.serves(learner.settings, learner.policy)
    assert np.isfinite(list(improve(learner, batch_of(learner, collected_by(learner))).values())).all()
