"""A hit errs in its contact, neither in approach nor flight; larger bodies mend its place."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.capture_hits import SMALLER, measure_hit
from tests.support.captures import Capture
from tests.support.real_data import real


def test_a_hit_from_the_same_state_is_as_wrong_by_the_rules(tmp_path: Path) -> None:
    capture = Capture(real("game-2026/goal-shot-net-entry.csv"), tmp_path)
    plain, ruled = (measure_hit(capture, 1110, rules, 1) for rules in ("rocketsim", "game"))
    assert plain.later == pytest.approx(ruled.later, abs=0.05) and ruled.later > 0.3
    early = measure_hit(capture, 1110, "game", 30)
    assert np.abs(early.approach).max() < 0.002 and early.speed == pytest.approx(ruled.speed, abs=0.03)
    nearer = measure_hit(capture, 1110, "game", 1, SMALLER * np.array([1.0, 0.0, 1.0]))
    assert np.abs(nearer.place).max() < 0.01 < np.abs(ruled.place).max()
