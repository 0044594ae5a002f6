"""Everything that the documentation names is there: pages, pictures, files, modules, tests."""

import re
from pathlib import Path

import pytest

from tests.support.documentation import PAGES, ROOT, blocks, prose

TO_COME = {"bot/dialect.toml"}
"""Files that users make."""
ROOMS = ("rlgym_bridge", "training", "tests", "tools", "bot", "docs", "lab", "native")
DESIGN = ROOT / "docs" / "design"
NOT_IN_THE_SITE = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "native" / "README.md",
    *sorted((ROOT / "lab").glob("*.md")),
]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site and GitHub make them of plain words."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def is_module(word: str) -> bool:
    path = ROOT / word.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def is_name(word: str) -> bool:
    """Return whether a module defines or imports a name; nothing is imported, for that takes Ray seconds."""
    module, _, name = word.rpartition(".")
    path = ROOT / module.replace(".", "/")
    files = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    return any(re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) for file in files)


def leads_nowhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page if not path else (page.parent / path).resolve()
    if "reference/commands/" in target.as_posix():  # made from the parsers
        return False
    return not target.exists() or bool(anchor and anchor not in anchors(target))


def test_links_and_pictures_lead_to_files_and_headings() -> None:
    links = [
        (page, link)
        for page in (*PAGES, *NOT_IN_THE_SITE)
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page))
    ]
    assert len(links) > 100 and not [one for one in links if leads_nowhere(*one)]


@pytest.mark.parametrize("page", [*PAGES, *NOT_IN_THE_SITE[:2]], ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_modules_and_tests_on_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for word in re.findall(r"`([\w./-]+)`", text):
        if word.startswith(tuple(f"{room}/" for room in ROOMS)) and "NUMBER" not in word:
            assert word in TO_COME or (ROOT / word).exists(), word
        elif re.fullmatch(r"(rlgym_bridge|training|tests|tools)(\.\w+)+", word) and not word.endswith(".py"):
            assert is_module(word) or is_name(word), word
        elif page.parent == DESIGN and re.fullmatch(r"\w+\.py", word):  # beside another, or in a folder
            assert any(path for room in ROOMS for path in (ROOT / room).rglob(word)), word
    # in commands, and in comments that name the tests of a block
    for word in re.findall(r"(?<![\w./-])(?:tests|tools|native|training)/[\w./-]*\w", text):
        assert (ROOT / word).exists(), word
    for word in re.findall(r"python -m ((?:tools|training)[.\w]*)", text):
        assert is_module(word.rstrip(".")), word


def test_python_on_pages_imports_names_that_exist() -> None:
    for block in blocks("python"):
        imports = re.findall(r"^from (rlgym_bridge[.\w]*) import (.+)$", block.text, re.MULTILINE)
        for module, names in imports:
            for name in re.findall(r"\w+", names.split("#")[0].partition(" as ")[0]):
                word = f"{module}.{name}"
                assert is_module(word) or is_name(word), f"{block.name} imports {word}"


def test_tests_that_comments_in_the_lab_name_exist() -> None:
    texts = [page.read_text(encoding="utf-8") for page in NOT_IN_THE_SITE]
    named = re.findall(r"tests/[\w./]+\.py", "".join(re.findall(r"<!-- (.*?) -->", "".join(texts))))
    assert named and not [path for path in named if not (ROOT / path).is_file()]


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    written = [path.relative_to(ROOT / "docs").as_posix() for path in PAGES if ROOT / "docs" in path.parents]
    assert not [path for path in written if f": {path}\n" not in listed]


@pytest.mark.parametrize(
    ("folder", "shown_by"), [("docs", PAGES), ("lab", NOT_IN_THE_SITE)], ids=["docs", "lab"]
)
def test_every_picture_is_shown_somewhere(folder: str, shown_by: list[Path]) -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in shown_by)
    pictures = [path for kind in ("png", "svg") for path in (ROOT / folder).rglob(f"*.{kind}")]
    assert pictures and not [path.name for path in pictures if path.name not in shown]


def test_the_laboratory_lists_its_files() -> None:
    said = (ROOT / "lab" / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in (ROOT / "lab").iterdir()} - {"README.md"}
    assert files and not [
        name for name in sorted(files) if f"({name})" not in said and f"`{name}`" not in said
    ]


def test_the_readme_is_an_entrance() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:45]
    for word in ("py -3.11 -m venv", "make match", "## Your bot in Rocket League", "RLBot v5"):
        assert any(word in line for line in first_screen), word


@pytest.mark.parametrize(
    ("pages", "most"),
    [
        ([ROOT / "README.md"], 500),
        ([page for page in PAGES if DESIGN not in page.parents and ROOT / "docs" in page.parents], 18_000),
        ([*DESIGN.glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "native" / "README.md"], 5_000),
    ],
    ids=["README", "users", "contributors"],
)
def test_pages_are_short(pages: list[Path], most: int) -> None:
    texts = [re.sub("<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL) for page in pages]
    assert 0 < sum(len(text.split()) for text in texts) <= most


def test_rooms_of_the_package_are_on_the_map() -> None:
    said = (ROOT / "docs" / "design" / "map.md").read_text(encoding="utf-8")
    picture = said.split("```text\n", 1)[1].split("```", 1)[0]
    shown = {word for line in picture.splitlines() for word in re.split(" {3,}", line)[0].split()}
    rooms = {path.parent.name for path in (ROOT / "rlgym_bridge").glob("*/__init__.py")}
    modules = {path.name for path in (ROOT / "rlgym_bridge").glob("*.py")} - {"__init__.py"}
    assert shown == rooms | modules | {"training"}


def test_each_word_of_the_glossary_stands_there_once() -> None:
    said = (ROOT / "docs" / "design" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^([^|\n]+) \| ", said, re.MULTILINE)[1:]
    assert len(words) > 15 and len(set(words)) == len(words) and words == sorted(words, key=str.lower)


def test_twenty_questions_have_a_thread_and_a_short_answer() -> None:
    page = (ROOT / "docs" / "start" / "questions.md").read_text(encoding="utf-8")
    asked = re.findall(r"^\*\*\[.+\]\((\S+)\)\*\*\n((?:.+\n)+)", page, re.MULTILINE)
    assert len(asked) == 20 == len({thread for thread, _ in asked}) and len(page.split()) <= 900
    for thread, answer in asked:
        assert re.fullmatch(r"https://github\.com/[\w-]+/[\w-]+/(issues|pull)/\d+", thread), thread
        assert len(answer.split()) <= 40, answer
