"""Skip these tests by the names of their files where the module is not built."""

from importlib.util import find_spec
from pathlib import Path

import pytest


class _Skipped(pytest.Module):
    """A file of tests that is not imported."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        pytest.skip(f"{self.path.name}: rocketsim_batch is not installed: make native")


def _is_there() -> bool:
    try:
        return find_spec("rocketsim_batch") is not None
    except ValueError:  # it is marked as missing
        return False


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if _is_there():
        return None
    return _Skipped.from_parent(parent, path=module_path)
