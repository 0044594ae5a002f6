"""Fixtures for tests of the command line."""

from pathlib import Path

import pytest

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
