"""The cells of a text file of numbers: CSV with commas, tabs or spaces, or JSON lines."""

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

_WORDS: Final = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Cells:
    """Rows of text, or of JSON values.

    Attributes:
        source: The file, for errors.
        lines: Number of each row in the file, from 1.
        rows: Of each row its cells, or the object that it is.
        names: Of the columns; empty without a header. None for JSON lines, whose rows have their own.
    """

    source: Path
    lines: Sequence[int]
    rows: Sequence[Any]
    names: Sequence[str] | None

    def numbers(self, column: int | str, what: str) -> np.ndarray:
        """Return a column as numbers, `(rows,)` float64; true is 1, false is 0.

        Args:
            column: Its index from 0, or its name; in JSON lines a key, or keys and indices joined by dots
                (`car.position.0`).
            what: What it stands for, for errors.

        Raises:
            ValueError: There is no such column, or it holds something that is no finite number.
        """
        at = column if self.names is None else self._index(column, what)
        found = np.empty(len(self.rows))
        for row, (line, cells) in enumerate(zip(self.lines, self.rows, strict=True)):
            where = f"{self.source} row {line}, column {column} ({what})"
            cell = _value(cells, str(at), where) if self.names is None else cells[at]
            found[row] = _number(cell, where, row == 0 and not self.names)
        return found

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
            return self.names.index(column)
        if not 0 <= column < width:
            hint = _semicolons(*self.rows[0]) or ": does this map belong to this table?"
            raise ValueError(
                f"{self.source} has {width} columns (0 to {width - 1}), expected a column {column} ({what})"
                + hint
            )
        return column


def read_cells(path: Path, header: bool) -> Cells:
    """Read a table; the format is known from its first line.

    Blank lines are passed over, and lines that begin with `#`.

    Args:
        path: The file.
        header: Whether the first line names the columns; JSON lines have none.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no text, holds no rows, or its rows have different widths.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text (byte {error.start}), expected CSV or JSON lines") from error
    numbered = [
        (number, line.strip(" \r"))
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if numbered and numbered[0][1].startswith("{"):
        return Cells(path, [number for number, _ in numbered], _objects(path, numbered), None)
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


def _split(path: Path, number: int, line: str) -> list[str]:
    """Return a line's cells; those in quotes without them.

    Raises:
        ValueError: A cell in quotes is too long.
    """
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


def _objects(path: Path, numbered: Sequence[tuple[int, str]]) -> list[dict[str, Any]]:
    found = []
    for number, line in numbered:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} row {number} is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise ValueError(
                f"{path} row {number} is {line[:40]}, expected a JSON object as in the first row"
            )
        found.append(value)
    return found


def _value(row: Any, key: str, where: str) -> Any:
    """Return what a JSON object holds under a key, or under keys joined by dots."""
    if isinstance(row, dict) and key in row:
        return row[key]
    value = row
    for part in key.split("."):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            held = ", ".join(map(str, value)) if isinstance(value, dict) else json.dumps(value)
            raise ValueError(f"{where}: there is no {part!r}; there is {held[:200]}")
    return value


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
