"""Whatever happens to a connection, our cars get controls again soon after; the whole matrix is slow."""

import pytest

from tools.fault_matrix import SUBJECTS, run_cell, why_empty
from tools.stream_faults import FAULTS

QUICK = [
    ("agent", "cut in a message"), ("hivemind", "swapped"), ("LiveEngine", "frames go back"),
    ("server", "single bytes"), ("recorder", "players grow"),
]  # fmt: skip
CELLS = [(subject, name) for name in FAULTS for subject in SUBJECTS if not why_empty(FAULTS[name], subject)]


@pytest.mark.parametrize(
    ("subject", "name"),
    [pytest.param(*cell, marks=() if cell in QUICK else pytest.mark.slow) for cell in CELLS],
)
def test_a_fault_leaves_no_car_without_control(subject: str, name: str) -> None:
    cell = run_cell(FAULTS[name], subject)
    assert cell.passed, cell.seen


@pytest.mark.slow
def test_a_car_gets_controls_while_frame_numbers_go_back() -> None:
    assert run_cell(FAULTS["frames go back"], "agent").without == 1
