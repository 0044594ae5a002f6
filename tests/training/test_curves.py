"""A run's curves in progress.csv, TensorBoard, the terminal and Weights & Biases, and after a crash."""

import csv
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.curve_files import mend_table
from rlgym_bridge.training.runs.progress import COLUMNS, Progress
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from tests.support.training_runs import BATCH, column, small_settings

STANDARD = "rlgym_bridge.training.components"
TABLE = ("steps", "touches")
WHOLE = "steps,touches\n100,1\n200,2\n"


@pytest.mark.parametrize("damage", ["300,3\n40", "3\r0\r0,1\n", '"' + "9" * 200_000, "\0" * 4096 + "\n"])
def test_lines_after_the_checkpoint_or_damaged_are_taken_out(damage: str, tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text(WHOLE + damage, newline="")
    mend_table(table, TABLE, 200)
    assert table.read_text() == WHOLE
    assert [path.name for path in tmp_path.iterdir()] == ["progress.csv"]


def test_a_whole_table_stays_as_it_is(tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text("steps,touches\n100,nan\n200,2.5\n")
    before = table.stat().st_mtime_ns
    mend_table(table, TABLE, 200)
    assert table.stat().st_mtime_ns == before
    mend_table(tmp_path / "none.csv", TABLE, 200)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("old,1\n1,2\n", "old,1\n1,2\n"),
        ("old,touches\n1,2\n900,4\n5", "old,touches\n1,2\n900,4\n"),  # its last line was cut off
        ("steps;touches\n1;2\n3;4\n5;6\n", "steps;touches\n1;2\n3;4\n5;6\n"),  # another program wrote it
        ("steps\n1,2\n3,4\n5,6\n", "steps\n1,2\n3,4\n5,6\n"),
    ],
)
def test_tables_with_other_columns_are_put_aside(text: str, kept: str, tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    (tmp_path / "progress.7.csv").write_text("old,touches\n")
    for number in (8, 9):
        table.write_text(text)
        mend_table(table, TABLE, 200)
        assert not table.exists() and (tmp_path / f"progress.{number}.csv").read_text() == kept


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "make", [getattr(os, "mkfifo", None), lambda table: table.symlink_to("/dev/zero"), Path.mkdir]
)
def test_a_table_that_is_no_file_is_refused_at_once(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "progress.csv")
    with pytest.raises(ValueError, match="expected the table of a training run"):
        mend_table(tmp_path / "progress.csv", TABLE, 200)


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "progress.csv").open() as file:
        return list(csv.DictReader(file))


def board_of(out: Path) -> EventAccumulator:
    return EventAccumulator(str(out / "tensorboard")).Reload()


def test_each_reward_is_in_the_table_the_board_and_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(small_settings(tmp_path, components=STANDARD, steps=2 * BATCH, save=3.0), rewards=True)
    names = ("goal", "touch", "touch_strength", "save", "velocity_to_ball", "velocity_ball_to_goal")
    board = board_of(tmp_path)
    for name in names:
        weight = getattr(TrainingSettings(save=3.0), name)
        given, raw = column(tmp_path, f"reward/{name}"), column(tmp_path, f"reward_raw/{name}")
        assert given == pytest.approx([weight * one for one in raw], rel=1e-5)
        shown = [event.value for event in board.Scalars(f"reward_share/{name}")]
        assert shown == pytest.approx(column(tmp_path, f"reward_share/{name}"), abs=1e-6)
    shares = [sum(float(row[f"reward_share/{name}"]) for name in names) for row in rows(tmp_path)]
    assert shares == pytest.approx([1, 1], abs=1e-5)
    said = capsys.readouterr().err.splitlines()
    (line,) = (one for one in said if one.startswith("rewards a step: "))
    first = column(tmp_path, "reward/velocity_to_ball")[0]
    assert f"velocity_to_ball {first:.4g} (" in line and all(f"{name} " in line for name in names)
    # What cars do is there for both sides.
    assert 0 < column(tmp_path, "policy/boost")[0] <= 100
    assert 0 < column(tmp_path, "opponents/speed")[0] <= 2300
    events = ("touches", "flips", "shots", "saves", "goals")
    for side in ("policy", "opponents"):
        assert all(column(tmp_path, f"{side}/{event}_per_minute")[0] >= 0 for event in events)
    assert {"episode_seconds", "truncated_share"} <= set(rows(tmp_path)[0])


def report(
    progress: Progress, steps: int, own: float | None = None, more: Mapping[str, float] | None = None
) -> None:
    counts = {"episode_reward": 0.0, "finished_cars": 0.0, **(more or {})}
    counts |= {} if own is None else {"metric/my, own": own, "metric_count/my, own": 1.0}
    progress.report(steps, 1, counts, dict.fromkeys(COLUMNS[COLUMNS.index("elo") :], 1.0))


def test_rewards_that_gave_nothing_have_no_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {"given/touch": 0.0, "raw/touch": 0.0, "size/touch": 0.0, "rewarded": 8.0}
    with Progress(small_settings(tmp_path), 0, quiet=False, rewards=True) as progress:
        report(progress, 1, more=nothing)
    assert "rewards a step: touch 0 (-; unweighted 0)" in capsys.readouterr().err.splitlines()


def test_a_column_begins_with_the_first_line_that_has_it(tmp_path: Path) -> None:
    with Progress(small_settings(tmp_path), 0, quiet=True) as progress:
        report(progress, 1)
        report(progress, 2, own=5)
        report(progress, 3)
    np.testing.assert_array_equal(column(tmp_path, "metrics/my__own"), [np.nan, 5, np.nan])
    with Progress(small_settings(tmp_path), 2, quiet=True) as progress:  # resumed from its second line
        report(progress, 3, own=7)
    np.testing.assert_array_equal(column(tmp_path, "metrics/my__own"), [np.nan, 5, 7])
    assert column(tmp_path, "steps") == [1, 2, 3]
    assert [path.name for path in tmp_path.glob("progress*")] == ["progress.csv"]


def test_a_table_that_cannot_be_widened_ends_no_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Progress(small_settings(tmp_path), 0, quiet=False) as progress:
        report(progress, 1)
        with monkeypatch.context() as patch:
            patch.setattr("rlgym_bridge.training.runs.curve_files.mend_table", refuse)
            for steps in (2, 3):
                report(progress, steps, own=5)
        report(progress, 4, own=6)
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot be written" in line]
    assert len(said) == 1 and "No space left on device; training goes on" in said[0]
    assert column(tmp_path, "steps") == [1, 4]


def board_steps(out: Path) -> list[int]:
    return [event.step for event in board_of(out).Scalars("entropy")]


def test_tensorboard_begins_anew_where_its_folder_is_deleted(tmp_path: Path) -> None:
    with Progress(small_settings(tmp_path), 0, quiet=True) as progress:
        report(progress, 1)
        assert board_steps(tmp_path) == [1]  # at once
        shutil.rmtree(tmp_path / "tensorboard")
        for steps in (2, 3):
            report(progress, steps)
    assert board_steps(tmp_path) == [2, 3] and column(tmp_path, "steps") == [1, 2, 3]


def test_tensorboard_forgets_what_a_resumed_run_does_anew(tmp_path: Path) -> None:
    for first, until in ((0, 5), (3, 4)):
        with Progress(small_settings(tmp_path), first, quiet=True) as progress:
            for steps in range(first + 1, until + 1):
                report(progress, steps)
    assert board_steps(tmp_path) == [1, 2, 3, 4]


@contextmanager
def longest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond some bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_once_and_leaves_whole_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(small_settings(tmp_path), 0, quiet=False) as progress:
        report(progress, 1)
        with longest_file(2_000):
            for steps in range(2, 60):
                report(progress, steps)
        report(progress, 60)
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot be written" in line]
    for line, name in zip(sorted(said), ("progress.csv", "tensorboard"), strict=True):
        assert line.startswith(str(tmp_path / name)) and "File too large; training goes on" in line
    written = column(tmp_path, "steps")
    assert written[0] == 1 and written[-1] == 60 and written == sorted(written)
    assert board_steps(tmp_path)[-1] == 60


# --- Weights & Biases ------------------------------------------------------------------------


def settings(out: Path, **changes: Any) -> TrainingSettings:
    return small_settings(out, **{"wandb": "my-bots", "steps": 2 * BATCH} | changes)


class Service:
    """The part of the package that is called; it notes what it is given."""

    def __init__(self, error: Exception | None = None, log: Any = None) -> None:
        self.begun: list[dict[str, Any]] = []
        self.sent: list[dict[str, float]] = []
        self.finished, self._error, self._log = 0, error, log or self.sent.append

    def Settings(self, **given: Any) -> dict[str, Any]:
        return given

    def init(self, **given: Any) -> Any:
        if self._error is not None:
            raise self._error
        self.begun.append(given)
        return SimpleNamespace(define_metric=lambda *_, **__: None, log=self._log, finish=self._finish)

    def _finish(self) -> None:
        self.finished += 1


@pytest.fixture
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Install a service in place of the package; a test may give its arguments."""
    one = Service(**getattr(request, "param", {}))
    monkeypatch.setitem(sys.modules, "wandb", one)  # type: ignore[arg-type]
    return one


def test_a_run_and_its_resumption_are_one_run_there(tmp_path: Path, service: Service) -> None:
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


def test_a_rating_of_the_ruler_is_there_as_in_tensorboard(tmp_path: Path, service: Service) -> None:
    row = {"rating": 700.0, "low": 600.0, "high": 800.0, "win_rate/chaser": 0.25}
    with Progress(settings(tmp_path), 0, quiet=True) as progress:
        progress.show_rating((BATCH, row))
    (sent,) = service.sent
    assert sent == {f"ruler/{name}": value for name, value in row.items()} | {"steps": BATCH}
    board = board_of(tmp_path)
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


@pytest.mark.parametrize("there", [None, SimpleNamespace()])  # not installed; a folder of that name
def test_a_package_that_is_not_there_is_named_at_once(
    there: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", there)
    with pytest.raises(
        SettingsError, match='wandb is "my-bots", and the package wandb is not installed: pip'
    ):
        main(settings(tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_package_that_lacks_another_one_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb.py").write_text("import nobody_has_it\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(SettingsError, match=r"wandb cannot be imported \(No module named 'nobody_has_it'\)"):
        main(settings(tmp_path / "run"), quiet=True)


@pytest.mark.parametrize("service", [{"error": RuntimeError("no key\nmore")}], indirect=True)
def test_who_is_not_signed_in_is_told_what_to_do(tmp_path: Path, service: Service) -> None:
    with pytest.raises(
        SettingsError, match=r"begins there \(no key\): `wandb login` signs in, and WANDB_MODE"
    ):
        main(settings(tmp_path), quiet=True)


@pytest.mark.parametrize("service", [{"log": lambda _: 1 / 0}], indirect=True)
def test_a_service_that_fails_ends_no_training(
    tmp_path: Path, service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(settings(tmp_path)).steps == 2 * BATCH
    said = [line for line in capsys.readouterr().err.splitlines() if "wandb" in line]
    assert said == ["wandb does not take the curves: division by zero; training goes on"]
