"""A policy with its logits multiplied: what it plays, and what is refused."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from rlgym_bridge.cli import run_command
from rlgym_bridge.policy.files import WEIGHTS_FILE
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.training.runs.sharpen import sharpen
from tests.support.policy_folders import edit, observations, save


def test_likely_actions_become_likelier_in_the_same_order(tmp_path: Path) -> None:
    save(tmp_path / "before")
    sharpen(tmp_path / "before", 2.0, tmp_path / "once")
    assert sharpen(tmp_path / "once", 1.5, tmp_path / "twice") == 3.0
    before, after = (load_policy(tmp_path / name) for name in ("before", "twice"))
    rows = observations()[:, 0]
    np.testing.assert_allclose(after.policy.network(rows), 3 * before.policy.network(rows), atol=1e-4)
    assert after.manifest.differing(before.manifest) is None
    assert after.manifest.training["logits_times"] == 3.0


def write_weights(folder: Path, data: bytes) -> None:
    (folder / WEIGHTS_FILE).write_bytes(data)
    edit(folder, weights_sha256=hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (None, r"weights\.safetensors is not readable as safetensors"),
        ({}, r"weights\.safetensors holds no layers of a network"),
        ({"layers.0.weight": np.ones((), np.float32)}, "layers.0.weight is of 0 dimensions, expected 2"),
        ({"layers.0.weight": np.ones((1, 1), np.float32)}, "layers.0.bias is missing, expected 1"),
        ({"layers.0.weight": np.full((1, 1), np.nan, np.float32)}, "layers.0.bias is missing"),
        (
            {"layers.0.weight": np.full((1, 1), np.nan, np.float32), "layers.0.bias": np.ones(1, np.float32)},
            "layers.0.weight has other numbers than finite ones of float32",
        ),
        (
            {"layers.0.weight": np.full((1, 1), 1e38, np.float32), "layers.0.bias": np.ones(1, np.float32)},
            "the changed policy: layers.0.weight has other numbers than finite ones",
        ),
    ],
)
def test_weights_that_are_no_network_are_named(
    change: dict[str, np.ndarray] | None, expected: str, tmp_path: Path
) -> None:
    save(tmp_path / "before")
    data = b"rubbish" if change is None else safetensors.numpy.save(change)
    write_weights(tmp_path / "before", data)
    with pytest.raises(ValueError, match=expected):
        sharpen(tmp_path / "before", 100, tmp_path / "after")
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize(
    ("distribution", "factor", "expected"),
    [
        ("categorical", "0", "FACTOR is 0, expected a number from 0.001 to 1000"),
        ("categorical", "much", "FACTOR is nan, expected a number from 0.001 to 1000"),
        ("gaussian", "2", "is gaussian, which has no logits"),
    ],
)
def test_what_cannot_be_sharpened_is_refused(
    distribution: str, factor: str, expected: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    save(tmp_path / "before", distribution)
    monkeypatch.setattr(
        sys, "argv", ["sharpen", str(tmp_path / "before"), factor, "--out", str(tmp_path / "after")]
    )
    assert run_command("sharpen") == 2
    assert expected in capsys.readouterr().err and not (tmp_path / "after").exists()


def test_a_policy_is_not_replaced_by_its_sharper_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "bot")
    monkeypatch.setattr(sys, "argv", ["sharpen", str(tmp_path / "bot"), "2", "--out", str(tmp_path / "bot")])
    assert run_command("sharpen") == 2 and "is read and would be replaced" in capsys.readouterr().err
    monkeypatch.setattr(
        sys, "argv", ["sharpen", str(tmp_path / "bot"), "2", "--out", str(tmp_path / "sharper")]
    )
    assert run_command("sharpen") == 0 and "with its logits multiplied by 2" in capsys.readouterr().out
