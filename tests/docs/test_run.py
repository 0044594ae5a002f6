"""Blocks of the documentation that take seconds run as they stand there."""

import shutil
from pathlib import Path

import pytest

from tests.support.documentation import Block, blocks, command_lines
from tests.support.documentation_folders import run_command, run_program
from tests.support.rlgym_worlds import serving

QUICK = ("docs/train/settings.md",)
"""Pages whose examples run by default; those of the others take minutes together."""

RUN = [block for block in blocks("sh") if block.kind == "run"]
PYTHON = [block for block in blocks("python") if block.file is None]
PROGRAMS = sorted({block.page for block in PYTHON if block.kind in ("", "run", "fixture")})


def slow_unless(quick: bool) -> list[pytest.MarkDecorator]:
    return [] if quick else [pytest.mark.slow]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block, marks=slow_unless(block.page.startswith(QUICK) and block.detail != "own"), id=block.name
        )
        for block in RUN
    ],
)
def test_a_block_of_commands_runs(block: Block, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if block.detail == "view":
        pytest.importorskip("rerun")
    made: Path = request.getfixturevalue("own" if block.detail == "own" else "reader")
    folder = tmp_path / "folder"
    shutil.copytree(made, folder)
    for line in command_lines(block):
        program, _, words = line.partition(" ")
        assert program == "rlgym-bridge", f"{block.name}: only our commands run in tests: {line}"
        run_command(folder, words)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=slow_unless(not page.startswith("docs/gap/"))) for page in PROGRAMS]
)
def test_the_python_of_a_page_runs_as_one_program(page: str, reader: Path, tmp_path: Path) -> None:
    on_page = [block for block in PYTHON if block.page == page and block.kind in ("", "run", "fixture")]
    (tmp_path / "example.py").write_text("\n\n".join(block.text for block in on_page), encoding="utf-8")
    for name in ("match.mcap", "bot"):
        (tmp_path / name).symlink_to(reader / name)
    if not any(block.kind == "fixture" for block in on_page):
        run_program(tmp_path, "example.py")
        return
    with serving() as (host, port):
        run_program(tmp_path, "example.py", RLBOT_SERVER_IP=host, RLBOT_SERVER_PORT=str(port))


def test_python_that_does_not_run_says_why() -> None:
    kinds = {"", "run", "fixture", "tested", "slow", "file", "not run"}
    assert not [block.name for block in PYTHON if block.kind not in kinds]
    assert not [
        block.name for block in PYTHON if block.kind in ("not run", "slow", "file") and not block.detail
    ]
