"""Gradients by hand on a CPU, and steps that are recorded as graphs on a GPU, are those of autograd."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from rlgym_bridge.training import learner as learner_module
from rlgym_bridge.training.gradients import WARM_UP, Backpropagation, RecordedSteps
from rlgym_bridge.training.learner import Diverged, PPOLearner
from rlgym_bridge.training.ppo import Batch, batch_of, gradients_of, improve
from rlgym_bridge.training.runs.checkpoints import Checkpoints, read_checkpoint
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.small_learners import collected_by, learner_of, move_weights, record_by_repeating
from tests.support.training_runs import SEVERAL, SMALL, stand_in
from tools.benchmarks import device_check


def moved_learner(out: Path, **changes: Any) -> tuple[PPOLearner, Batch]:
    """Return a learner whose policy moved on since the batch was played, so that some ratios are clipped."""
    learner = PPOLearner(check_settings(SMALL | {"out": str(out)} | changes))
    batch = batch_of(learner, collected_by(learner))
    move_weights(learner, 0.1)
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


def weights_after(learner: PPOLearner, iterations: int) -> list[Tensor]:
    for _ in range(iterations):
        improve(learner, batch_of(learner, collected_by(learner)))
        learner.steps += 112
    return [parameter.detach().clone() for parameter in learner.parameters]


@pytest.mark.parametrize("minibatch", [16, 50])  # 112 steps: equal minibatches, or of 56
@pytest.mark.parametrize("schedule", ["constant", "linear"])
def test_recorded_steps_learn_what_plain_steps_learn(minibatch: int, schedule: str, tmp_path: Path) -> None:
    # Learning rates that float32 holds, in which alone a recorded step keeps them.
    rates = {"learning_rate": 2.0**-11, "learning_rate_schedule": schedule, "steps": 8 * 112}
    recorded, plain = (learner_of(tmp_path, True, minibatch=minibatch, **rates) for _ in range(2))
    plain.recorded = None
    plain._ready_optimizer()
    for one, other in zip(weights_after(recorded, 4), weights_after(plain, 4), strict=True):
        assert torch.equal(one, other)


def test_only_the_first_steps_of_each_kind_are_plain() -> None:
    taken: list[str] = []

    def record(step: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        taken.append("record")
        run, result = record_by_repeating(step)
        return lambda: (taken.append("run"), run())[1], result  # type: ignore[func-returns-value]

    steps = RecordedSteps(record)
    (places,) = steps.keep([torch.zeros(9)])

    def step(rows: Tensor) -> Tensor:
        return places[rows].sum() + torch.arange(8.0)

    for number in range(WARM_UP + 2):
        steps.keep([torch.full((9,), float(number))])
        rows = torch.arange(number, number + 3)
        assert torch.equal(steps.take(step, rows, "a kind"), 3 * number + torch.arange(8.0))
    assert taken == ["record", "run", "run"]
    steps.take(step, torch.arange(4), "a kind")
    steps.take(step, torch.arange(3), "another kind")
    assert taken == ["record", "run", "run"]


def test_a_batch_of_other_shapes_is_recorded_anew() -> None:
    steps = RecordedSteps(record_by_repeating)
    for size in (5, 6):
        for _ in range(WARM_UP + 2):
            (places,) = steps.keep([torch.full((size,), float(size))])
            found = steps.take(partial(sum_of, places), torch.arange(5), None)
            assert float(found[0]) == 5 * size


def sum_of(places: Tensor, rows: Tensor) -> Tensor:
    return places[rows].sum() + torch.zeros(8)


@pytest.mark.parametrize("first", [True, False])
def test_a_checkpoint_goes_on_with_steps_of_the_other_kind(first: bool, tmp_path: Path) -> None:
    before, after = learner_of(tmp_path, first), learner_of(tmp_path, not first)
    weights_after(before, 2)
    after.load(before.save(Checkpoints(tmp_path, 1)))
    for one, other in zip(weights_after(before, 1), weights_after(after, 1), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    for group in after.optimizer.param_groups:  # of policy and critic
        assert group["capturable"] is not first and isinstance(group["lr"], Tensor) is not first
    saved = read_checkpoint(after.save(Checkpoints(tmp_path, 2)))[1]["optimizer"]
    (group, *_) = saved["param_groups"]
    assert isinstance(group["lr"], float) and group["capturable"] is False


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
    assert "minibatch" not in learner.about(16)


def test_a_minibatch_above_the_batch_is_said(tmp_path: Path) -> None:
    few = {"matches": 2, "rollout_steps": 8, "snapshot_share": 0.0, "minibatch": 4096, "out": str(tmp_path)}
    learner = PPOLearner(check_settings(SMALL | few))
    assert "minibatch is 4,096, above the 32 agent steps of an iteration" in learner.about(1)
