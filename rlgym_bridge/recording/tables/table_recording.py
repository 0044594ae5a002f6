"""Read tables of numbers as recordings: rows are moments, or trials of which each becomes a segment."""

from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge.game import BLUE, BOOST_PER_SECOND, CONTROL_NAMES, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase, holes, jumps, motions_of, set_bodies
from rlgym_bridge.recording.tables.cells import Cells, read_cells
from rlgym_bridge.recording.tables.column_map import Body, ColumnMap, Number, TrialColumns, read_columns
from rlgym_bridge.rotations import from_euler, from_quaternions
from rlgym_bridge.state import MatchState

_MOST_TRIAL_TICKS: Final = 120_000  # of a trial: a thousand seconds
_LEAD: Final = 12  # rows before the start: inputs of a bot act within 0.1 s
_BOOST: Final = CONTROL_NAMES.index("boost")
_TANK: Final = "boost_amount"
_MOST_ROWS: Final = 4_000_000  # of all trials, about 2 GB


def _read_trials(cells: Cells, trial: TrialColumns, inputs: Inputs) -> Recording:
    """Return the trials of a table, each as long as it lasted, tick by tick."""
    ticks = _whole(cells, _take(cells, trial.ticks, "ticks"), "ticks")
    held = _whole(cells, _take(cells, trial.held, "held"), "held")
    some = ticks > 0
    if not some.any():
        raise ValueError(f"{cells.source} has trials of 0 ticks alone, expected one that lasts")
    none = int((~some).sum())
    cells, ticks, held = cells.where(some), ticks[some], held[some]
    lead = _LEAD if inputs is Inputs.SENT else 0
    lengths = lead + ticks + 1
    if lengths.sum() > _MOST_ROWS:
        raise ValueError(f"{cells.source} has trials of {lengths.sum()} ticks, expected {_MOST_ROWS} at most")
    end = np.cumsum(lengths) - 1
    start = end - ticks
    segment = np.repeat(np.arange(len(ticks)), lengths)
    tick = np.arange(len(segment))  # one trial after the other

    blue = int(trial.start.team == BLUE)
    state = MatchState(blue, 1 - blue, len(segment))
    _fill_car(state, end, 0, cells, trial.end)
    _fill_car(state, start, 0, cells, trial.start)  # it says team and hitbox
    state.frame[:] = tick
    began = np.repeat(start, lengths)
    holding = (tick >= began) & (tick < began + np.repeat(held, lengths))
    for name, value in trial.always.items():
        state.car_controls[:, 0, CONTROL_NAMES.index(name)] = value
    for name, value in trial.while_held.items():
        state.car_controls[holding, 0, CONTROL_NAMES.index(name)] = value
    _fill_tank(state, trial, began, np.repeat(end, lengths))
    shown = np.zeros((len(segment), 1), bool)
    shown[start] = shown[end] = True
    return Recording(
        source=cells.source.name,
        state=state,
        tick=tick,
        seconds=tick * TICK_SECONDS,
        segment=segment.astype(np.int32),
        ball_shown=np.zeros(len(segment), bool),
        car_shown=shown,
        inputs=inputs,
        notes=[*cells.notes, *_notes(trial, none)],
    )


def _fill_tank(state: MatchState, trial: TrialColumns, began: np.ndarray, ended: np.ndarray) -> None:
    """Write the boost left into all rows; `began` and `ended` are the rows `(rows,)` of each one's trial."""
    told = [_TANK in body.state for body in (trial.start, trial.end)]
    if not any(told):
        return
    tank = state.car_boost_amount[:, 0]
    burnt = np.cumsum(state.car_controls[:, 0, _BOOST] > 0) * BOOST_PER_SECOND * TICK_SECONDS
    row = np.maximum(np.arange(len(tank)), began)
    if all(told):
        share = (row - began) / (ended - began)
        tank[:] = tank[began] + share * (tank[ended] - tank[began])
    elif told[0]:
        tank[:] = tank[began] - (burnt[row] - burnt[began])
    else:
        tank[:] = tank[ended] + (burnt[ended] - burnt[row])
    np.clip(tank, 0.0, 100.0, out=tank)


def _notes(trial: TrialColumns, none: int) -> list[str]:
    notes = ["each row of the table is a trial, which shows the car at its start and its end alone"]
    if none:
        notes.append(f"rows dropped whose trial lasts 0 ticks: {none}")
    if "forward_speed" in trial.end.vectors:
        notes.append("the last velocity is its part along the nose: nothing else was measured")
    if "angular_velocity" not in trial.end.vectors:
        notes.append("the last angular velocity was not measured: it is 0")
    return notes


def _whole(cells: Cells, values: np.ndarray, what: str) -> np.ndarray:
    """Return whole numbers as such, `(rows,)` int64."""
    odd = np.flatnonzero((values != np.round(values)) | (values < 0) | (values > _MOST_TRIAL_TICKS))
    if odd.size:
        raise ValueError(
            f"{cells.place(odd[0])}, {what}: {values[odd[0]]:g}, expected a whole number "
            f"from 0 to {_MOST_TRIAL_TICKS}"
        )
    return values.astype(np.int64)


_RESTING: Final = 20.0  # uu/s: a car that stands on its wheels is recorded with 8.3 upwards
_NEXT_TICK: Final = 0.75  # ticks after a row from which on the next is of another tick: one in ms has 0.96
_MOST_TICKS: Final = 2**31 - 1  # a state's frame is an int32


def read_table(path: Path, columns: Path | ColumnMap) -> Recording:
    """Read a table whose rows are moments, or trials: CSV with commas, tabs or spaces, or JSON lines.

    In JSON lines the columns are the fields of an object, also nested ones, named by dotted paths. A row that
    says nothing new (every body and all controls as in the row before) is dropped. One that repeats a moving
    body's state keeps its controls, and does not show the body. Holes, times that fall and jumps begin a new
    segment; the notes count all of it. Raises OSError, or ValueError, which names file, row and column, if
    the map is wrong or does not fit, or a cell is no finite number.
    """
    columns = columns if isinstance(columns, ColumnMap) else read_columns(columns)
    cells = read_cells(path, columns.header)
    with np.errstate(over="ignore", invalid="ignore"):  # what becomes too large is refused by its cell
        if columns.trial is not None:
            return _read_trials(cells, columns.trial, columns.inputs)
        return _recording(cells, columns, *_times(cells, columns))


def _recording(
    cells: Cells, columns: ColumnMap, tick: np.ndarray, seconds: np.ndarray, clock: TimeBase
) -> Recording:
    state = _state(cells, columns)
    ball_again, car_again = _repeats(state)
    nothing_new = ball_again & car_again.all(-1) & _as_before(state.car_controls)
    kept, tick = rise(np.flatnonzero(~nothing_new), tick, seconds)
    ball_stale = ball_again & (np.linalg.norm(state.ball_linear_velocity, axis=-1) > _RESTING)
    car_stale = car_again & (np.linalg.norm(state.car_linear_velocity, axis=-1) > _RESTING)
    ball_shown = (columns.ball is not None) & ~ball_stale[kept]
    car_shown = ~car_stale[kept]
    stale = int(ball_stale[kept].sum() + car_stale[kept].sum())

    state = state.select(kept)
    seconds = seconds[kept]
    state.frame[:] = tick
    backwards = np.diff(seconds, prepend=seconds[:1]) < 0
    hole = holes(seconds)
    jump = jumps(seconds, motions_of(state, ball_shown, car_shown)) & ~hole & ~backwards
    repeated = int(nothing_new.sum())
    counts = {
        "rows dropped that repeat the row before": repeated,
        "rows dropped in the tick of the row before": len(nothing_new) - repeated - len(kept),
        "times that a row repeats a moving body, and holds controls alone": stale,
        "new segments where the time falls": int(backwards.sum()),
        "new segments, after holes in the time or where nothing moved": int(hole.sum()),
        "new segments where a body is too far from where it was": int(jump.sum()),
    }
    return Recording(
        source=cells.source.name,
        state=state,
        tick=tick,
        seconds=seconds,
        segment=np.cumsum(backwards | hole | jump).astype(np.int32),
        ball_shown=ball_shown,
        car_shown=car_shown,
        clock=clock,
        inputs=columns.inputs,
        inputs_recorded=np.array(
            [[name in car.controls for name in CONTROL_NAMES] for car in columns.cars], bool
        ).reshape(-1, 8),
        notes=[*cells.notes, *(f"{text}: {count}" for text, count in counts.items() if count)],
    )


def _state(cells: Cells, columns: ColumnMap) -> MatchState:
    blue = sum(car.team == BLUE for car in columns.cars)
    rows = np.arange(len(cells.rows))
    state = MatchState(blue, len(columns.cars) - blue, len(rows))
    if columns.ball is not None:
        _fill_ball(state, rows, cells, columns.ball)
    for number, car in enumerate(columns.cars):
        _fill_car(state, rows, number, cells, car)
    return state


def _times(cells: Cells, columns: ColumnMap) -> tuple[np.ndarray, np.ndarray, TimeBase]:
    """Return ticks `(rows,)` int64, seconds `(rows,)` float64, and what they are worth."""
    assert columns.time is not None  # else they are trials
    name, number = columns.time
    values = _take(cells, number, name)
    if name == "tick":
        odd = np.flatnonzero((values != np.round(values)) | (np.abs(values) > _MOST_TICKS))
        if odd.size:
            raise ValueError(
                f"{cells.place(odd[0])}, tick: {values[odd[0]]:g}, expected a whole "
                "number; is it a time in seconds?"
            )
        return values.astype(np.int64), values / TICKS_PER_SECOND, TimeBase.TICKS
    seconds = np.arange(len(values)) * number.add if name == "dt" else values
    ticks = (seconds - seconds[0]) * TICKS_PER_SECOND
    far = np.flatnonzero(np.abs(ticks) > _MOST_TICKS)
    if far.size:
        raise ValueError(f"{cells.place(far[0])}, {name}: {seconds[far[0]]:g} s, more than a match can last")
    return np.round(ticks).astype(np.int64), seconds, TimeBase.SECONDS


def _repeats(state: MatchState) -> tuple[np.ndarray, np.ndarray]:
    """Return where the ball `(rows,)`, and each car `(rows, cars)`, is just as in the row before."""
    names = ("position", "rotation", "linear_velocity", "angular_velocity")
    ball = np.ones(state.matches, bool)
    cars = np.ones((state.matches, state.layout.cars), bool)
    for name in names:
        ball &= _as_before(getattr(state, "ball_" + name))
        for car in range(state.layout.cars):
            cars[:, car] &= _as_before(getattr(state, "car_" + name)[:, car])
    return ball, cars


def _as_before(values: np.ndarray) -> np.ndarray:
    flat = values.reshape(len(values), -1)
    same = np.zeros(len(flat), bool)
    same[1:] = (flat[1:] == flat[:-1]).all(-1)
    return same


def rise(rows: np.ndarray, tick: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return those of some rows in which time has gone on, or falls, and their ticks: `(kept,)` int64 each.

    Times that are rounded or run fast put two rows of different ticks into one: the second gets the next.
    `tick`, rounded, and `seconds` are those of all rows, `(n,)`.
    """
    kept: list[int] = []
    ticks: list[int] = []
    for row, own, time in zip(rows.tolist(), tick[rows].tolist(), seconds[rows].tolist(), strict=True):
        if kept and time >= seconds[kept[-1]]:
            if own <= ticks[-1] and (time - seconds[kept[-1]]) * TICKS_PER_SECOND < _NEXT_TICK:
                continue
            own = max(own, ticks[-1] + 1)
        kept.append(row)
        ticks.append(own)
    return np.array(kept, int), np.array(ticks, np.int64)


_LIMITS: Final = {
    "position": (10_000.0, "uu"),
    "velocity": (7_000.0, "uu/s"),
    "forward_speed": (7_000.0, "uu/s"),
    "angular_velocity": (20.0, "rad/s"),
}
"""Longest vectors of a game: beyond them a column or a scale is not what the map says."""
_UNEVEN: Final = 0.05  # of a matrix: recorded rotations are rounded


def _fill_ball(state: MatchState, rows: np.ndarray, cells: Cells, body: Body) -> None:
    """Write the ball of a table into the matches `rows`, `(table rows,)` int64, of a state."""
    state.ball_known[rows] = 1
    set_bodies(state, "ball", rows, _vectors(cells, body))


def _fill_car(state: MatchState, rows: np.ndarray, car: int, cells: Cells, body: Body) -> None:
    """Write a car and its controls into the matches `rows`; on the ground all four wheels touch."""
    state.car_player_id[:, car], state.car_team[:, car] = car, body.team
    state.car_hitbox[:, car] = body.hitbox
    set_bodies(state, "car", (rows, car), _vectors(cells, body))
    for name, number in body.state.items():
        values = _take(cells, number, f"{name} of {body.name}")
        if name == "boost_amount":
            _check(cells, values, f"{name} of {body.name}", 0, 100, "boost")
        getattr(state, "car_" + name)[rows, car] = values
        if name == "on_ground":
            state.car_wheels_with_contact[rows, car] = values[:, None]
    for name, number in body.controls.items():
        values = _take(cells, number, f"{name} of {body.name}")
        _check(cells, values, f"{name} of {body.name}", -1, 1, "of a control")
        state.car_controls[rows, car, CONTROL_NAMES.index(name)] = values


def _take(cells: Cells, number: Number, what: str) -> np.ndarray:
    if number.column is None:
        return np.full(len(cells.rows), number.add)
    return cells.numbers(number.column, what) * number.scale + number.add


def _vectors(cells: Cells, body: Body) -> dict[str, np.ndarray]:
    """Return position, velocity, angular velocity `(rows, 3)` and rotation `(rows, 3, 3)`, 0 where absent."""
    found: dict[str, np.ndarray] = {}
    for name, numbers in body.vectors.items():
        values = np.stack([_take(cells, one, f"{name} of {body.name}") for one in numbers], -1)
        if name in _LIMITS:
            most, unit = _LIMITS[name]
            _check(cells, np.linalg.norm(values, axis=-1), f"{name} of {body.name}", 0, most, unit)
        found[name] = values
    rows = len(cells.rows)
    rotation = _rotation(cells, body, found) if rows else np.zeros((0, 3, 3))
    if "forward_speed" in found:
        found["velocity"] = rotation[..., 0] * found["forward_speed"]
    names = ("position", "velocity", "angular_velocity")
    return {name: found.get(name, np.zeros((rows, 3))) for name in names} | {"rotation": rotation}


def _rotation(cells: Cells, body: Body, vectors: dict[str, np.ndarray]) -> np.ndarray:
    if "euler" in vectors:
        return from_euler(vectors["euler"] * (np.pi / body.half_turn))
    if "quaternion" in vectors:
        lengths = np.linalg.norm(vectors["quaternion"], axis=-1)
        _check(cells, lengths, f"quaternion of {body.name}", 1 - _UNEVEN, 1 + _UNEVEN, "long")
        return from_quaternions(vectors["quaternion"])
    if "matrix" not in vectors:
        return np.zeros((len(cells.rows), 3, 3))
    matrix = vectors["matrix"].reshape(-1, 3, 3)
    uneven = np.abs(np.swapaxes(matrix, -1, -2) @ matrix - np.eye(3)).max((-1, -2))
    _check(cells, uneven, f"matrix of {body.name}: M^T M - 1", 0, _UNEVEN, "")
    return matrix


def _check(cells: Cells, values: np.ndarray, what: str, low: float, high: float, unit: str) -> None:
    wrong = np.flatnonzero(~((values >= low - 1e-3) & (values <= high + 1e-3)))
    if wrong.size:
        row = int(wrong[0])
        unit = f" {unit}" if unit else ""
        raise ValueError(
            f"{cells.place(row)}, {what}: {values[row]:g}{unit}, expected {low:g} to "
            f"{high:g}; is it the right column, and its scale right?"
        )
