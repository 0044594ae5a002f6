"""A run's policy forgets inputs: what changes in its newest checkpoint, and what is refused."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.numpy
import torch

from rlgym_bridge.cli import run_command
from rlgym_bridge.policy.files import newest_checkpoint, read_files, write_files
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.forget_inputs import forget_inputs
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings
from tests.support.training_runs import SMALL, forget_checksum


def settings(run: Path) -> TrainingSettings:
    return check_settings(
        SMALL
        | {
            "components": "rlgym_bridge.training.components",
            "team_sizes": [[1, 1], [2, 2]],
            "out": str(run),
        }
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a checkpoint of 0 steps, without playing."""
    PPOLearner(settings(tmp_path / "run")).save(Checkpoints(tmp_path / "run", 1))
    return tmp_path / "run"


def test_the_first_layer_ignores_forgotten_inputs(run: Path) -> None:
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    before = safetensors.numpy.load(read_files(checkpoint)[1])
    forgotten = forget_inputs(run, ["ally-", "enemy-1"])
    manifest, data = read_files(checkpoint)  # written anew
    after, names = safetensors.numpy.load(data), manifest.obs_names
    assert names is not None and forgotten == [name for name in names if "ally-" in name or "enemy-1" in name]
    for place, name in enumerate(names):
        column = after["layers.0.weight"][:, place]
        kept = (column == before["layers.0.weight"][:, place]).all()
        assert (column == 0).all() if name in forgotten else kept
    assert all((after[name] == before[name]).all() for name in before if name != "layers.0.weight")
    learner = PPOLearner(settings(run))
    learner.load(checkpoint)  # a run goes on from it
    learned = learner.policy.arrays()["layers.0.weight"]
    assert (learned == after["layers.0.weight"]).all()


def test_nothing_that_a_checkpoint_names_is_imported_or_lost(run: Path) -> None:
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    (checkpoint / "notes.txt").write_text("mine")
    manifest, data = read_files(checkpoint)
    recorded = manifest.training["settings"] | {"env": "os:abort", "components": "this"}
    write_files(checkpoint, data, replace(manifest, training={"settings": recorded}))
    assert "ally-0/position/x" in forget_inputs(run, ["ally-"])
    assert "this" not in sys.modules and (checkpoint / "notes.txt").read_text() == "mine"


def test_a_named_pipe_for_the_state_is_refused(run: Path) -> None:
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    (checkpoint / "training.pt").unlink()
    os.mkfifo(checkpoint / "training.pt")
    with pytest.raises(
        SettingsError, match=r"training\.pt is a named pipe, expected the state of a training run"
    ):
        forget_inputs(run, ["ally-"])


def test_a_part_that_no_input_has_changes_nothing(run: Path) -> None:
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    before = read_files(checkpoint)[1]
    for part in ("mate", ""):
        expected = f"no input of .* has a part '{part}'; they are of ball, pad, self, relative, ally-0, "
        with pytest.raises(SettingsError, match=expected):
            forget_inputs(run, ["ally-", part])
    assert read_files(checkpoint)[1] == before


def test_a_folder_without_checkpoint_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["forget_inputs", str(tmp_path / "none"), "ally-"])
    assert run_command("forget-inputs") == 2
    assert "has no checkpoint, expected the folder of a training run" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_an_object_in_a_checkpoint_is_refused_without_advice(run: Path) -> None:
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    torch.save({"policy": Path("x")}, checkpoint / "training.pt")
    forget_checksum(checkpoint)
    with pytest.raises(
        SettingsError, match=r"holds more than numbers, expected one that training wrote$"
    ) as found:
        forget_inputs(run, ["ally-"])
    assert "weights_only" not in str(found.value)


@pytest.mark.parametrize("damaged", [b"", b"text", b"PK"])
def test_a_damaged_checkpoint_is_named(run: Path, damaged: bytes) -> None:
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    (checkpoint / "training.pt").write_bytes(damaged)
    with pytest.raises(SettingsError, match=r"the checkpoint .* cannot be read: "):
        forget_inputs(run, ["ally-"])
    assert (checkpoint / "training.pt").read_bytes() == damaged


def test_nothing_is_forgotten_where_latest_names_no_checkpoint(run: Path) -> None:
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    before = (checkpoint / "weights.safetensors").read_bytes()
    latest = run / "checkpoints" / "latest"
    latest.write_text("7")
    with pytest.raises(ValueError, match="latest names '7', expected one of 0"):
        forget_inputs(run, ["ally-"])
    latest.write_bytes(b"\xff\x00")
    with pytest.raises(ValueError, match="latest cannot be read as text, expected one of 0"):
        forget_inputs(run, ["ally-"])
    latest.unlink()
    latest.symlink_to("0")
    with pytest.raises(ValueError, match="latest cannot be read as text, expected one of 0"):
        forget_inputs(run, ["ally-"])
    assert (checkpoint / "weights.safetensors").read_bytes() == before
