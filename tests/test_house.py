"""Hold what CONTRIBUTING.md asks of the code; `python -m tools.house` lists what falls short."""

import re
from functools import cache
from pathlib import Path
from typing import Final

from tools import house

CHECKOUT: Final = Path(__file__).parents[1]


@cache
def sources() -> list[house.Source]:
    """Return all modules, read once and by these tests alone."""
    return house.read_sources(CHECKOUT)


LONG_FUNCTIONS: Final = {
    "training/imitate.py:imitate": "half of it is its docstring",
}
"""Functions that may be longer than 60 lines, each with its why."""

LEAST_SHARE_OF_SHAPES: Final = 0.95


CYCLES: Final = {
    frozenset(
        {"policy.numpy_network", "policy.torch_network"}
    ): "a class of torch is loaded where one is named",
    frozenset({"sim.rocketsim2", "sim.rocketsim3", "sim.simulator"}): "one of two simulators is loaded",
}
"""Modules of `rlgym_bridge` that may import each other, each group with its why."""


def test_a_module_name_belongs_to_one_file_of_a_room() -> None:
    assert not house.find_reused_files(sources())


def test_modules_import_in_one_direction() -> None:
    allowed = {frozenset(f"rlgym_bridge.{name}" for name in cycle) for cycle in CYCLES}
    assert house.find_cycles(sources()) <= allowed


def test_a_class_name_belongs_to_one_class() -> None:
    assert not house.find_reused_classes(sources())


def test_docstrings_do_not_begin_with_a_question_word() -> None:
    assert not house.find_question_docstrings(sources())


def test_functions_have_at_most_60_lines() -> None:
    long = house.find_long_functions(sources())
    assert set(long) == set(LONG_FUNCTIONS), "a new one, or one that is short by now"


def test_public_array_functions_state_their_shapes() -> None:
    functions = house.find_array_functions(sources())
    silent = [function.where for function in functions if not function.states_shape]
    assert 1 - len(silent) / len(functions) >= LEAST_SHARE_OF_SHAPES, "\n".join(silent)


def test_commit_hooks_have_the_versions_of_constraints() -> None:
    hooks = (CHECKOUT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    constraints = (CHECKOUT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    versions = set(re.findall(r"ruff==[\w.]+", hooks))
    assert len(versions) == 1 and versions <= set(constraints), versions


def test_workflows_pin_every_action_to_a_commit() -> None:
    workflows = [path.read_text(encoding="utf-8") for path in (CHECKOUT / ".github/workflows").glob("*.yml")]
    actions = [action for text in workflows for action in re.findall(r"uses: (\S+)", text)]
    assert actions and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in actions), actions
