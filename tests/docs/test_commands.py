"""Every command line in the documentation is one that its program takes."""

import argparse
import re
import shlex
import tomllib
from typing import Any

import pytest

from rlgym_bridge.cli.commands import make_parser
from tests.support.documentation import PAGES, ROOT, Block, blocks, command_lines, prose

COMMAND_BLOCKS = blocks("sh", "bat", "")
ELSEWHERE = {
    "tensorboard", "export", "ray", "py -3.11 -m venv", "for seed in", "echo", "timeout", "done",
    "script", "cd", "pyinstaller", ".venv\\Scripts\\activate",
}  # fmt: skip
"""Beginnings of lines for programs of others."""
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def parser_of(name: str) -> argparse.ArgumentParser:
    parser = make_parser(name, f"rlgym-bridge {name}")
    parser.exit_on_error = False
    return parser


def check(line: str) -> None:
    """Raise where a command line is none that its program takes."""
    line = re.sub(r"^\.venv\\Scripts\\(?!activate)", "", line)
    line = re.sub(r"^[A-Z_]+=\S+ ", "", line)
    words = shlex.split(line)
    if words[0] == "rlgym-bridge":
        if words[1:] not in (["--help"], ["COMMAND", "--help"]) and "--help" not in words[2:]:
            parser_of(words[1]).parse_args(words[2:])
    elif words[0] == "make":
        assert {word for word in words[1:] if "=" not in word} <= TARGETS
    elif words[:2] == ["pip", "install"] or words[:4] == ["python", "-m", "pip", "install"]:
        named = {name for group in re.findall(r"\.\[([\w,]+)\]", line) for name in group.split(",")}
        assert named <= set(EXTRAS), f"pyproject.toml has no extra {named - set(EXTRAS)}"
    elif words[:2] == ["python", "-m"]:
        assert (ROOT / f"{words[2].replace('.', '/')}.py").is_file() or words[2] == "pytest" or (
            ROOT / words[2].replace(".", "/") / "__main__.py"
        ).is_file(), words[2]  # fmt: skip
    elif words[0] == "pytest":
        for word in words[1:]:
            assert "/" not in word or (ROOT / word).exists(), word
    else:
        assert any(line.startswith(begin) for begin in ELSEWHERE), f"nobody parses {line!r}"


@pytest.mark.parametrize("block", [b for b in COMMAND_BLOCKS if b.language], ids=lambda block: block.name)
def test_every_command_line_of_a_block_is_taken(block: Block) -> None:
    for line in command_lines(block):
        try:
            check(line)
        except (SystemExit, argparse.ArgumentError) as error:
            pytest.fail(f"{block.name}: {line}: {error}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_prose_and_their_options_exist(page: Any) -> None:
    for line in re.findall(r"`([^`\n]+)`", prose(page)):
        words = line.split()
        if words[:1] == ["rlgym-bridge"] and len(words) > 1 and words[1] != "COMMAND":
            known = parser_of(words[1])._option_string_actions
            assert {word for word in words if word.startswith("-")} <= set(known), line
        elif (
            words[0] in ("make", "pytest") or words[:2] == ["python", "-m"] or words[:2] == ["pip", "install"]
        ):
            check(line)


def test_every_block_of_commands_says_how_it_is_tested() -> None:
    silent = [b.name for b in COMMAND_BLOCKS if b.kind not in ("run", "tested", "not run")]
    assert not silent
    assert not [b.name for b in COMMAND_BLOCKS if b.kind == "not run" and not b.detail]


def test_the_tests_that_comments_name_are_there() -> None:
    for block in blocks("sh", "bat", "python"):
        for path, _, name in (part.partition("::") for part in re.findall(r"tests/[\w/.:]+", block.detail)):
            file = ROOT / path.rstrip(".")
            assert file.exists(), f"{block.name}: {path}"
            assert not name or f"def {name}(" in file.read_text(encoding="utf-8"), f"{block.name}: {name}"
