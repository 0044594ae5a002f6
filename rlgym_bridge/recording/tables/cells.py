"""The cells of a text file of numbers: CSV with commas, tabs or spaces, or JSON lines."""

import csv
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.user_input.text_files import parse_json, read_bytes

MOST_BYTES: Final = 1 << 29
"""Longest table that is read.

JSON lines of two cars and a ball have about 900 bytes each: 80 minutes at 120 lines a second.
"""

_MOST_LINES: Final = 2_000_000  # 4.6 hours at 120 lines a second
_MOST_LINE: Final = 1 << 20  # characters; a line is one moment of a match
_WORDS: Final = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Cells:
    """Rows of text, or of JSON values."""

    source: Path
    lines: Sequence[int]  # number of each row in the file, from 1
    rows: Sequence[Any]  # of each row its cells, or the object that it is
    # of the columns; empty without a header. None for JSON lines, whose rows have their own
    names: Sequence[str] | None
    notes: Sequence[str] = ()  # what reading it brought up: sentences for people

    def numbers(self, column: int | str, what: str) -> np.ndarray:
        """Return a column as numbers, `(rows,)` float64; true is 1, false is 0. `what` is for errors.

        A column is an index from 0 or a name; in JSON lines a path such as `cars[0].position.x`. Raises
        ValueError if there is no such column, or it holds something that is no finite number.
        """
        found = np.empty(len(self.rows))
        if self.names is None:
            path = _path_of(str(column))
            for row, cells in enumerate(self.rows):
                where = f"{self.place(row)}, column {column} ({what})"
                found[row] = _number(_value_at(cells, str(column), path, where), where, False)
            return found
        at = self._index(column, what)
        for row, cells in enumerate(self.rows):
            where = f"{self.place(row)}, column {column} ({what})"
            found[row] = _number(cells[at], where, row == 0 and not self.names)
        return found

    def place(self, row: int) -> str:
        """Return where a row stands, for errors: the file, and the row's number in it."""
        return f"{self.source} {'line' if self.names is None else 'row'} {self.lines[row]}"

    def where(self, chosen: np.ndarray) -> "Cells":
        """Return the rows that are chosen, `(rows,)` bool."""
        at = np.flatnonzero(chosen)
        return replace(self, lines=[self.lines[row] for row in at], rows=[self.rows[row] for row in at])

    def _index(self, column: int | str, what: str) -> int:
        assert self.names is not None  # JSON lines have no indices
        width = len(self.rows[0])
        if isinstance(column, str):
            if column not in self.names:
                held = ", ".join(self.names) if self.names else "no header"
                hint = _semicolons(held)
                raise ValueError(f"{self.source} has no column {column!r} ({what}); it has {held}{hint}")
            if (count := self.names.count(column)) > 1:
                raise ValueError(
                    f"{self.source} has {count} columns {column!r} ({what}), expected one: name it by its "
                    "index from 0 in the map"
                )
            return self.names.index(column)
        if not 0 <= column < width:
            hint = _semicolons(*self.rows[0]) or ": does this map belong to this table?"
            raise ValueError(
                f"{self.source} has {width} columns (0 to {width - 1}), expected a column {column} ({what})"
                + hint
            )
        return column


def read_cells(path: Path, header: bool) -> Cells:
    """Read a table, without blank lines and lines that begin with `#`; its first line shows its format.

    `header` says that the first line names the columns; JSON lines have none. Raises OSError if the file
    cannot be read; ValueError if it is no file, too long, no text, holds no rows, or its rows have different
    widths.
    """
    text = _text(path)
    lines = _lines(path, text)
    numbered = [
        (number, line.strip(" "))
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if numbered and numbered[0][1].startswith("{"):
        objects, notes = _read_objects(path, numbered, text.endswith("\n"))
        return Cells(path, [number for number, _ in numbered][: len(objects)], objects, None, notes)
    names: list[str] = []
    if header and numbered:
        number, line = numbered.pop(0)
        names = [name.strip().strip('"') for name in _split(path, number, line)]
    if not numbered:
        raise ValueError(f"{path} holds no rows, expected a table of numbers")
    rows = [_split(path, number, line) for number, line in numbered]
    width = len(names or rows[0])
    for (number, _), row in zip(numbered, rows, strict=True):
        if len(row) != width:
            raise ValueError(
                f"{path} row {number} has {len(row)} columns, expected {width} as before it"
                + _semicolons(*row, *names)
            )
    return Cells(path, [number for number, _ in numbered], rows, names)


def _text(path: Path) -> str:
    content = read_bytes(path, MOST_BYTES, "a table")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text (byte {error.start}), expected CSV or JSON lines") from error


def _lines(path: Path, text: str) -> list[str]:
    if (count := text.count("\n")) > _MOST_LINES:
        raise ValueError(
            f"{path} has {count:,} lines, expected a table of {_MOST_LINES:,} at most: cut it in parts"
        )
    lines = text.split("\n")
    longest = max(map(len, lines))
    if longest > _MOST_LINE:
        raise ValueError(
            f"{path} has a line of {longest:,} characters, expected {_MOST_LINE:,} at most: one moment of a "
            "match in each line"
        )
    return lines


def _split(path: Path, number: int, line: str) -> list[str]:
    """Return a line's cells; those in quotes without them."""
    for separator in (",", "\t"):
        if separator in line and '"' in line:
            try:
                return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
            except csv.Error as error:
                raise ValueError(f"{path} row {number} cannot be read: {error}") from error
        if separator in line:
            return line.split(separator)
    return [cell.strip('"') for cell in line.split()]


def _semicolons(*cells: str) -> str:
    """Return a hint, for the end of an error, where cells look as if semicolons parted them."""
    if not any(";" in cell for cell in cells):
        return ""
    return "; it has semicolons, expected commas, tabs or spaces between columns, and points in numbers"


def _number(cell: Any, where: str, perhaps_header: bool) -> float:
    try:
        if not isinstance(cell, str | int | float):
            raise ValueError
        number = _WORDS.get(cell.strip().lower()) if isinstance(cell, str) else None
        number = float(cell) if number is None else number
    except (ValueError, OverflowError):
        shown = cell if isinstance(cell, str) else json.dumps(cell)
        hint = _semicolons(shown)
        if perhaps_header and not hint:
            hint = "; if this row names the columns, the map needs header = true"
        raise ValueError(f"{where}: {shown.strip()[:40]!r}, expected a number{hint}") from None
    if not math.isfinite(number):
        raise ValueError(f"{where}: {number}, expected a finite number")
    return number


_INDEX: Final = re.compile(r"\[(\d+)\]")
_SHOWN: Final = 60  # letters of a line or a value in an error


def _read_objects(
    path: Path, numbered: Sequence[tuple[int, str]], ended: bool
) -> tuple[list[dict[str, Any]], list[str]]:
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


def _path_of(column: str) -> list[str]:
    """Return the keys and indices that lead to a column: `cars[0].input.jump` is cars, 0, input, jump."""
    return _INDEX.sub(r".\1", column).strip(".").split(".")


def _value_at(row: dict[str, Any], column: str, path: Sequence[str], where: str) -> Any:
    """Return what an object holds under a column's name, or at the end of a column's path."""
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
    if isinstance(value, dict):
        return f"there is no {part!r} in {inside}, which has {', '.join(map(str, value))[:200] or 'nothing'}"
    if isinstance(value, list):
        count = "1 entry" if len(value) == 1 else f"{len(value)} entries"
        return f"there is no {part!r} in {inside}, a list of {count}, expected the same ones in each line"
    return f"there is no {part!r} in {inside}, which is {_short(json.dumps(value))}, expected an object"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
