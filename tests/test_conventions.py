"""Tests keep to a few rules of their own: where helpers live, what names are like, what is not read."""

import ast
from pathlib import Path

import pytest

from tests.support.imported_modules import imports

HERE = Path(__file__).parent
HOMES = {"support", "packet_checker", "parity", "data"}
"""Folders whose modules are no tests: helpers, programs, and files that tests read."""

MODULES = sorted(HERE.rglob("test_*.py"))
LONGEST_NAME = 59


def place_of(module: Path) -> str:
    return module.relative_to(HERE).as_posix()


each_module = pytest.mark.parametrize("module", MODULES, ids=place_of)


@each_module
def test_no_test_module_imports_another(module: Path) -> None:
    names = {name for name in imports(module) if name.startswith("tests.")}
    assert not [name for name in names if any(part.startswith("test_") for part in name.split("."))]


def test_every_helper_lives_in_a_folder_for_helpers() -> None:
    others = [
        module.relative_to(HERE) for module in HERE.rglob("*.py")
        if not module.name.startswith("test_") and module.name not in {"__init__.py", "conftest.py"}
    ]  # fmt: skip
    assert not [module.as_posix() for module in others if module.parts[0] not in HOMES]


@each_module
def test_names_of_tests_are_short(module: Path) -> None:
    functions = [node.name for node in ast.walk(ast.parse(module.read_text("utf-8")))
                 if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]  # fmt: skip
    assert not [name for name in functions if len(name) > LONGEST_NAME]
