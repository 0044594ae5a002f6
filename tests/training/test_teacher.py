"""Learn from an old policy: its probabilities reach the loss, whatever it sees, and its weight fades."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rlgym.rocket_league.obs_builders import DefaultObs as RLGymDefaultObs
from torch.distributions import Categorical, kl_divergence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.relative_obs import TeamObs
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.selfplay.teacher import Teacher
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings
from tests.support.policy_folders import make_module, random_weights, save, spec
from tests.support.small_learners import learner_of
from tests.support.states import random_state
from tests.support.training_runs import SMALL, column

STANDARD = {"components": "rlgym_bridge.training.components", "kickoff_share": 0.0}
TABLES = """
import numpy as np
from rlgym_bridge import ComponentSpec, RepeatAction
from rlgym_bridge.components.actions import LookupTableAction

class ShortTable(LookupTableAction):
    @staticmethod
    def make_lookup_table():
        return LookupTableAction.make_lookup_table()[::-2].copy()

class OtherTable(LookupTableAction):
    @staticmethod
    def make_lookup_table():
        return LookupTableAction.make_lookup_table() * np.float32([0.5] * 5 + [1] * 3)

def mutator(settings):
    from rlgym_bridge.training.components import mutator
    return mutator(settings)
"""


def settings_of(folder: Path, **changes: Any) -> TrainingSettings:
    return check_settings(SMALL | STANDARD | {"teacher": str(folder), "out": str(folder) + "-run"} | changes)


def softmax(outputs: np.ndarray) -> np.ndarray:
    return torch.from_numpy(outputs).softmax(-1).numpy()


@pytest.mark.parametrize("rlgym", [False, True])
def test_a_teacher_sees_the_state_with_its_own_builder(rlgym: bool, tmp_path: Path) -> None:
    obs = spec(RLGymDefaultObs, zero_padding=None) if rlgym else spec(DefaultObs, zero_padding=None)
    save(tmp_path / "old", obs=obs)
    settings = settings_of(tmp_path / "old", matches=5)
    teacher = Teacher(settings, Task(settings))
    teacher.restart()
    network = load_policy(tmp_path / "old").policy.network
    for seed in (1, 2):
        state = random_state(1, 1, seed=seed, matches=5)
        seen = load_policy(tmp_path / "old").obs_builder() if not rlgym else DefaultObs(None)
        rows = seen.build_batch(state).reshape(10, -1)
        found = teacher.probabilities(state)
        np.testing.assert_allclose(found.reshape(10, -1), softmax(network(rows)), atol=1e-4)
        teacher.forget(np.array([True, False, False, True, False]))


def test_another_table_is_translated_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_module(tmp_path, monkeypatch, "teachers_tables", TABLES)
    from teachers_tables import OtherTable, ShortTable  # type: ignore[import-not-found]

    short = spec(RepeatAction, spec(ShortTable), repeats=8)
    save(tmp_path / "old", parser=short, weights=random_weights(92, 32, 45))
    settings = settings_of(tmp_path / "old", components="teachers_tables", matches=3)
    teacher, state = Teacher(settings, Task(settings)), random_state(1, 1, seed=1, matches=3)
    found = teacher.probabilities(state)
    loaded = load_policy(tmp_path / "old", ["teachers_tables"])
    rows = loaded.obs_builder().build_batch(state).reshape(6, -1)
    expected = np.zeros((6, 90))
    expected[:, np.arange(90)[::-2]] = softmax(loaded.policy.network(rows))
    np.testing.assert_allclose(found.reshape(6, -1), expected, atol=1e-5)
    other = spec(RepeatAction, spec(OtherTable), repeats=8)
    save(tmp_path / "odd", parser=other, weights=random_weights(92, 32, 90))
    with pytest.raises(SettingsError, match=r"whose action 0 gives the controls \[-0.5, .* no action of"):
        learner_of(tmp_path / "run", False, **STANDARD | {"teacher": str(tmp_path / "odd")}
                   | {"components": "teachers_tables"})  # fmt: skip


@pytest.mark.parametrize(
    ("saved", "changes", "message"),
    [
        ({"distribution": "gaussian"}, {}, "whose actions are gaussian over .8,., and this run's"),
        ({}, {"tick_skip": 4}, "which decides every 8 ticks, and tick_skip is 4"),
        ({}, {"team_sizes": [2, 2]}, "which was trained for 1v1, this match is 2v2"),
        ({}, {"teacher": "chaser"}, "chaser is no folder"),
    ],
)
def test_teachers_that_do_not_fit_get_a_sentence(
    saved: dict[str, Any], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save(tmp_path / "old", **saved)
    with pytest.raises(SettingsError, match=f"teacher is .*{message}"):
        learner_of(tmp_path / "run", False, **STANDARD | {"teacher": str(tmp_path / "old")} | changes)


def test_the_divergence_is_torchs_over_allowed_choices(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, False)
    torch.manual_seed(0)
    outputs, targets = torch.randn(6, 90), torch.randn(6, 90).softmax(1)
    found = learner.policy.divergence_from(outputs, targets)
    exact = kl_divergence(Categorical(targets), Categorical(logits=outputs))
    torch.testing.assert_close(found, exact, atol=1e-5, rtol=1e-5)
    masks = torch.zeros(6, 90, dtype=torch.bool)
    masks[:, 10:30] = True
    found = learner.policy.divergence_from(outputs, targets, masks)
    few = Categorical(targets[:, 10:30]), Categorical(logits=outputs[:, 10:30])
    torch.testing.assert_close(found, kl_divergence(*few), atol=1e-5, rtol=1e-5)
    targets[0, 10:30] = 0
    assert float(learner.policy.divergence_from(outputs, targets, masks)[0]) == 0


def test_the_weight_fades_to_nothing(tmp_path: Path) -> None:
    save(tmp_path / "old")
    changes = {"teacher": str(tmp_path / "old"), "teacher_coefficient": 0.5, "teacher_steps": 1000}
    learner = learner_of(tmp_path / "run", False, **STANDARD | changes)
    weights = [learner.teacher_weight(steps) for steps in (0, 500, 1000, 2000)]
    assert weights == [0.5, 0.25, 0.0, 0.0]
    assert learner_of(tmp_path / "other", False).teacher_weight() == 0.0


@pytest.mark.parametrize("network", ["perceptron", "gru"])
def test_a_run_comes_near_its_teacher(network: str, tmp_path: Path) -> None:
    weights = {name: 2 * value for name, value in random_weights(222, 32, 90).items()}
    save(tmp_path / "old", obs=spec(TeamObs), weights=weights)
    size, half = 8 * 14, 6 if network == "gru" else 8
    changes = SMALL | STANDARD | {
        "teacher": str(tmp_path / "old"), "teacher_steps": 25 * size, "learning_rate": 6e-3, "minibatch": 28,
        "entropy_coefficient": 0.0, "epochs": 4, "steps": 2 * half * size, "out": str(tmp_path / "run"),
        "network": network, "sequence_length": 4, "mirror": network == "perceptron",
    }  # fmt: skip
    settings = check_settings(changes | {"teacher_coefficient": 5.0})
    main(settings, quiet=True)
    found = column(Path(settings.out), "teacher_kl")
    assert found[-1] < 0.7 * found[0]


def test_a_mirrored_policy_is_told_mirrored_probabilities(tmp_path: Path) -> None:
    save(tmp_path / "old", obs=spec(TeamObs), weights=random_weights(222, 32, 90), mirror=True)
    loaded = load_policy(tmp_path / "old")
    obs = TeamObs().build_batch(random_state(1, 1, seed=1, matches=4))
    found = loaded.policy.probabilities(obs)
    drawn = np.array([loaded.policy.act(obs) for _ in range(4000)])  # (4000, 4, 2)
    shares = np.stack([(drawn == action).mean(0) for action in range(90)], -1)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(found, shares, atol=0.05)
    assert LookupTableAction().get_action_space("")[1] == 90
