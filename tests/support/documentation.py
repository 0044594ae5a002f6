"""Reads the pages of the documentation: README, docs, and the shipped policy's README.

A comment above a block of commands or Python says how it is tested:

    <!-- run -->            runs in `test_run.py`, in a folder that has what it needs
    <!-- run: own -->       the same, in the folder of a run with modules of its own
    <!-- tested: PATH -->   runs in another test, in small
    <!-- not run: WHY -->   is parsed alone
    <!-- slow: WHY -->      Python that runs in a slow test
    <!-- file: WHY -->      a part of a file that another block holds whole

Python without a comment runs, all of a page as one program. A block whose first line is a comment with a
file's name alone, such as `# my_parts.py`, is that file.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "bot" / "policy" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<comment>[^\n]*?) -->\n *)?"
    r"```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r"# ([\w-]+\.(?:py|toml))\n")


class Block(NamedTuple):
    """A block of code.

    Attributes:
        page: Path from the root of the project.
        line: Its first line on the page.
        language: Such as `sh`; empty where the page does not say.
        kind: The word of the comment above it, such as `not run`; empty without one.
        detail: What the comment says after it.
        text: The code.
    """

    page: str
    line: int
    language: str
    kind: str
    detail: str
    text: str

    @property
    def file(self) -> str | None:
        """Name of the file that the block is; None where it is none."""
        match = _FILE.match(self.text)
        return match[1] if match else None

    @property
    def name(self) -> str:
        """Place of the block, for messages."""
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of some languages on all pages."""
    return [block for page in PAGES for block in _blocks(page) if block.language in languages]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        kind, _, detail = (match["comment"] or "").partition(": ")
        indent = match["indent"]
        code = "".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start("text")) + 1
        yield Block(page.relative_to(ROOT).as_posix(), line, match["language"], kind, detail, code)


def prose(page: Path) -> str:
    """Return a page without its blocks of code and comments."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def command_lines(block: Block) -> list[str]:
    """Return the commands of a block, without comments and prompts."""
    lines = (re.sub(r"(^|\s+)#.*", "", line).strip() for line in block.text.splitlines())
    return [line for line in lines if line]
