"""JSON lines as rows of a table: one object a line, its fields named by dotted paths."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.user_input.text_files import parse_json

_INDEX: Final = re.compile(r"\[(\d+)\]")
_SHOWN: Final = 60  # letters of a line or a value in an error


def read_objects(
    path: Path, numbered: Sequence[tuple[int, str]], ended: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Read JSON lines.

    A recorder that was stopped leaves its last line cut off: that line is dropped, and a note says so.

    Args:
        path: The file, for errors.
        numbered: Its lines and their numbers, from 1; one or more.
        ended: Whether the file ends with an end of line.

    Returns:
        The object of each line, and sentences on what was dropped.

    Raises:
        ValueError: A line is no JSON, is nested too deeply, has too long a whole number, or is no object.
    """
    found: list[dict[str, Any]] = []
    for number, line in numbered:
        try:
            value = parse_json(line, unique_keys=not found)  # recorders write all lines alike
        except ValueError as error:
            if number == numbered[-1][0] and not ended and found:
                return found, [f"{path.name} breaks off in line {number}: that line is dropped"]
            raise ValueError(
                f"{path} line {number} is {_short(line)}, expected one whole JSON object on each line: "
                f"{error}"
            ) from error
        if not isinstance(value, dict):
            raise ValueError(
                f"{path} line {number} is {_short(line)}, expected a JSON object as in the first line"
            )
        found.append(value)
    return found, []


def path_of(column: str) -> list[str]:
    """Return the keys and indices that lead to a column: `cars[0].input.jump` is cars, 0, input, jump."""
    return _INDEX.sub(r".\1", column).strip(".").split(".")


def value_at(row: dict[str, Any], column: str, path: Sequence[str], where: str) -> Any:
    """Return what an object holds under a column's name, or at the end of a column's path.

    Args:
        row: The object of a line.
        column: The column, as the map names it.
        path: Of that column, see `path_of`.
        where: File, line and column, for errors.

    Raises:
        ValueError: The object has no such field.
    """
    if column in row:
        return row[column]
    value: Any = row
    for depth, part in enumerate(path):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            inside = ".".join(path[:depth]) or "the object"
            raise ValueError(f"{where}: {_lack(value, part, inside)}")
    return value


def _lack(value: Any, part: str, inside: str) -> str:
    """Return a sentence on what a value lacks."""
    if isinstance(value, dict):
        return f"there is no {part!r} in {inside}, which has {', '.join(map(str, value))[:200] or 'nothing'}"
    if isinstance(value, list):
        count = "1 entry" if len(value) == 1 else f"{len(value)} entries"
        return f"there is no {part!r} in {inside}, a list of {count}, expected the same ones in each line"
    return f"there is no {part!r} in {inside}, which is {_short(json.dumps(value))}, expected an object"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
