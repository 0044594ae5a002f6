"""Export a recording as a table of numbers: CSV or Parquet."""

import csv
from pathlib import Path

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.state import CAR_FIELDS, MATCH_FIELDS, Field
from rlgym_bridge.user_input.extras import explain_install


def _columns_of(recording: Recording) -> dict[str, np.ndarray]:
    """Return the columns of the table by name, each `(rows,)`, in the units of `MatchState`."""
    state = recording.state
    found = {
        "tick": recording.tick,
        "seconds": recording.seconds,
        "segment": recording.segment,
        "ball_shown": recording.ball_shown,
    }
    for field in MATCH_FIELDS:
        _add(found, field.name, getattr(state, field.name), field)
    for row, agent in enumerate(state.agents):
        found[f"{agent}_shown"] = recording.car_shown[:, row]
        for field in CAR_FIELDS:
            _add(found, f"{agent}_{field.name}", getattr(state, "car_" + field.name)[:, row], field)
    return found


def _add(found: dict[str, np.ndarray], name: str, values: np.ndarray, field: Field) -> None:
    if not field.shape:
        found[name] = values
        return
    parts = CONTROL_NAMES if field.name == "controls" else range(len(values.reshape(len(values), -1).T))
    for part, column in zip(parts, values.reshape(len(values), -1).T, strict=True):
        found[f"{name}_{part}"] = column


def write_csv(recording: Recording, path: Path) -> None:
    """Write the table as CSV, with a line of names."""
    table = _columns_of(recording)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        lists = [_short(one) for one in table.values()]
        writer.writerows(zip(*lists, strict=True))


def _short(column: np.ndarray) -> list[object]:
    """Return a column's values with the digits that they have."""
    if column.dtype == np.float32:
        return [f"{one:.9g}" for one in column.tolist()]
    return list((column.astype(np.int8) if column.dtype == bool else column).tolist())


def write_parquet(recording: Recording, path: Path) -> None:
    """Write the table as Parquet; raises ImportError without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"Parquet needs pyarrow: {explain_install('view')}; --csv does without") from error
    table = pyarrow.table({name: np.ascontiguousarray(one) for name, one in _columns_of(recording).items()})
    with path.open("wb") as file:  # by its name pyarrow would remove what it cannot write to
        pyarrow.parquet.write_table(table, file)
