"""The mean of checkpoints plays as a policy of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from rlgym_bridge.cli import run_command
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.training.average import average
from tests.support.policy_folders import OBS_1V1, random_weights, save


def run_of(tmp_path: Path, *steps: int) -> Path:
    for number in steps:
        weights = random_weights(OBS_1V1, 32, 90, seed=number)
        save(tmp_path / "run" / "checkpoints" / str(number), weights=weights, training={"steps": number})
    return tmp_path / "run"


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load((folder / "weights.safetensors").read_bytes())


def test_the_newest_checkpoints_give_their_mean(tmp_path: Path) -> None:
    run, out = run_of(tmp_path, 5, 30, 200), tmp_path / "mean"
    words = [str(run), "--newest", "2", "--out", str(out), "--selection", "argmax"]
    assert run_command("average", words) == 0
    loaded = load_policy(out).manifest
    assert (loaded.selection, loaded.training) == ("argmax", {"steps": 200, "average_of": ["30", "200"]})
    for name, tensor in weights_of(out).items():
        pair = [weights_of(run / "checkpoints" / steps)[name] for steps in ("30", "200")]
        assert tensor.dtype == np.float32
        np.testing.assert_allclose(tensor, (pair[0] + pair[1]) / 2, atol=1e-7)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"distribution": "gaussian"},
            r"a/policy.json has parser .*LookupTable.*expected policies of one",
        ),
        ({"weights": random_weights(OBS_1V1, 16, 90)}, r"b has layers .*\(16, 92\).*expected equal ones"),
    ],
)
def test_policies_that_differ_are_refused_by_name(
    other: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save(tmp_path / "a")
    save(tmp_path / "b", **other)
    with pytest.raises(ValueError, match=message):
        average([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


@pytest.mark.parametrize(
    ("newest", "out", "message"),
    [
        ("1", "mean", "expected two or more"),
        ("-3", "mean", "expected two or more"),
        ("2", "run/checkpoints/30", "expected another folder"),
    ],
)
def test_what_cannot_be_averaged_is_refused(
    newest: str, out: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path, 5, 30)
    assert run_command("average", [str(run), "--newest", newest, "--out", str(tmp_path / out)]) == 2
    assert message in capsys.readouterr().err
