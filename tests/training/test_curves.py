"""Curves of runs, from their tables."""

from pathlib import Path

import pytest

from rlgym_bridge.cli import run_command
from rlgym_bridge.training.curves import read_curve
from rlgym_bridge.training.runs.progress import COLUMNS


def run(folder: Path, touches: list[float]) -> Path:
    folder.mkdir()
    lines = [",".join(COLUMNS)]
    for i, value in enumerate(touches, 1):
        row = dict.fromkeys(COLUMNS, 1.0) | {"steps": 1000 * i, "touches_per_car_minute": value}
        lines.append(",".join(str(row[name]) for name in COLUMNS))
    (folder / "progress.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_a_curve_is_made_of_means_over_equal_segments(tmp_path: Path) -> None:
    curve = read_curve(run(tmp_path / "a", [0, 2, 4, 6, 8, 10]), points=3)
    assert curve.steps.tolist() == [2000, 4000, 6000]
    assert curve.columns["touches_per_car_minute"].tolist() == [1, 5, 9]
    assert curve.steps_to(5) == 4000
    assert curve.steps_to(9.5) == float("inf")


def test_tables_that_were_put_aside_come_first(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    for number, (name, first) in enumerate({"progress.2.csv": 0, "progress.10.csv": 1, "": 2}.items()):
        table = run(tmp_path / str(number), [number] * 6) / "progress.csv"
        head, *lines = table.read_text().splitlines()
        folder.mkdir(exist_ok=True)
        (folder / (name or "progress.csv")).write_text("\n".join([head, *lines[first:]]) + "\n")
    curve = read_curve(folder, points=6)
    assert curve.steps.tolist() == [1000, 2000, 3000, 4000, 5000, 6000]
    assert curve.columns["touches_per_car_minute"].tolist() == [0, 1, 2, 2, 2, 2]


def test_the_command_draws_and_names_the_worst_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [run(tmp_path / name, values) for name, values in (("good", [1, 9]), ("bad", [1, 2, 3]))]
    picture = tmp_path / "curves.png"
    assert run_command("curves", [*map(str, runs), "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out.splitlines()
    assert "bad" in said[2] and said[2].endswith("never")
    assert "good" in said[3] and said[3].endswith("2,000 steps")


def test_a_folder_without_a_table_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("curves", [str(tmp_path)]) == 2
    assert f"{tmp_path} has no progress.csv" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["progress.csv", "picture", "picture.doc"])
def test_a_picture_of_unknown_kind_is_refused_before_the_work(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("curves", [str(tmp_path / "missing"), "--out", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert (
        f"--out is {tmp_path / name}, expected a file whose name ends with one of" in said and ".png" in said
    )


def test_a_picture_and_json_in_one_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "a.png")
    assert run_command("curves", [str(run(tmp_path / "a", [1, 2])), "--out", file, "--json", file]) == 2
    assert "is given for two outputs" in capsys.readouterr().err


def test_no_output_replaces_a_table_that_was_put_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path / "a", [1, 2])
    older = folder / "progress.1.csv"
    older.write_text((folder / "progress.csv").read_text())
    assert run_command("curves", [str(folder), "--json", str(older)]) == 2
    assert "belongs to a policy folder or a training run" in capsys.readouterr().err


@pytest.mark.parametrize("touches", ["nan", "inf", "-1"])
def test_touches_that_no_run_can_reach_are_refused(
    touches: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("curves", [str(tmp_path), f"--touches={touches}"]) == 2
    assert "--touches is" in capsys.readouterr().err
