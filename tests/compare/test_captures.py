"""Captures of the real game agree with RocketSim 3; RocketSim 2.2.1 is beyond their bounds."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.comparison_result import Comparison
from rlgym_bridge.compare.windows import CAR_JUMPED, CAR_WALL
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Recording
from tests.support.real_data import COLUMNS, real
from tests.support.simulators import needs_native

pytestmark = needs_native

OTHERS = (
    "landing", "ball-hit-65", "half_flip", "probe_powerslide", "probe_ball_wall", "throttle-jump",
    "airborne-hit", "goal-shot-net-entry",
)  # fmt: skip

BUMP = pytest.param(
    "bumpr_900",
    marks=[
        pytest.mark.slow,
        pytest.mark.xfail(strict=True, reason="some windows are beyond their bounds so far"),
    ],
)


@cache
def capture(name: str) -> Recording:
    return open_recording(real(f"game-2026/{name}.csv"), COLUMNS / "capture.toml")


@cache
def compared(name: str, simulator: str = "rocketsim3") -> Comparison:
    return compare_recordings(capture(name), windows=30, simulator=simulator)


@pytest.mark.parametrize(
    "name", ["wall_ride", *(pytest.param(one, marks=pytest.mark.slow) for one in OTHERS), BUMP]
)
def test_a_capture_of_the_game_shows_no_gap(name: str) -> None:
    found = compared(name)
    assert found.agrees and not found.causes and not found.untried
    assert found.fits[0].windows > 10
    assert str(found.as_json()["explanation"]).startswith("No gap was found.")


def test_a_ride_on_the_wall_says_how_far_off_rocketsim_2_is() -> None:
    rows = [row for row in compared("wall_ride").situations if row.name == CAR_WALL]
    (told,) = (row for row in rows if row.horizon_ticks == 12)
    assert told.p50 < 0.05 and told.rocketsim2 > 0.5 > told.tolerance


@pytest.mark.slow
def test_a_ride_on_the_wall_is_beyond_bounds_in_rocketsim_2() -> None:
    found = compared("wall_ride", "rocketsim2")
    assert not found.agrees and found.simulator == "rocketsim2"
    wall = [row for row in found.situations if row.name == CAR_WALL and row.horizon_ticks == 12]
    assert wall[0].beyond > 0 and wall[0].p50 > 0.5 > wall[0].tolerance
    newer = [row for row in compared("wall_ride").situations if row.name == CAR_WALL]
    (told,) = (row for row in newer if row.horizon_ticks == 12)
    assert told.rocketsim2 == pytest.approx(wall[0].p50, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("other", ["half_flip", "probe_powerslide", "landing"])
def test_no_other_capture_hides_the_ride_on_the_wall(other: str) -> None:
    alone = compared("wall_ride", "rocketsim2")
    beside = compare_recordings(capture("wall_ride"), capture(other), windows=30, simulator="rocketsim2")
    source = capture("wall_ride").source
    assert [str(row) for row in beside.situations if row.source == source] == list(map(str, alone.situations))
    assert [one for one in beside.untried if one.source == source] == alone.untried
    assert not beside.agrees


@pytest.mark.slow
def test_a_capture_that_lacks_the_pitch_of_its_dodge_says_so() -> None:
    found = compared("clean-dodge")
    said = json.dumps(found.as_json())
    assert "pitch" in said and CAR_JUMPED in said
    mended = capture("clean-dodge")
    mended = replace(mended, state=mended.state.copy())
    pressed = np.round(mended.seconds * 120).astype(int) == 778  # on a keyboard throttle leads a dodge
    mended.state.car_controls[pressed, 0, CONTROL_NAMES.index("pitch")] = -1.0
    assert compare_recordings(mended, windows=60).agrees
