"""Control rows are checked where a parser hands them over."""

import numpy as np
import pytest

from rlgym_bridge.controls import ControlsError, checked_plan, checked_rows
from rlgym_bridge.game import CONTROL_NAMES

ROW = [1.0, -1.0, 0.5, 0.0, -0.25, 1, 0, 1]


@pytest.mark.parametrize(
    ("rows", "tick_skip", "ticks"),
    [(ROW, None, 8), ([ROW], None, 1), (ROW, 4, 4), ([ROW], 4, 4), ([ROW] * 3, 4, 3)],
)
def test_a_decision_lasts_its_rows_or_the_tick_skip(rows: list, tick_skip: int | None, ticks: int) -> None:
    plan = checked_plan(rows, tick_skip, "parser")
    assert plan.shape == (ticks, 8) and (plan == np.float32(ROW)).all()


@pytest.mark.parametrize("shape", [(), (7,), (0, 8), (2, 9), (1, 2, 8)])
def test_another_shape_is_refused_with_the_expected_one(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ControlsError, match=r"parser gave an array of shape .* expected \(8,\) or \(ticks, 8\)"
    ):
        checked_rows(np.zeros(shape), 8, "parser")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.01, -2.0])
@pytest.mark.parametrize("control", range(5))
def test_a_stick_out_of_range_is_refused_by_name(control: int, value: float) -> None:
    rows = np.tile(np.float32(ROW), (4, 1))
    rows[2, control] = value
    with pytest.raises(
        ControlsError, match=rf"{CONTROL_NAMES[control]} = .* in row 2 of 4, expected a finite"
    ):
        checked_rows(rows, 8, "parser")


@pytest.mark.parametrize("control", [5, 6, 7])
def test_a_button_between_0_and_1_is_refused_by_name(control: int) -> None:
    row = list(ROW)
    row[control] = 0.5
    with pytest.raises(ControlsError, match=rf"{CONTROL_NAMES[control]} = 0.5 in row 0 .* expected 0 or 1"):
        checked_rows(row, 8, "parser")


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ControlsError, match="expected numbers"):
        checked_rows(["a"] * 8, 8, "parser")
