"""A run's table after a crash."""

import os
from pathlib import Path

import pytest

from rlgym_bridge.training.runs.curve_files import mend_table

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
