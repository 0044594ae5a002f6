"""Playing the next batch while learning: whose probabilities count, what is begun when, and resuming."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import pytest
import torch

import rlgym_bridge
import rlgym_bridge.training
from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.training import ppo
from rlgym_bridge.training.collector import Collector, rollout_layout
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import batch_of, improve
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.progress import Progress
from rlgym_bridge.training.runs.run import Iteration, _iterate
from rlgym_bridge.training.settings import TrainingSettings, check_settings
from tests.support.mark_game import MARKS
from tests.support.small_learners import (
    collected_by,
    empty_rollouts,
    learner_of,
    move_weights,
    play_rollouts,
    played_by,
)
from tests.support.training_runs import SEVERAL, SMALL, stand_in

BATCH = 8 * 14


def overlapping(out: Path, **changes: Any) -> TrainingSettings:
    return check_settings(SMALL | {"out": str(out), "overlap": True} | changes)


class RecordingCollectors:
    """Collectors that play at once, and write down what they are asked."""

    count = 1

    def __init__(self, settings: TrainingSettings, policy: PolicyShape) -> None:
        layout = rollout_layout(settings, 1, policy)
        self.arrays = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}
        self.seconds = [{"total": 1.0, "cpu": 1.0, "rest": 1.0}]
        self.calls: list[tuple[Any, ...]] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def restart(self, seed: tuple[int, ...]) -> None:
        self.calls.append(("restart", seed[1]))

    def begin(self, seed: tuple[int, ...], snapshot: int, teach: bool = False) -> None:
        self.calls.append(("begin", seed[1], self.arrays["policies"][0].copy()))

    def finish(self) -> Counter[str]:
        self.calls.append(("finish",))
        return Counter()


def play(monkeypatch: pytest.MonkeyPatch, settings: TrainingSettings, iterations: int) -> list[tuple]:
    """Iterate as a run does without checkpoints in files; return the calls, `learn` among them."""
    monkeypatch.setattr(ppo, "Collectors", RecordingCollectors)
    learner = PPOLearner(settings)
    engine = ppo.Local(learner)
    calls = engine._collectors.calls  # type: ignore[attr-defined]
    improve = ppo.improve

    def recorded(*arguments: Any) -> dict[str, float]:
        calls.append(("learn",))
        return improve(*arguments)

    monkeypatch.setattr(ppo, "improve", recorded)
    engine.restart()
    for _ in range(iterations):
        learner.steps += engine.iterate(learner.draw_older()).steps
    return calls


def test_the_next_batch_is_begun_before_learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = play(monkeypatch, overlapping(tmp_path), 3)
    first = ["restart", "begin", "finish"]
    assert [call[0] for call in calls] == first + ["begin", "learn", "finish"] * 2 + ["begin", "learn"]
    begun = [call for call in calls if call[0] == "begin"]
    assert [call[1] for call in begun] == [0, BATCH, 2 * BATCH, 3 * BATCH]
    np.testing.assert_array_equal(begun[0][2], begun[1][2])  # the policy is one update old from then on
    assert not np.array_equal(begun[1][2], begun[2][2])


def test_nothing_is_begun_before_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = play(monkeypatch, overlapping(tmp_path, checkpoint_every=2 * BATCH, steps=4 * BATCH), 4)
    twice = ["begin", "finish", "begin", "learn", "finish", "learn"]
    assert [call[0] for call in calls] == ["restart", *twice, *twice]


def test_batches_in_turns_are_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = play(monkeypatch, check_settings(SMALL | {"out": str(tmp_path)}), 2)
    assert [call[0] for call in calls] == ["restart", *["begin", "finish", "learn"] * 2]


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("parser", ["LookupTableAction", "MultiDiscreteAction", "ContinuousAction"])
def test_collectors_tell_how_likely_their_actions_were(
    parser: str, normalise: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components = stand_in(tmp_path, monkeypatch, SEVERAL.format(parser))
    settings = overlapping(tmp_path / "run", normalise_obs=normalise, components=components)
    learner = PPOLearner(settings)
    move_weights(learner, 0.3)
    learner.take_in(np.random.default_rng(0).normal(1, 3, (100, MARKS)))
    ((rows, _),) = play_rollouts(learner, 1)
    collected = CollectedSteps.of(learner, rows)
    expected = played_by(learner, collected).log_probs
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(collected.log_probs, expected, rtol=1e-4, atol=1e-4)
    batch = ppo.batch_of(learner, collected)
    np.testing.assert_allclose(batch.log_probs, collected.log_probs.reshape(-1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("overlap", [True, False])
def test_a_step_of_an_older_policy_weighs_as_likely_as_now(overlap: bool, tmp_path: Path) -> None:
    learner = PPOLearner(overlapping(tmp_path, overlap=overlap))
    collected = collected_by(learner)
    plain = ppo.batch_of(learner, collected)
    torch.testing.assert_close(plain.advantages.mean(), torch.tensor(0.0), atol=1e-6, rtol=0.0)
    with torch.no_grad():  # an update
        for parameter in learner.policy.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    batch, now = ppo.batch_of(learner, collected), played_by(learner, collected)
    if not overlap:
        assert torch.equal(batch.advantages, plain.advantages) and torch.equal(
            batch.log_probs, plain.log_probs
        )
        return
    np.testing.assert_allclose(batch.log_probs, now.log_probs.reshape(-1), rtol=1e-5)
    weights = np.exp(now.log_probs - collected.log_probs).reshape(-1).clip(max=ppo.MOST_IMPORTANCE)
    assert weights.min() < 0.9 and weights.max() > 1.1
    np.testing.assert_allclose(batch.advantages, plain.advantages * weights, rtol=1e-4, atol=1e-6)
    assert improve_once(learner, batch)["clip_fraction"] == 0  # the update before took nothing of the range


def improve_once(learner: PPOLearner, batch: ppo.Batch) -> dict[str, float]:
    """Return the statistics of a batch that nothing is learned from."""
    learner.settings = replace(learner.settings, learning_rate=0.0)
    return ppo.improve(learner, batch)


def test_by_default_a_gpu_learns_while_collectors_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for device, overlap, expected in [("cpu", "auto", False), ("meta", "auto", True), ("meta", False, False)]:
        settings = check_settings(SMALL | {"out": str(tmp_path), "overlap": overlap})
        monkeypatch.setattr(
            "rlgym_bridge.training.learner.choose_device", lambda _, name=device: torch.device(name)
        )
        monkeypatch.setattr(PPOLearner, "packed", lambda _: np.zeros(1, np.float32))
        assert PPOLearner(settings).overlaps is expected


def test_a_step_takes_one_product_a_layer_of_each_policys_cars(
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
    assert batches == 3 * [14, 2]  # a snapshot drives a car in two of eight matches


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
