"""A collector decides for all its matches at once, and its rollouts are one after another."""

from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.policy.numpy_layers import Network
from tests.support.small_learners import learner_of, play_rollouts


def test_a_step_takes_one_product_of_all_cars_a_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = learner_of(tmp_path, False, rollout_steps=3)
    batches: list[int] = []

    def count(network: Network, inputs: np.ndarray) -> np.ndarray:
        batches.append(len(inputs))
        return call(network, inputs)

    call = Network.__call__
    monkeypatch.setattr(Network, "__call__", count)
    play_rollouts(learner, 1)
    assert batches == 3 * [16, 2]  # all cars; those that a snapshot drives in two of eight matches


def test_a_rollout_begins_with_what_followed_the_last_one(tmp_path: Path) -> None:
    (first, _), (second, _) = play_rollouts(learner_of(tmp_path, False), 2)
    np.testing.assert_array_equal(first["obs"][0, -1], second["obs"][0, 0])
    assert (first["obs"][0, 0] != second["obs"][0, 0]).any()


def test_episode_rewards_are_those_of_learning_cars(tmp_path: Path) -> None:
    learner, returns = learner_of(tmp_path, False), np.zeros(16)
    assert learner.learned.sum() == 14
    for rows, counts in play_rollouts(learner, 3):  # an episode goes on from one rollout to the next
        rewards, finished = 0.0, 0
        for step in range(8):
            returns += rows["rewards"][0, step]
            ended = rows["terminated"][0, step] | rows["truncated"][0, step]
            rewards += returns[ended & learner.learned].sum()
            finished += (ended & learner.learned).sum()
            returns[ended] = 0
        assert counts["episode_reward"] == pytest.approx(rewards)
        assert counts["finished_cars"] == finished > 0
