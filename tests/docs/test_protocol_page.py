"""The page on the protocol and the tests of its statements name each other."""

import ast
import re

from tests.support.documentation import ROOT

PAGE = ROOT / "docs/reference/protocol.md"
SOURCES = {"core", "schema", "interface", "wiki", "measured", "replays", "inferred"}
ROW = re.compile(
    r"^`(?P<id>[a-z]+\.[a-z0-9-]+)` \| [^|]+?\.(?: \((?P<source>\w+)\))?(?: \| (?P<instead>[^|]+))?$",
    re.MULTILINE,
)
"""A statement with its source, core where it names none; `instead` is what the match server does."""


def rows() -> dict[str, str | None]:
    """Return what the match server does instead of each statement, by its id; None where it does the same."""
    return {row["id"]: row["instead"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def marks() -> set[str]:
    """Return the ids that tests are marked with; nothing is imported."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "mark.protocol(" in text:
            found |= {one for node in ast.walk(ast.parse(text)) for one in ids_of(node)}
    return found


def ids_of(node: ast.AST) -> list[str]:
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.protocol"):
        return []
    return [str(ast.literal_eval(word)) for word in node.args]


def test_every_statement_that_holds_has_a_test() -> None:
    marked = marks()
    holding = {one for one, instead in rows().items() if instead is None}
    assert sorted(holding - marked) == []


def test_every_mark_names_a_statement_of_the_page() -> None:
    assert sorted(marks() - set(rows())) == []


def test_each_row_has_an_id_of_its_own_a_statement_and_a_source() -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"`\w+\.[\w-]+`", line)]
    found = [ROW.match(line) for line in lines]
    assert [line for line, row in zip(lines, found, strict=True) if row is None] == []
    ids = [row["id"] for row in found if row is not None]
    assert len(ids) == len(set(ids)) > 100
    assert {row["source"] or "core" for row in found if row is not None} == SOURCES


def test_the_last_table_has_all_that_the_match_server_lacks() -> None:
    before, last = PAGE.read_text(encoding="utf-8").split("\n## Not here\n")
    assert all(row["instead"] is None for row in ROW.finditer(before))
    assert {row["id"] for row in ROW.finditer(last)} == {one for one, instead in rows().items() if instead}
