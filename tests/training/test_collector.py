"""A collector decides for all its matches at once, and its rollouts are one after another."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import pytest

import rlgym_bridge
import rlgym_bridge.training
from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.training.collector import Collector
from rlgym_bridge.training.ppo import batch_of, improve
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.progress import Progress
from rlgym_bridge.training.runs.run import Iteration, _iterate
from rlgym_bridge.training.settings import TrainingSettings
from tests.support.small_learners import empty_rollouts, learner_of, play_rollouts


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


MOST_FILES: Final = 30
OURS: Final = tuple(str(Path(str(one.__file__)).parent) for one in (rlgym_bridge, rlgym_bridge.training))


class OneProcess:
    """An engine whose only collector plays in the learner's process, where a profiler sees it."""

    def __init__(self, learner: Any) -> None:
        self.learner, self.arrays = learner, empty_rollouts(learner)
        self.collector = Collector(learner.settings, learner.shape, 0, self.arrays)
        self.collector.restart(0)

    def iterate(self, older: int) -> Iteration:
        self.arrays["policies"][:] = self.learner.packed()
        counts, _ = self.collector.collect(((0, older), 1, False))
        batch = batch_of(self.learner, CollectedSteps.of(self.learner, self.arrays))
        seconds = {"collect_seconds": 1.0, "learn_seconds": 1.0}
        return Iteration(len(batch.rows), counts, improve(self.learner, batch) | seconds)


def test_a_training_step_passes_few_files(tmp_path: Path) -> None:
    learner, files = learner_of(tmp_path, False, components=TrainingSettings.components), set()
    learner.start()
    engine: Any = OneProcess(learner)

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            files.add(frame.f_code.co_filename)

    with Progress(learner.settings, 0, quiet=True) as progress:
        for profile in (None, note):  # the first iteration sets up what stays
            sys.setprofile(profile)
            try:
                _iterate(learner, engine, progress)
            finally:
                sys.setprofile(None)
    assert learner.steps > 0 and len(files) <= MOST_FILES, sorted(files)
