"""Check control rows, which are eight numbers in the order of `game.CONTROL_NAMES`."""

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, TICK_SKIP

NEUTRAL = np.zeros(len(CONTROL_NAMES), np.float32)  # the row that presses nothing, (8,) float32
NEUTRAL.flags.writeable = False


class ControlsError(ValueError):
    """A parser's rows have the wrong shape or hold something that is no control."""


def checked_rows(rows: object, hold: int, source: str) -> np.ndarray:
    """Convert a parser's rows to `(ticks, 8)` float32: five values in [-1, 1], the last three 0 or 1.

    A single row `(8,)` is held for `hold` ticks; `source` names the parser in errors. Raises ControlsError
    for another shape, no rows, a non-finite number, or one that is no control.
    """
    try:
        array = np.array(rows, np.float32)  # a copy: a parser may reuse its own
    except (TypeError, ValueError) as error:
        raise ControlsError(f"{source} gave {rows!r}, expected numbers: {error}") from None
    shape, single = array.shape, array.ndim == 1
    if single:
        array = array[None]
    if array.ndim != 2 or array.shape[1] != len(CONTROL_NAMES) or not len(array):
        raise ControlsError(
            f"{source} gave an array of shape {shape}, expected (8,) or (ticks, 8): "
            + ", ".join(CONTROL_NAMES)
        )
    # One test for the usual case: NaN fails every comparison.
    if not (np.abs(array) <= 1.0).all():
        _refuse(array, ~(np.abs(array) <= 1.0), "a finite number in [-1, 1]", source)
    buttons = array[:, 5:]
    if not ((buttons == 0) | (buttons == 1)).all():
        wrong = np.zeros(array.shape, bool)
        wrong[:, 5:] = (buttons != 0) & (buttons != 1)
        _refuse(array, wrong, "0 or 1", source)
    return array.repeat(hold, axis=0) if single else array


def checked_plan(rows: object, tick_skip: int | None, source: str) -> np.ndarray:
    """Convert the rows of one decision to `(ticks, 8)` float32; arguments and errors as of `checked_rows`.

    A single row, `(8,)` or `(1, 8)`, lasts `tick_skip` ticks. Where that is None `(8,)` is held for 8 ticks,
    and `(1, 8)` lasts one, as in RLGym.
    """
    plan = checked_rows(rows, TICK_SKIP if tick_skip is None else tick_skip, source)
    return plan if tick_skip is None or len(plan) > 1 else plan.repeat(tick_skip, axis=0)


def _refuse(array: np.ndarray, wrong: np.ndarray, expected: str, source: str) -> None:
    tick, control = np.argwhere(wrong)[0]
    raise ControlsError(
        f"{source} gave {CONTROL_NAMES[control]} = {array[tick, control]} in row {tick} of "
        f"{len(array)}, expected {expected}"
    )
