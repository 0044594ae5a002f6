"""Read tables with one trial in each row; each trial becomes a segment of its own.

    [trial]
    ticks = 2                           # from the start to the end
    held = 3                            # rows with `while_held`, from the start on
    always = { throttle = 1 }           # controls of all rows
    while_held = { steer = 1 }          # in those rows, in place of what `always` says of them

    [trial.start]                       # the car, as in [[car]]
    position = [{ value = 0 }, { value = -3000 }, { value = 17.01 }]
    velocity = [{ value = 0 }, 0, { value = 0 }]

    [trial.end]                         # and in the last row
    position = [5, { column = 6, add = -3000 }, { value = 17.01 }]

The rows between start and end hold controls alone. Inputs that are sent act late: before the start there are
then rows with the controls of `always`. What `start` or `end` does not give is 0. Trials of 0 ticks are left
out. A `boost_amount` of `start` falls by what boosting burns. Given in `end` too, it changes evenly between
the two: the same value in both is a tank that stays as full, as with unlimited boost.
"""

from typing import Final

import numpy as np

from rlgym_bridge.game import BLUE, BOOST_PER_SECOND, CONTROL_NAMES, TICK_SECONDS
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.recording.tables.cells import Cells
from rlgym_bridge.recording.tables.column_map import TrialColumns
from rlgym_bridge.recording.tables.to_state import fill_car, take
from rlgym_bridge.state import MatchState

_MOST_TICKS: Final = 120_000  # of a trial: a thousand seconds
_LEAD: Final = 12  # rows before the start: inputs of a bot act within 0.1 s
_BOOST: Final = CONTROL_NAMES.index("boost")
_TANK: Final = "boost_amount"
_MOST_ROWS: Final = 4_000_000  # of all trials, about 2 GB


def read_trials(cells: Cells, trial: TrialColumns, inputs: Inputs) -> Recording:
    """Return the trials of a table, each as long as it lasted, tick by tick.

    Raises:
        ValueError: A number of ticks is not a whole one, all are 0, or there are too many rows.
    """
    ticks = _whole(cells, take(cells, trial.ticks, "ticks"), "ticks")
    held = _whole(cells, take(cells, trial.held, "held"), "held")
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
    fill_car(state, end, 0, cells, trial.end)
    fill_car(state, start, 0, cells, trial.start)  # it says team and hitbox
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
        clock=TimeBase.TICKS,
        inputs=inputs,
        inputs_recorded=np.ones((1, 8), bool),
        notes=[*cells.notes, *_notes(trial, none)],
    )


def _fill_tank(state: MatchState, trial: TrialColumns, began: np.ndarray, ended: np.ndarray) -> None:
    """Write how much boost is left into all rows: a row with 0 would let go of the boost button.

    Args:
        state: The state of all rows; its boost is known in the rows in which trials start and end.
        trial: Which of the two the map gives.
        began: `(rows,)` the start of each row's own trial.
        ended: `(rows,)` the end of each row's own trial.
    """
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
    odd = np.flatnonzero((values != np.round(values)) | (values < 0) | (values > _MOST_TICKS))
    if odd.size:
        raise ValueError(
            f"{cells.place(odd[0])}, {what}: {values[odd[0]]:g}, expected a whole number "
            f"from 0 to {_MOST_TICKS}"
        )
    return values.astype(np.int64)
