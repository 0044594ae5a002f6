"""A run's table after a crash, and its curves in Weights & Biases."""

import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.curve_files import mend_table
from rlgym_bridge.training.runs.progress import Progress
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings
from tests.support.training_runs import SMALL, column

COLUMNS = ("steps", "touches")


def test_lines_after_the_checkpoint_are_taken_out(tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text("steps,touches\n100,1\n200,2\n300,3\n40")
    mend_table(table, COLUMNS, 200)
    assert table.read_text() == "steps,touches\n100,1\n200,2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["progress.csv"]


@pytest.mark.parametrize("damage", ["3\r0\r0,1\n", '"' + "9" * 200_000, "\0" * 4096 + "\n"])
def test_a_crash_in_the_middle_of_a_line_keeps_the_others(damage: str, tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text("steps,touches\n100,1\n200,2\n" + damage, newline="")
    mend_table(table, COLUMNS, 200)
    assert table.read_text() == "steps,touches\n100,1\n200,2\n"


def test_a_whole_table_stays_as_it_is(tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text("steps,touches\n100,nan\n200,2.5\n")
    before = table.stat().st_mtime_ns
    mend_table(table, COLUMNS, 200)
    assert table.stat().st_mtime_ns == before
    mend_table(tmp_path / "none.csv", COLUMNS, 200)


def test_tables_with_other_columns_are_put_aside(tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    for number in (1, 2):
        table.write_text(f"old,{number}\n1,2\n")
        mend_table(table, COLUMNS, 200)
        assert not table.exists()
        assert (tmp_path / f"progress.{number}.csv").read_text() == f"old,{number}\n1,2\n"


def test_a_table_that_is_put_aside_loses_its_broken_line(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text("old,touches\n1,2\n900,4\n5")
    (tmp_path / "progress.7.csv").write_text("old,touches\n")
    mend_table(tmp_path / "progress.csv", COLUMNS, 200)
    assert (tmp_path / "progress.8.csv").read_text() == "old,touches\n1,2\n900,4\n"


@pytest.mark.parametrize("text", ["steps;touches\n1;2\n3;4\n5;6\n", "steps\n1,2\n3,4\n5,6\n"])
def test_a_table_that_another_program_wrote_is_put_aside_whole(text: str, tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text(text)
    mend_table(tmp_path / "progress.csv", COLUMNS, 200)
    assert (tmp_path / "progress.1.csv").read_text() == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_table_that_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    table = tmp_path / "progress.csv"
    if kind == "pipe":
        os.mkfifo(table)
    elif kind == "device":
        table.symlink_to("/dev/zero")
    else:
        table.mkdir()
    with pytest.raises(ValueError, match="expected the table of a training run"):
        mend_table(table, COLUMNS, 200)


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


def test_a_rating_of_the_ruler_is_there_as_in_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service()
    monkeypatch.setitem(sys.modules, "wandb", service)  # type: ignore[arg-type]
    row = {"rating": 700.0, "low": 600.0, "high": 800.0, "win_rate/chaser": 0.25}
    with Progress(settings(tmp_path), 0, quiet=True) as progress:
        progress.show_rating((BATCH, row))
    (sent,) = service.sent
    assert sent == {f"ruler/{name}": value for name, value in row.items()} | {"steps": BATCH}
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    shown = {name: [(one.step, one.value) for one in board.Scalars(name)] for name in board.Tags()["scalars"]}
    assert shown == {f"ruler/{name}": [(BATCH, value)] for name, value in row.items()}


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
