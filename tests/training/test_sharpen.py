"""A policy with its logits multiplied: what it plays, and what is refused."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from rlgym_bridge.policy.files import WEIGHTS_FILE
from rlgym_bridge.policy.folder import load_policy
from tests.support.policy_folders import edit, observations, save
from training.runs.sharpen import main, sharpen


def test_likely_actions_become_likelier_in_the_same_order(tmp_path: Path) -> None:
    save(tmp_path / "before")
    sharpen(tmp_path / "before", 2.0, tmp_path / "once")
    manifest = sharpen(tmp_path / "once", 1.5, tmp_path / "twice")
    assert manifest.training["logits_times"] == 3.0
    before, after = (load_policy(tmp_path / name) for name in ("before", "twice"))
    rows = observations()[:, 0]
    np.testing.assert_allclose(after.policy.network(rows), 3 * before.policy.network(rows), atol=1e-4)
    assert after.manifest.differing(before.manifest) is None


def test_weights_without_layers_are_named(tmp_path: Path) -> None:
    save(tmp_path / "before")
    for data in (safetensors.numpy.save({}), b"rubbish"):
        (tmp_path / "before" / WEIGHTS_FILE).write_bytes(data)
        edit(tmp_path / "before", weights_sha256=hashlib.sha256(data).hexdigest())
        with pytest.raises(ValueError, match=r"weights\.safetensors holds no layers of a network"):
            sharpen(tmp_path / "before", 2, tmp_path / "after")


@pytest.mark.parametrize(
    ("distribution", "factor", "expected"),
    [
        ("categorical", "0", "FACTOR is 0, expected a number above 0"),
        ("categorical", "much", "FACTOR is nan, expected a number above 0"),
        ("gaussian", "2", "is gaussian, which has no logits"),
    ],
)
def test_what_cannot_be_sharpened_is_refused(
    distribution: str, factor: str, expected: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    save(tmp_path / "before", distribution)
    monkeypatch.setattr(sys, "argv", ["sharpen", str(tmp_path / "before"), factor, str(tmp_path / "after")])
    assert main() == 2
    assert expected in capsys.readouterr().err and not (tmp_path / "after").exists()


def test_a_policy_is_not_replaced_by_its_sharper_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "bot")
    monkeypatch.setattr(sys, "argv", ["sharpen", str(tmp_path / "bot"), "2", str(tmp_path / "bot")])
    assert main() == 2 and "is read and would be replaced" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["sharpen", str(tmp_path / "bot"), "2", str(tmp_path / "sharper")])
    assert main() == 0 and "with its logits multiplied by 2" in capsys.readouterr().out
