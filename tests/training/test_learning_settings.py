"""Settings of learning that rlgym-ppo and others have: each does what its name says, and a run resumes."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.training.learner import Diverged, PPOLearner
from rlgym_bridge.training.ppo import Batch, batch_of, clip_value_loss, estimate_advantages, improve, losses
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.running_scale import RunningScale, scaled
from rlgym_bridge.training.runs.checkpoints import STATE_FILE
from rlgym_bridge.training.settings import check_settings
from tests.support.mark_game import MARKS
from tests.support.small_learners import (
    collected_by,
    learner_of,
)
from tests.support.training_runs import BATCH


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


SETTINGS = {"components": "tests.support.mark_game", "collectors": 1, "snapshot_share": 0.0}


def test_advantages_are_the_weighted_sums_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    steps, seats, gamma, weight = 12, 5, 0.9, 0.8
    rewards, values, following = rng.normal(size=(3, steps, seats)).astype(np.float32)
    ended = rng.random((steps, seats)) < 0.2
    found = estimate_advantages(gamma, weight, rewards, values, following, ended)
    for seat in range(seats):
        for step in range(steps):
            total, factor = 0.0, 1.0
            for later in range(step, steps):
                delta = rewards[later, seat] + gamma * following[later, seat] - values[later, seat]
                total += factor * delta
                factor *= gamma * weight
                if ended[later, seat]:
                    break
            assert found[step, seat] == pytest.approx(total, abs=1e-5)


def rollouts(**changes: np.ndarray) -> dict[str, np.ndarray]:
    """One collector, one match, two cars, four steps; blue sees mark 0, 1, 2, 3, 0."""
    marks = np.array([0, 1, 2, 3, 0])
    obs = np.broadcast_to(np.eye(MARKS, dtype=np.float32)[marks][None, :, None], (1, 5, 2, MARKS))
    arrays = {
        "obs": obs.copy(),
        "actions": np.zeros((1, 4, 2), np.int64),
        "log_probs": np.zeros((1, 4, 2), np.float32),
        "rewards": np.tile(np.array([1.0, 2.0, 10.0, 4.0], np.float32)[None, :, None], (1, 1, 2)),
        "terminated": np.zeros((1, 4, 2), bool),
        "truncated": np.zeros((1, 4, 2), bool),
        "final_obs": np.full((1, 4, 2, MARKS), np.nan, np.float32),
    }
    return arrays | changes


def learner_that_says(values: list[float]) -> PPOLearner:
    """Return a learner whose critic has a value for each mark; returns are not weighted (lambda 1)."""
    made = PPOLearner(
        check_settings(SETTINGS | {"gamma": 0.5, "gae_lambda": 1.0, "matches": 1, "rollout_steps": 4})
    )
    made.critic.values = lambda shown: shown @ torch.tensor(values)  # type: ignore[method-assign]
    return made


def batch_of_made_up(values: list[float], **changes: np.ndarray) -> Batch:
    learner = learner_that_says(values)
    return batch_of(learner, CollectedSteps.of(learner, rollouts(**changes)))


def ended_at(step: int) -> np.ndarray:
    ends = np.zeros((1, 4, 2), bool)
    ends[0, step] = True
    return ends


def test_an_episode_ended_by_a_goal_is_worth_nothing_after_it() -> None:
    batch = batch_of_made_up([6.0, 7.0, 8.0, 9.0], terminated=ended_at(2))
    # 10; 2 + 10 / 2; 1 + 7 / 2; and the next episode: 4 + half of what mark 0 is worth
    by_hand = [4.5, 7.0, 10.0, 4 + 6 / 2]
    np.testing.assert_allclose(batch.returns.reshape(4, 2).T, [by_hand, by_hand], rtol=1e-6)


def test_a_truncated_episode_bootstraps_from_its_last_state() -> None:
    last = np.full((1, 4, 2, MARKS), np.nan, np.float32)
    last[0, 2] = np.eye(MARKS)[[1, 2]]  # blue ends on mark 1, worth 7; orange on mark 2, worth 8
    batch = batch_of_made_up([6.0, 7.0, 8.0, 9.0], truncated=ended_at(2), final_obs=last)
    # 10 + 7 / 2 = 13.5; 2 + 13.5 / 2; 1 + 8.75 / 2, and for orange 10 + 8 / 2 = 14; 9; 5.5
    expected = [[5.375, 8.75, 13.5, 7.0], [5.5, 9.0, 14.0, 7.0]]
    np.testing.assert_allclose(batch.returns.reshape(4, 2).T, expected, rtol=1e-6)


def test_a_cut_rollout_bootstraps_from_the_next_observation() -> None:
    batch = batch_of_made_up([6.0, 7.0, 8.0, 9.0])
    last = 4 + 6 / 2
    by_hand = [1 + (2 + (10 + last / 2) / 2) / 2, 2 + (10 + last / 2) / 2, 10 + last / 2, last]
    np.testing.assert_allclose(batch.returns.reshape(4, 2)[:, 0], by_hand, rtol=1e-6)


def test_advantages_are_normalised_over_the_batch() -> None:
    batch = batch_of_made_up([6.0, 7.0, 8.0, 9.0], terminated=ended_at(1))
    assert float(batch.advantages.mean()) == pytest.approx(0, abs=1e-6)
    assert float(batch.advantages.std(unbiased=False)) == pytest.approx(1, abs=1e-6)


def test_a_reward_that_is_no_number_is_named() -> None:
    rewards = rollouts()["rewards"]
    rewards[0, 3, 1] = np.nan
    with pytest.raises(Diverged, match="reward of car 1 in match 0 of collector 0 is nan at step 3"):
        batch_of_made_up([0.0] * 4, rewards=rewards)


def test_an_observation_that_breaks_the_critic_is_noticed() -> None:
    with pytest.raises(Diverged, match=r"not finite after 0 steps: .* values up to nan, expected"):
        batch_of_made_up([math.inf] * 4)


def test_the_losses_are_those_of_the_paper() -> None:
    rng = np.random.default_rng(1)
    ratios, advantages, values, returns = rng.normal(1, 0.5, (4, 40))
    ratios = np.abs(ratios)
    policy, value = losses(*map(torch.tensor, (ratios, advantages, values, returns)), 0.2)
    for i in range(40):
        clipped = min(max(ratios[i], 0.8), 1.2)
        assert policy[i] == pytest.approx(-min(ratios[i] * advantages[i], clipped * advantages[i]))
        assert value[i] == pytest.approx((values[i] - returns[i]) ** 2 / 2)


def test_running_statistics_are_those_of_all_observations() -> None:
    obs = np.random.default_rng(2).normal(3, 5, (90, 7)).astype(np.float32)
    running = RunningScale.of_size(7)
    for part in np.split(obs, [10, 45]):
        running.update(part)
    found = running.normalisation(2.0)
    np.testing.assert_allclose(found.mean, obs.mean(0, np.float64), rtol=1e-6)
    np.testing.assert_allclose(found.std, obs.std(0, np.float64), rtol=1e-6)
    shown = scaled(obs, found)
    np.testing.assert_allclose(shown, np.clip((obs - obs.mean(0)) / obs.std(0), -2, 2), atol=1e-5)
