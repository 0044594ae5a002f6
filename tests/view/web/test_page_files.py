"""The page's files: small, and complete without the internet."""

import re
from pathlib import Path
from typing import Final

import pytest

from rlgym_bridge.view import web

PAGE: Final = Path(web.__file__).parent / "page"
MODULES: Final = sorted(PAGE.glob("*.js"))
MOST_LINES: Final = 900


def test_there_are_at_most_900_lines_of_javascript() -> None:
    lines = [line.strip() for module in MODULES for line in module.read_text("utf-8").splitlines()]
    assert len([line for line in lines if line and not line.startswith("//")]) <= MOST_LINES


@pytest.mark.parametrize("file", sorted(PAGE.iterdir()), ids=lambda file: file.name)
def test_a_file_of_the_page_names_no_other_machine(file: Path) -> None:
    text = file.read_text("utf-8")
    assert not re.search(r"https?:|\bwss?:|\bimport\(|url\(|@import", text)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_a_module_writes_no_html_and_runs_no_text(module: Path) -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function", module.read_text("utf-8")
    )


def test_every_module_is_loaded_by_another_or_by_the_page() -> None:
    texts = [file.read_text("utf-8") for file in (*MODULES, PAGE / "index.html")]
    loaded = {name for text in texts for name in re.findall(r'(?:from "\./|src="page/)([\w.]+)"', text)}
    assert loaded == {module.name for module in MODULES}
