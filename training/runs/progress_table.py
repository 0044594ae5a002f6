"""Trim progress.csv to the checkpoint that a run is resumed from, and read it."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rlgym_bridge.user_input.text_files import read_bytes

_MOST_BYTES: Final = 1 << 27  # 400,000 iterations, or five billion steps of the default settings


def mend_table(path: Path, columns: Sequence[str], steps: int) -> None:
    """Make a table end where a run goes on.

    Lines that are damaged (a crash cut them off) or later than the checkpoint are taken out. A table with
    other columns is renamed to `progress.1.csv`, `progress.2.csv`, ...

    Args:
        path: The table; it need not be there.
        columns: Those of the lines to come; the first holds the steps.
        steps: Of the checkpoint.

    Raises:
        ValueError: It is no file, or has more than 128 MiB.
    """
    if not path.exists():
        return
    text = _read(path)
    rows = list(csv.reader(io.StringIO(text)))
    if rows and rows[0] != list(columns):
        number = 1
        while path.with_suffix(f".{number}.csv").exists():
            number += 1
        path.rename(path.with_suffix(f".{number}.csv"))
        return
    kept = rows[:1] + [row for row in rows[1:] if _is_whole(row, len(columns)) and float(row[0]) <= steps]
    mended = "".join(",".join(row) + "\n" for row in kept)
    if mended != text:
        fresh = path.with_suffix(".tmp")
        fresh.write_text(mended, encoding="utf-8")
        fresh.replace(path)


def read_table(path: Path, names: Sequence[str]) -> dict[str, list[float]]:
    """Return some columns of a table.

    Raises:
        ValueError: It is missing, lacks one of them, has no line or over 128 MiB; the message says where.
    """
    try:
        text = _read(path)
    except FileNotFoundError as error:
        raise ValueError(
            f"{path.parent} has no {path.name}, expected the folder of a training run"
        ) from error
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows:
        raise ValueError(f"{path} has no lines yet")
    found: dict[str, list[float]] = {name: [] for name in names}
    for number, row in enumerate(rows, 2):
        for name in names:
            try:
                found[name].append(float(row[name]))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"{path}, line {number}: {name} is {row.get(name)!r}, expected a number"
                ) from error
    return found


def _read(path: Path) -> str:
    """Return the text of a table, damaged or not."""
    return read_bytes(path, _MOST_BYTES, "the table of a training run").decode("utf-8", errors="replace")


def _is_whole(row: Sequence[str], width: int) -> bool:
    try:
        return len(row) == width and all(map(_is_number, row))
    except ValueError:
        return False


def _is_number(text: str) -> bool:
    float(text)
    return True
