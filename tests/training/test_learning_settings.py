"""Settings of learning that rlgym-ppo and others have: each does what its name says, and a run resumes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import batch_of, clip_value_loss, gradients_of, improve
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.checkpoints import STATE_FILE, Checkpoints
from rlgym_bridge.training.settings import SettingsError
from tests.support.small_learners import (
    assert_same_learners,
    collected_by,
    learner_of,
    played_by,
    train_in_two_ways,
)
from tests.support.training_runs import BATCH, column, small_settings

ALL = {
    "critic_learning_rate": 1e-3, "critic_learning_rate_schedule": "linear", "standardize_returns": True,
    "value_clip": 0.2, "target_kl": 0.002,
}  # fmt: skip


def copies(network: torch.nn.Module) -> list[torch.Tensor]:
    return [one.detach().clone() for one in network.parameters()]


def change(before: list[torch.Tensor], network: torch.nn.Module) -> float:
    return max(float((one - other).abs().max()) for one, other in zip(before, copies(network), strict=True))


def test_policy_and_critic_have_learning_rates_of_their_own(tmp_path: Path) -> None:
    learner = learner_of(
        tmp_path, False, learning_rate=0.0, critic_learning_rate=2e-3, critic_learning_rate_schedule="linear",
        steps=4 * BATCH,
    )  # fmt: skip
    rates = []
    for _ in range(2):
        policy, critic = copies(learner.policy), copies(learner.critic)
        rates.append(improve(learner, batch_of(learner, collected_by(learner)))["critic_learning_rate"])
        assert change(policy, learner.policy) == 0 < change(critic, learner.critic)
        learner.steps += BATCH
    assert rates == pytest.approx([2e-3, 1.5e-3])


@pytest.mark.parametrize(("schedule", "rate"), [("same", 5e-4), ("constant", 1e-3)])
def test_a_critic_without_a_rate_of_its_own_has_the_policys(
    schedule: str, rate: float, tmp_path: Path
) -> None:
    learner = learner_of(
        tmp_path, False, learning_rate=1e-3, learning_rate_schedule="linear", steps=2 * BATCH,
        critic_learning_rate_schedule=schedule,
    )  # fmt: skip
    learner.steps = BATCH
    assert learner.set_learning_rates() == pytest.approx((5e-4, rate))


def test_a_value_beyond_its_clip_teaches_nothing() -> None:
    values = torch.tensor([0.0, 0.5, 0.5, 2.0], requires_grad=True)
    before, returns = torch.zeros(4), torch.tensor([1.0, 1.0, -1.0, 1.0])
    loss = clip_value_loss(0.5 * (values - returns).square(), values, before, returns, 0.2)
    assert loss.tolist() == pytest.approx([0.5, 0.32, 1.125, 0.5])  # 0.5: nearer than the clip lets
    (gradient,) = torch.autograd.grad(loss.sum(), values)
    assert gradient.tolist() == pytest.approx([-1.0, 0.0, 1.5, 1.0])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_critic_is_held_near_its_values_before(asynchronous: bool, tmp_path: Path) -> None:
    moved = []
    for clip in (0.0, 0.01):
        learner = learner_of(tmp_path, asynchronous, value_clip=clip, learning_rate=0.01, epochs=8)
        batch = batch_of(learner, collected_by(learner))
        improve(learner, batch)
        moved.append(np.abs(learner.values(batch.shown[batch.rows]) - batch.values.numpy()).mean())
    assert moved[1] < 0.5 * moved[0]


def test_a_wide_clip_of_values_changes_nothing(tmp_path: Path) -> None:
    found = []
    for clip in (0.0, 1e6):
        learner = learner_of(tmp_path, False, value_clip=clip)
        assert (learner.backpropagation is None) == bool(clip)
        batch = batch_of(learner, collected_by(learner))
        found.append(gradients_of(learner, batch, torch.arange(32), 32))
    for one, other in zip(found[0][0], found[1][0], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_iteration_ends_once_the_policy_has_moved_far(asynchronous: bool, tmp_path: Path) -> None:
    def learned(**changes: Any) -> dict[str, float]:
        learner = learner_of(tmp_path, asynchronous, learning_rate=0.01, epochs=10, **changes)
        return improve(learner, batch_of(learner, collected_by(learner)))

    free, held, far = learned(), learned(target_kl=0.02), learned(target_kl=1e6)
    assert held["epochs_taken"] < 10 and held["kl"] < 0.5 * free["kl"]
    assert far["epochs_taken"] == 10 and far["kl"] == free["kl"]
    assert "epochs_taken" not in free


def rewarded(learner: PPOLearner, factor: float) -> CollectedSteps:
    collected = collected_by(learner)
    collected.rewards[:] *= factor
    return collected


def test_standardised_returns_forget_the_size_of_rewards(tmp_path: Path) -> None:
    found = []
    for factor in (1.0, 4.0):
        learner = learner_of(tmp_path, False, standardize_returns=True, learning_rate=0.0)
        with torch.no_grad():
            for parameter in learner.critic.parameters():
                parameter.zero_()  # the first values are in the size of the rewards
        stats = improve(learner, batch_of(learner, rewarded(learner, factor)))
        assert stats["return_deviation"] == pytest.approx(learner.return_deviation()) != 1
        second = batch_of(learner, rewarded(learner, factor))
        found.append(second.returns.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)
    assert 0.3 < found[0].std() < 3


def test_a_standardised_reward_is_clipped(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, False, standardize_returns=True, gamma=0.0)
    batch = batch_of(learner, rewarded(learner, 1e6))  # nothing is known of returns yet
    assert float((batch.returns).abs().max()) == pytest.approx(10)
    plain = learner_of(tmp_path, False, gamma=0.0)
    assert float(batch_of(plain, rewarded(plain, 1e6)).returns.abs().max()) > 1e5


def contents(folder: Path) -> dict[str, Any]:
    return dict(torch.load(folder / STATE_FILE, weights_only=True))


def test_a_run_with_all_of_them_resumes_bit_for_bit(tmp_path: Path) -> None:
    changes = {"steps": 8 * BATCH, "checkpoint_every": 4 * BATCH, **ALL}
    whole, resumed = train_in_two_ways(small_settings(tmp_path, **changes), tmp_path)
    assert_same_learners(whole, resumed)
    assert {len(column(tmp_path / "whole", name)) for name in ("epochs_taken", "return_deviation")} == {8}


def test_standardised_returns_stay_what_they_were(tmp_path: Path) -> None:
    folder = learner_of(tmp_path, False).save(Checkpoints(tmp_path, 1))
    other = learner_of(tmp_path / "other", False, standardize_returns=True)
    with pytest.raises(SettingsError, match="standardize_returns was False and is True now"):
        other.load(folder)


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
