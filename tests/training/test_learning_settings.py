"""Settings of learning that rlgym-ppo and others have: each does what its name says, and a run resumes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import batch_of, clip_value_loss, improve
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.checkpoints import STATE_FILE, Checkpoints
from tests.support.small_learners import (
    collected_by,
    learner_of,
)
from tests.support.training_runs import BATCH, forget_checksum


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


def test_a_checkpoint_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, False)
    improve(learner, batch_of(learner, collected_by(learner)))
    folder = learner.save(Checkpoints(tmp_path, 1))
    state = contents(folder)
    del state["return_scale"]
    state["settings"] |= {name: tuple(state["settings"][name]) for name in ("policy_layers", "team_sizes")}
    first, second = state["optimizer"]["param_groups"]
    state["optimizer"]["param_groups"] = [{**first, "params": [*first["params"], *second["params"]]}]
    torch.save(state, folder / STATE_FILE)
    forget_checksum(folder)
    other = learner_of(tmp_path / "other", False)
    assert set(other.load(folder)) <= {"out"}
    for one in (learner, other):
        improve(one, batch_of(one, collected_by(one)))
    assert all(torch.equal(*pair) for pair in zip(learner.parameters, other.parameters, strict=True))
