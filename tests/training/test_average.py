"""The mean of checkpoints plays as a policy of its own."""

from pathlib import Path

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
    assert (
        run_command("average", [str(run), "--newest", "2", "--out", str(out), "--selection", "argmax"]) == 0
    )
    for name, tensor in weights_of(out).items():
        pair = [weights_of(run / "checkpoints" / steps)[name] for steps in ("30", "200")]
        assert tensor.dtype == np.float32
        np.testing.assert_allclose(tensor, (pair[0] + pair[1]) / 2, atol=1e-7)


def test_the_mean_loads_and_says_what_it_is_made_of(tmp_path: Path) -> None:
    run = run_of(tmp_path, 5, 30)
    folders = [run / "checkpoints" / steps for steps in ("5", "30")]
    average(folders, tmp_path / "mean", "argmax")
    loaded = load_policy(tmp_path / "mean")
    assert loaded.manifest.selection == "argmax"
    assert loaded.manifest.training == {"steps": 30, "average_of": ["5", "30"]}


def test_policies_that_see_something_else_are_refused_by_name(tmp_path: Path) -> None:
    save(tmp_path / "a")
    save(tmp_path / "b", "gaussian")
    with pytest.raises(
        ValueError, match=r"a/policy.json has parser .*LookupTableAction.*expected policies of one run"
    ):
        average([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_policies_with_other_layers_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "a")
    save(tmp_path / "b", weights=random_weights(OBS_1V1, 16, 90))
    with pytest.raises(ValueError, match=r"b has layers .*\(16, 92\).*expected equal ones"):
        average([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")


@pytest.mark.parametrize("newest", ["1", "0", "-3"])
def test_fewer_than_two_checkpoints_are_no_mean(
    tmp_path: Path, newest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path, 5, 30)
    assert run_command("average", [str(run), "--newest", newest, "--out", str(tmp_path / "mean")]) == 2
    assert "expected two or more" in capsys.readouterr().err


def test_a_mean_does_not_overwrite_its_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path, 5, 30)
    assert run_command("average", [str(run), "--out", str(run / "checkpoints" / "30")]) == 2
    assert "expected another folder" in capsys.readouterr().err
