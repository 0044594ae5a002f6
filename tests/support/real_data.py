"""Recordings of the real game: they do not belong to this project, and tests of them are skipped without."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COLUMNS = ROOT / "docs" / "columns"
REAL_DATA = Path(os.environ.get("RLGYM_BRIDGE_REAL_DATA", ROOT.parent / "shared" / "real-data"))


def real(name: str) -> Path:
    """Return a file of the recordings; the test is skipped where it is absent."""
    path = REAL_DATA / name
    if not path.is_file():
        pytest.skip(f"no {path}; RLGYM_BRIDGE_REAL_DATA says where recordings of the real game are")
    return path
