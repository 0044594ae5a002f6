"""The page on the protocol and the tests of its statements name each other."""

import ast
import re
from pathlib import Path

from tests.support.documentation import ROOT

PAGE = ROOT / "docs/reference/protocol.md"
ROW = re.compile(
    r"^\| `(?P<id>[a-z]+\.[a-z0-9-]+)` \| .+ \| (?P<source>[^|]+) \| (?P<here>[^|]+) \|$", re.MULTILINE
)
SOURCES = {"core", "schema", "interface", "wiki", "measured", "replays", "inferred"}


def rows() -> dict[str, str]:
    """Return what the page says of each statement here, by its id."""
    return {row["id"]: row["here"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


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
    holding = {one for one, here in rows().items() if not here.startswith("not")}
    assert sorted(holding - marked) == []


def test_every_mark_names_a_statement_of_the_page() -> None:
    assert sorted(marks() - set(rows())) == []


def test_each_row_has_an_id_of_its_own_a_source_and_a_verdict() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    found = [ROW.match(line) for line in lines]
    assert [line for line, row in zip(lines, found, strict=True) if row is None] == []
    ids = [row["id"] for row in found if row is not None]
    assert len(ids) == len(set(ids)) > 100
    assert {row["source"] for row in found if row is not None} <= SOURCES
    assert [row["id"] for row in found if row and not re.match(r"yes\b|not: .", row["here"])] == []
