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


@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        ("uniform_coefficient", 0.1, r"0\.0"), ("critic_learning_rate", 0.1, r"0\.0"),
        ("critic_learning_rate_schedule", "linear", '"same"'), ("standardize_returns", True, "false"),
        ("value_clip", 0.1, r"0\.0"), ("target_kl", 0.1, r"0\.0"), ("overlap", True, "false"),
        ("mirror", True, "false"), ("network", "gru", '"perceptron"'),
    ],
)  # fmt: skip
def test_settings_that_rllib_does_not_have_are_refused(
    name: str, value: Any, others: str, tmp_path: Path
) -> None:
    message = rf"{name} is .*, which --engine rllib does not have; expected {others}, or --engine local"
    with pytest.raises(SettingsError, match=message):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), name: value}), quiet=True)
