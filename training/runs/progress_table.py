"""Trim progress.csv to the checkpoint that a run is resumed from, and keep which settings changed.

A table that lacks a new column is put aside as progress.1.csv, then progress.2.csv.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.text_files import read_bytes

CHANGES_FILE: Final = "changes.csv"
"""Beside a table: which settings became others, and from which agent steps on."""

_OLDER: Final = re.compile(r"progress\.(\d{1,9})\.csv")
_MOST_BYTES: Final = 1 << 28  # 400,000 iterations with 60 columns: five billion steps by default


def mend_table(path: Path, columns: Sequence[str], steps: int, more: Sequence[str] = ()) -> list[str]:
    """Make a table end where a run goes on, and return the columns of the lines to come.

    Lines that are damaged (a crash cut them off) or later than the checkpoint are taken out. A table that
    lacks a column is renamed to `progress.1.csv`, `progress.2.csv`, ...; as it is, if more than its last line
    is damaged, as where another program has written it.

    Args:
        path: The table; it need not be there.
        columns: Those that every table has; the first holds the steps.
        steps: Of the checkpoint.
        more: Columns that not all lines have: nan in those that were written without.

    Raises:
        ValueError: It is no file, or has more than 256 MiB.
    """
    text = _read(path) if path.exists() else ""
    rows = _rows(text)
    head = next(rows, None)
    if head is None:
        return [*columns, *more]
    aside = head[: len(columns)] != list(columns)
    every = list(rows)
    kept = [row for row in every if _is_whole(row, len(head)) and (aside or float(row[0]) <= steps)]
    new = [] if aside else [name for name in more if name not in head]
    lines = ([*head, *new], *([*row, *["nan"] * len(new)] for row in kept))
    mended = "".join(",".join(row) + "\n" for row in lines)
    if mended != text and not (aside and len(every) > len(kept) + 1):
        write_durably(path.parent, {path.name: mended.encode()})
    if aside:
        number = 1 + max((number for number, _ in _older(path.parent)), default=0)
        path.rename(path.with_suffix(f".{number}.csv"))
        return [*columns, *more]
    return [*head, *new]


def add_changes(run: Path, steps: int, changed: Mapping[str, str]) -> None:
    """Add settings that changed to those of a run's `CHANGES_FILE`.

    Args:
        run: Folder of the run.
        steps: Agent steps from which on they act.
        changed: How, by name.
    """
    _write_changes(run, [*read_changes(run), *((steps, f"{name} {how}") for name, how in changed.items())])


def forget_changes(run: Path, steps: int) -> None:
    """Take out changes at as many agent steps or more: the run goes on from there."""
    found = read_changes(run)
    kept = [change for change in found if change[0] < steps]
    if len(kept) < len(found):
        _write_changes(run, kept)


def read_changes(run: Path) -> list[tuple[int, str]]:
    """Return the changes of a run's settings: agent steps, and `goal 10.0 -> 5.0`, but for damaged lines."""
    path = run / CHANGES_FILE
    found = []
    for line in _read(path).splitlines()[1:] if path.is_file() else ():
        steps, _, text = line.partition(",")
        if steps.isascii() and steps.isdecimal() and len(steps) < 16:
            found.append((int(steps), text))
    return found


def _write_changes(run: Path, changes: Sequence[tuple[int, str]]) -> None:
    lines = ["steps,change", *(f"{steps},{text}" for steps, text in changes)]
    write_durably(run, {CHANGES_FILE: "".join(f"{line}\n" for line in lines).encode()})


def _older(run: Path) -> list[tuple[int, Path]]:
    """Return the tables of a run that were put aside, each with its number."""
    files = run.iterdir() if run.is_dir() else ()
    return [(int(found[1]), path) for path in files if (found := _OLDER.fullmatch(path.name))]


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line; training writes numbers alone, so that none has a comma in it."""
    for line in io.StringIO(text):
        if row := line.rstrip("\r\n"):
            yield row.split(",")


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
