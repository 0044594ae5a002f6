"""The learner's work on a device that computes on its own: what waits for it, and what is moved to it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rlgym_bridge.training import learner as learner_module
from rlgym_bridge.training.learner import Diverged, PPOLearner
from rlgym_bridge.training.ppo import batch_of, improve
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.small_learners import collected_by, learner_of
from tests.support.training_runs import SMALL
from tools.benchmarks import device_check

_WAITING = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal")
"""Operations whose results Python has to know: on a GPU it waits for them."""


class WaitingOperations(TorchDispatchMode):
    """Writes down the operations that would wait for a device; in the thread that opened it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").partition(".")[0]
        if name in _WAITING:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def test_no_minibatch_waits_for_the_device(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, asynchronous=True)
    batch = batch_of(learner, collected_by(learner))
    with WaitingOperations() as seen:
        stats = improve(learner, batch)
    assert seen.names == []
    assert np.isfinite(list(stats.values())).all()
    with WaitingOperations() as seen:
        float(batch.advantages.sum())
    assert seen.names == ["_local_scalar_dense"]  # it would have been seen


def test_a_device_learns_what_a_cpu_learns(tmp_path: Path) -> None:
    learners = [learner_of(tmp_path, asynchronous) for asynchronous in (False, True)]
    stats = [improve(one, batch_of(one, collected_by(one))) for one in learners]
    assert stats[0] == pytest.approx(stats[1], rel=1e-4, abs=1e-6)
    torch.testing.assert_close(*(one.policy.state_dict() for one in learners))


def test_bfloat16_changes_no_probability_before_learning(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, asynchronous=False, bfloat16=True, learning_rate=0.0)
    learner.policy.layers[-1].weight.data.normal_()  # probabilities that differ from action to action
    batch = batch_of(learner, collected_by(learner))
    assert abs(improve(learner, batch)["kl"]) < 1e-7
    with_float32 = learner_of(tmp_path, asynchronous=False)
    with_float32.policy.load_state_dict(learner.policy.state_dict())
    difference = batch_of(with_float32, collected_by(learner)).log_probs - batch.log_probs
    assert 0.001 < difference.abs().max() < 1  # this is what it would have taken for a change


def test_a_batch_is_moved_to_the_device_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, moved = learner_of(tmp_path, asynchronous=True), []
    collected, tensor = collected_by(learner), learner.tensor

    def recorded(array: np.ndarray) -> torch.Tensor:
        moved.append(array.nbytes)
        return tensor(array)

    monkeypatch.setattr(learner, "tensor", recorded)
    improve(learner, batch_of(learner, collected))
    numbers = collected.count * (2 * 8 + 4 * 4)  # rows, actions; probabilities, advantages, targets, values
    assert sum(moved) <= collected.obs.nbytes + numbers


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_gradient_that_is_not_finite_is_named(asynchronous: bool, tmp_path: Path) -> None:
    learner = learner_of(tmp_path, asynchronous)
    batch = batch_of(learner, collected_by(learner))
    batch.advantages[3] = np.nan
    with pytest.raises(
        Diverged, match=r"gradient of policy\.layers\.0\.weight, .*epoch 0, minibatch \d after 0"
    ):
        improve(learner, batch)


def test_the_check_of_gpu_machines_finds_a_cpu_in_order() -> None:
    given = SMALL | {"device": "cpu", "collectors": 2, "snapshot_share": 0.0}
    assert device_check.compare_steps(given) == {"recorded": False, "equal": True, "difference": 0.0}
    assert device_check.resume(given)["equal"]  # two collectors, which overlap with the learner
    speed = device_check.measure_speed("1v1, plain steps", given, 1)
    assert speed["agent_steps_per_second"] > 0 and speed["held_back"]


def test_a_device_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    message = (
        r'device is "cuda", and torch .* \(made .*CUDA.*\) finds no CUDA device.*expected "auto" or "cpu"'
    )
    with pytest.raises(SettingsError, match=message):
        PPOLearner(check_settings(SMALL | {"out": str(tmp_path), "device": "cuda"}))


def test_a_learner_has_the_batch_of_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_module, "count_usable_cores", lambda: 16)
    unset = {"collectors": 0, "matches": 0, "minibatch": 0, "snapshot_share": 0.0, "rollout_steps": 32}
    learner = PPOLearner(check_settings(SMALL | unset | {"out": str(tmp_path), "device": "cpu"}))
    assert learner.steps_of_iteration(16) == 2 * 128 * 32 * 2  # of two collectors with 128 matches of 1v1
    assert learner.settings.minibatch == 2048
    assert "16 collectors of 16 matches" in learner.about(16)
