"""Refusals of training with Ray before it begins."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

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


_LACKED = "is .*, which RLlib's PPO does not have .*; expected {}, or --engine local"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("overlap", True, "is true, and --engine rllib plays and learns in turns"),
        ("mirror", True, "is true, which --engine rllib does not have"),
        ("uniform_coefficient", 0.1, _LACKED.format(r"0\.0")),
        ("critic_learning_rate", 0.1, _LACKED.format(r"0\.0")),
        ("critic_learning_rate_schedule", "linear", _LACKED.format('"same"')),
        ("standardize_returns", True, _LACKED.format("false")),
        ("value_clip", 0.1, _LACKED.format(r"0\.0")),
        ("target_kl", 0.1, _LACKED.format(r"0\.0")),
    ],
)
def test_what_its_learner_does_not_have_is_refused(
    name: str, value: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=f"{name} {message}"):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), name: value}), quiet=True)
