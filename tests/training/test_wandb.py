"""Curves in Weights & Biases: what is sent there, offline too, and what a run says without the package."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings
from tests.support.training_runs import SMALL, column

BATCH = 8 * 14


def settings(out: Path, **changes: Any) -> TrainingSettings:
    return check_settings(SMALL | {"out": str(out), "wandb": "my-bots", "steps": 2 * BATCH} | changes)


class Service:
    """The part of the package that is called; it notes what it is given."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun: list[dict[str, Any]] = []
        self.sent: list[dict[str, float]] = []
        self.finished, self._error = 0, error

    def Settings(self, **given: Any) -> dict[str, Any]:
        return given

    def init(self, **given: Any) -> Any:
        if self._error is not None:
            raise self._error
        self.begun.append(given)
        return SimpleNamespace(define_metric=lambda *_, **__: None, log=self.sent.append, finish=self._finish)

    def _finish(self) -> None:
        self.finished += 1


def test_a_run_and_its_resumption_are_one_run_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    monkeypatch.setitem(sys.modules, "wandb", service)  # type: ignore[arg-type]
    main(settings(tmp_path), quiet=True)
    main(settings(tmp_path, steps=3 * BATCH), resume=True, quiet=True)
    assert [one["steps"] for one in service.sent] == [BATCH, 2 * BATCH, 3 * BATCH]
    assert [one["entropy"] for one in service.sent] == pytest.approx(column(tmp_path, "entropy"), rel=1e-5)
    first, second = service.begun
    assert first["project"] == "my-bots" and first["name"] == tmp_path.name
    assert first["id"] == second["id"] and service.finished == 2
    assert first["config"]["matches"] == 8 and "out" not in first["config"]
    main(settings(tmp_path / "another"), quiet=True)
    assert service.begun[2]["id"] != first["id"]


def test_curves_are_kept_offline_by_the_package_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    main(settings(tmp_path), quiet=True)
    (kept,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    assert (tmp_path / "wandb_id.txt").read_text().strip() in kept.name
    assert b"entropy" in kept.read_bytes()
    assert not math.isnan(column(tmp_path, "entropy")[1])


@pytest.mark.parametrize("there", [None, SimpleNamespace()])  # not installed; a folder of that name
def test_a_package_that_is_not_there_is_named_at_once(
    there: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", there)
    with pytest.raises(
        SettingsError, match=r'wandb is "my-bots", and the package wandb is not installed: pip'
    ):
        main(settings(tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()


def test_who_is_not_signed_in_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", Service(RuntimeError("no key\nmore")))  # type: ignore[arg-type]
    with pytest.raises(
        SettingsError, match=r"begins there \(no key\): `wandb login` signs in, and WANDB_MODE"
    ):
        main(settings(tmp_path), quiet=True)


def test_a_service_that_fails_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service()
    service.sent = SimpleNamespace(append=lambda _: 1 / 0)  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "wandb", service)  # type: ignore[arg-type]
    assert main(settings(tmp_path)).steps == 2 * BATCH
    said = [line for line in capsys.readouterr().err.splitlines() if "wandb" in line]
    assert said == ["wandb does not take the curves: division by zero; training goes on"]
