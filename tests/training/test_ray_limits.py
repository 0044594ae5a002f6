"""Refusals of training with Ray before it begins."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from rlgym_bridge.training.rllib import ray_ppo
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.training_runs import SMALL


def test_three_runners_for_two_processors_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_ppo, "cluster", lambda address, collectors: nullcontext(2))
    with pytest.raises(
        SettingsError, match="collectors is 3, and the cluster has 2 processors, one for each"
    ):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), "collectors": 3}), quiet=True)


def test_overlap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="overlap is true, and --engine rllib plays and learns in turns"):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), "overlap": True}), quiet=True)


def test_a_weight_that_its_loss_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"uniform_coefficient is 0\.1, which RLlib's PPO does not have"):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), "uniform_coefficient": 0.1}), quiet=True)


def test_a_mirrored_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="mirror is true, which --engine rllib does not have"):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), "mirror": True}), quiet=True)
