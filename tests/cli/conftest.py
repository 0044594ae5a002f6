"""What holds for tests of the command line."""

from pathlib import Path

import pytest

from tests.foreign_bots import ENV
from tests.policy_folders import make_module


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the module `my_env` of `tests/foreign_bots.py`."""
    make_module(tmp_path, monkeypatch, "my_env", ENV)
    monkeypatch.chdir(tmp_path)
    return tmp_path
