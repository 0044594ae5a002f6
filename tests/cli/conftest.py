"""Fixtures for tests of the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from tests.support.foreign_env import ENV
from tests.support.policy_folders import make_module


@pytest.fixture(autouse=True)
def matches_have_short_countdowns(short_countdowns: None) -> None:
    """Let matches of commands in this process begin soon; those in processes of their own begin as always."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the module `my_env` of `tests/support/foreign_env.py`."""
    make_module(tmp_path, monkeypatch, "my_env", ENV)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return what runs a command that ends with status 2 and one line of error, and returns this line."""

    def run(*words: str | Path) -> str:
        capsys.readouterr()
        try:
            code: object = main([*map(str, words)])
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr().err
        is_usage = said.startswith("usage: ")  # argparse's error
        assert code == 2 and (is_usage or (said.startswith("error: ") and said.count("\n") == 1)), said
        return said

    return run
