"""Fill the fields of a state that follow from its others."""

from typing import Final

import numpy as np

from rlgym_bridge.game import DODGE_DEADLINE_SECONDS, FLIP_TORQUE_SECONDS, GOAL_THRESHOLD_Y
from rlgym_bridge.state import CAR_FIELDS, MatchState, layout_of

_FLIP_TORQUE, _DODGE_DEADLINE = np.float32(FLIP_TORQUE_SECONDS), np.float32(DODGE_DEADLINE_SECONDS)
_ONE_CAR: Final = layout_of(1, 0)
_COLUMN: Final = {field.name: _ONE_CAR.column(field.name, car=0) - _ONE_CAR.car_start for field in CAR_FIELDS}
"""Column of each field in a car's part of the buffer."""

_FIRST, _LAST = _COLUMN["demo_respawn_timer"], _COLUMN["flip_time"]  # all that is read here
_RESULTS: Final = slice(_COLUMN["on_ground"], _COLUMN["can_flip"] + 1)
_ROW: Final = {name: column - _FIRST for name, column in _COLUMN.items()}
_WHEELS: Final = _ROW["wheels_with_contact"]


def derive(state: MatchState) -> None:
    """Fill the fields that follow from others, in place, for all matches at once.

    The formulas are RLGym's properties of `Car` and `GameState`; `packets/decoder.py` has them a second
    time for single numbers, and a test holds the two equal.
    """
    np.greater(np.abs(state.ball_position[:, 1]), GOAL_THRESHOLD_Y, out=state.goal_scored)
    layout = state.layout
    cars = state.buffer[:, layout.car_start :].reshape(state.matches, layout.cars, layout.car_stride)
    # A row for each column: arithmetic on neighbours in memory takes half the time, this copy included.
    values = cars[..., _FIRST : _LAST + 1].reshape(-1, _LAST + 1 - _FIRST).T.copy()
    results = np.empty((_RESULTS.stop - _RESULTS.start, values.shape[1]), bool)
    on_ground, is_demoed, is_boosting, is_supersonic, is_flipping, has_flip, can_flip = results
    wheels = values[_WHEELS] + values[_WHEELS + 1]
    wheels += values[_WHEELS + 2]
    wheels += values[_WHEELS + 3]
    np.greater_equal(wheels, 3, out=on_ground)
    np.greater(values[_ROW["demo_respawn_timer"]], 0, out=is_demoed)
    np.greater(values[_ROW["boost_active_time"]], 0, out=is_boosting)
    np.greater(values[_ROW["supersonic_time"]], 0, out=is_supersonic)
    used = values[_ROW["has_flipped"]] > 0
    # float32(0.65) is below 0.65, so <= is RLGym's < in double precision.
    np.logical_and(used, values[_ROW["flip_time"]] <= _FLIP_TORQUE, out=is_flipping)
    used |= values[_ROW["has_double_jumped"]] > 0
    np.greater(values[_ROW["air_time_since_jump"]] < _DODGE_DEADLINE, used, out=has_flip)
    held_down = values[_ROW["is_holding_jump"]] > 0
    held_down |= on_ground
    np.greater(has_flip, held_down, out=can_flip)
    cars[..., _RESULTS] = results.T.reshape(*cars.shape[:2], len(results))
