"""A sharpened policy takes its likely actions oftener, and training goes on from it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.policy.files import read_files
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.manifest import SearchSettings
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.runs.checkpoints import STATE_CHECKSUM, STATE_FILE, Checkpoints, read_checkpoint
from rlgym_bridge.training.runs.run import load_newest
from tests.support.policy_folders import OBS_1V1, save
from tests.support.training_runs import small_settings
from tools.sharpen import sharpen


def test_logits_are_multiplied(tmp_path: Path) -> None:
    save(tmp_path / "plain")
    sharpen(tmp_path / "plain", 2.0, tmp_path / "sharp")
    obs = np.random.default_rng(0).standard_normal((5, 1, OBS_1V1), np.float32)
    plain, sharp = (load_policy(tmp_path / name).policy.probabilities(obs) for name in ("plain", "sharp"))
    np.testing.assert_allclose(sharp, plain**2 / (plain**2).sum(-1, keepdims=True), atol=1e-5)
    assert (sharp.max(-1) > plain.max(-1)).all()


def test_training_goes_on_from_a_sharpened_checkpoint(tmp_path: Path) -> None:
    learner = PPOLearner(small_settings(tmp_path / "run"))
    learner.steps = 10
    learner.save(Checkpoints(tmp_path / "run", 3))
    plain, sharp = (tmp_path / run / "checkpoints" / "10" for run in ("run", "sharp"))
    sharpen(plain, 3.0, sharp, with_state=True)
    (_, before), (_, after) = read_checkpoint(plain), read_checkpoint(sharp)
    last = max(name for name in before["policy"] if name.endswith("weight"))
    assert (after["policy"].pop(last) == 3 * before["policy"].pop(last)).all()
    first = next(iter(before["policy"]))
    assert (after["policy"][first] == before["policy"][first]).all()
    other = PPOLearner(small_settings(tmp_path / "sharp"))
    load_newest(other, tmp_path / "sharp")
    assert other.steps == 10
    sharpen(sharp, 2.0, tmp_path / "alone")
    notes = read_files(tmp_path / "alone")[0].training
    assert notes["logits_times"] == 6 and STATE_CHECKSUM not in notes
    assert not (tmp_path / "alone" / STATE_FILE).exists()


@pytest.mark.parametrize("standardised", [False, True])
def test_a_checkpoint_gets_a_search_with_its_critic(
    tmp_path: Path, standardised: bool, caplog: pytest.LogCaptureFixture
) -> None:
    learner = PPOLearner(small_settings(tmp_path / "run", standardize_returns=standardised, goal=7.0))
    learner.steps = 10
    learner.save(Checkpoints(tmp_path / "run", 3))
    sharpen(tmp_path / "run" / "checkpoints" / "10", 1.0, tmp_path / "searching", with_search=True)
    search = read_files(tmp_path / "searching")[0].search
    assert search == SearchSettings(10, 5, 0.005, 7.0, learner.settings.gamma, 1.0)
    load_policy(tmp_path / "searching", ["tests.support.mark_game"])
    assert "plays without its search" in caplog.text, "its components have no batch form"
    sharpen(tmp_path / "searching", 2.0, tmp_path / "sharper")
    assert read_files(tmp_path / "sharper")[0].search == search, "it stays"
    with pytest.raises(ValueError, match=r"training\.pt"):
        sharpen(tmp_path / "searching", 1.0, tmp_path / "again", with_search=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"goal": 0.0}, "search has goal 0.0, expected"),
        (
            {"network": "gru", "sequence_length": 8},
            "search is set, expected a policy of one choice, without memory",
        ),
    ],
    ids=["no goal", "memory"],
)
def test_what_cannot_search_is_not_written(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    learner = PPOLearner(small_settings(tmp_path / "run", **changes))
    learner.save(Checkpoints(tmp_path / "run", 3))
    with pytest.raises(ValueError, match=message):
        sharpen(tmp_path / "run" / "checkpoints" / "0", 1.0, tmp_path / "searching", with_search=True)
    assert not (tmp_path / "searching").exists()


def test_what_has_no_logits_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "plain")
    for factor in (0.0, -1.0, float("nan"), float("inf"), 1e30):
        with pytest.raises(ValueError, match=r"factor is .*, expected 0\.001 to 1000"):
            sharpen(tmp_path / "plain", factor, tmp_path / "sharp")
        assert not (tmp_path / "sharp").exists()
    save(tmp_path / "stick", "gaussian")
    with pytest.raises(ValueError, match=r"stick has gaussian actions .*, expected logits"):
        sharpen(tmp_path / "stick", 2.0, tmp_path / "sharp")
    (tmp_path / "sharp").mkdir()
    with pytest.raises(FileExistsError, match="sharp is there already, expected a new folder"):
        sharpen(tmp_path / "plain", 2.0, tmp_path / "sharp")
