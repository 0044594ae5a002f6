"""Tests keep to a few rules of their own: where helpers live, and what names are like."""

import re
from pathlib import Path

from tests.support.imported_modules import imports

HERE = Path(__file__).parent
HOMES = {"support", "packet_checker", "parity", "data"}
"""Folders whose modules are no tests: helpers, programs, and files that tests read."""

TEXTS = {path.relative_to(HERE).as_posix(): path.read_text("utf-8") for path in HERE.rglob("test_*.py")}
LONGEST_NAME = 59


def test_no_test_module_imports_another() -> None:
    suspects = [name for name, text in TEXTS.items() if re.search(r"import\b.*\btest_|tests\S*\.test_", text)]
    found = {(name, one) for name in suspects for one in imports(HERE / name) if one.startswith("tests.")}
    assert not [(name, one) for name, one in found if ".test_" in one]


def test_every_helper_lives_in_a_folder_for_helpers() -> None:
    others = [
        module.relative_to(HERE) for module in HERE.rglob("*.py")
        if not module.name.startswith("test_") and module.name not in {"__init__.py", "conftest.py"}
    ]  # fmt: skip
    assert not [module.as_posix() for module in others if module.parts[0] not in HOMES]


def test_names_of_tests_are_short() -> None:
    names = {name for text in TEXTS.values() for name in re.findall(r"^ *def (test_\w+)", text, re.MULTILINE)}
    assert not [name for name in names if len(name) > LONGEST_NAME]
