"""A whole comparison: nothing is found where nothing was planted, and what was planted is named."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.findings.comparison_result import Comparison
from rlgym_bridge.compare.findings.verdict import GapVerdict, Situation
from rlgym_bridge.compare.output.fitted_settings import fitted_constants
from rlgym_bridge.compare.simulate.windows import BALL_AIR, CAR_GROUND, HORIZONS
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Recording
from tests.support.planted_gaps import (
    as_replay,
    as_table,
    draggier,
    heavier,
    play,
    rows_of,
    sent,
    timed,
    weaker,
    with_rows_lost,
    without,
)

SECONDS = 16
WINDOWS = 48


@cache
def _clean() -> Comparison:
    return compare_recordings(as_table(play(seconds=SECONDS)), windows=WINDOWS)


def _compared(recording: Recording) -> Comparison:
    return compare_recordings(recording, windows=WINDOWS)


def _at(comparison: Comparison, name: str, horizon: int = 120) -> Situation:
    return next(row for row in comparison.situations if (row.name, row.horizon_ticks) == (name, horizon))


def _sizes(comparison: Comparison) -> dict[str, float]:
    return {gap.name: gap.size for gap in comparison.gaps}


def test_the_simulator_agrees_with_itself():
    assert _clean().gaps == []
    assert {row.verdict for row in _clean().situations} <= {GapVerdict.AGREES, GapVerdict.FEW}
    assert _at(_clean(), "ball").p50 < 0.001
    assert _at(_clean(), "car").p50 < 0.001


def test_every_situation_has_rising_errors_and_a_floor():
    for row in _clean().situations:
        assert row.name.split()[0] in ("ball", "car")
        assert row.horizon_ticks in HORIZONS
        assert 0 <= row.p50 <= row.p90 <= row.p99
        assert row.floor >= 0


def test_the_json_form_holds_what_programs_rely_on():
    plain = json.loads(json.dumps(_clean().as_json(), allow_nan=False))
    assert next(iter(plain)) == "explanation" and plain["mechanisms"] == []
    assert plain["explanation"].startswith("No gap was found. ")
    assert plain["input_latency_ticks"] == 0
    assert plain["clock_scale"] == pytest.approx(1, abs=1e-5)
    assert plain["tick_offset"] == 0
    keys = {"name", "horizon_ticks", "windows", "p50", "p90", "p99", "floor", "verdict"}
    assert all(keys <= row.keys() for row in plain["situations"])


@pytest.mark.slow
def test_gravity_one_percent_off_is_found_with_its_size():
    found = _compared(as_table(play(seconds=SECONDS, mutate=heavier)))
    assert _sizes(found) == pytest.approx({"gravity (ball)": 1.01, "gravity (car)": 1.01}, abs=0.0005)
    assert _at(found, BALL_AIR, 60).verdict is GapVerdict.PHYSICS


@pytest.mark.slow
def test_drag_two_percent_off_is_found_with_its_size():
    found = _compared(as_table(play(seconds=SECONDS, mutate=draggier)))
    assert _sizes(found) == pytest.approx({"ball drag": 1.02}, abs=0.002)
    assert _at(found, "ball").verdict is GapVerdict.PHYSICS


@pytest.mark.slow
def test_boost_five_percent_weaker_is_found_with_its_size():
    found = _compared(as_table(play(seconds=SECONDS, mutate=weaker)))
    sizes = _sizes(found)
    assert set(sizes) <= {"boost in the air", "boost on the ground"}
    assert sizes["boost on the ground"] == pytest.approx(0.95, abs=0.005)
    assert _at(found, "ball").verdict is GapVerdict.AGREES


@pytest.mark.slow
def test_a_fast_clock_and_a_lag_are_timing_and_not_physics():
    found = _compared(timed(sent(as_table(play(seconds=SECONDS)), 2), 0.003))
    assert _sizes(found) == pytest.approx({"clock": 1 / 1.003, "input latency": 2}, abs=1e-4)
    assert {gap.kind for gap in found.gaps} == {GapVerdict.TIMING}
    assert found.agrees
    assert (found.input_latency_ticks, found.clock_scale) == (2, pytest.approx(1 / 1.003, abs=1e-4))
    assert "not a physics gap" in found.gaps[0].text


@pytest.mark.slow
def test_lost_packets_are_counted():
    whole = as_table(play(seconds=SECONDS))
    part = with_rows_lost(whole, 0.02)
    found = _compared(part)
    assert _sizes(found) == {"lost rows": pytest.approx(len(whole.tick) - len(part.tick), rel=0.1)}


@pytest.mark.parametrize("said", [False, True])
@pytest.mark.slow
def test_a_handbrake_that_was_not_recorded_is_asked_for(said):
    found = _compared(without(as_table(play(seconds=24)), "handbrake", said))
    assert {(gap.kind, gap.name) for gap in found.gaps} == {(GapVerdict.MISSING, "handbrake")}
    assert _at(found, CAR_GROUND, 60).verdict is GapVerdict.MISSING
    assert ("is it recorded?" in found.gaps[0].text) is not said


def test_the_ball_of_a_replay_agrees_once_its_ticks_are_known():
    found = _compared(as_replay(play(seconds=SECONDS)))
    assert [gap.name for gap in found.gaps] == ["tick offset"]
    assert found.tick_offset == 2
    assert _at(found, BALL_AIR, 60).p50 < 0.01
    assert any("no inputs" in note for note in found.notes)


def test_several_recordings_are_put_together():
    found = compare_recordings(*(as_replay(play(seed, SECONDS)) for seed in (0, 1)), windows=WINDOWS)
    assert len(found.fits) == 2
    assert [gap.name for gap in found.gaps] == ["tick offset"]
    assert "2 recordings" in found.gaps[0].text
    assert set(found.notes) == {f"match {seed} has no inputs: only its ball is compared" for seed in (0, 1)}


@pytest.mark.slow
def test_missing_spin_is_taken_from_the_orientation():
    match = as_table(play(seconds=SECONDS))
    state = match.state.copy()
    state.car_angular_velocity[:] = state.ball_angular_velocity[:] = 0
    found = _compared(replace(match, state=state))
    assert _at(found, "car").p50 < 0.01
    assert GapVerdict.PHYSICS not in {row.verdict for row in found.situations}
    assert any("how the ball spins" in note for note in found.notes)


def test_no_recording_is_refused():
    with pytest.raises(ValueError, match="got no recording"):
        compare_recordings()


def test_a_recording_too_short_to_compare_is_refused_by_name():
    with pytest.raises(ValueError, match="match 0: nothing is shown for long enough"):
        compare_recordings(rows_of(as_table(play(seconds=SECONDS)), np.arange(1)))


def test_too_little_says_that_it_tells_nothing():
    found = compare_recordings(rows_of(as_table(play(seconds=SECONDS)), np.arange(12)), windows=WINDOWS)
    assert found.tells_nothing and found.sizes == []


@pytest.mark.slow
def test_windows_that_overlap_prove_no_gap():
    rows = np.arange(520)  # four seconds hold no eight windows of a second
    match = as_table(rows_of(play(seconds=SECONDS, mutate=heavier), rows))
    by_horizon = {
        row.horizon_ticks: row for row in compare_recordings(match).situations if row.name == "ball"
    }
    assert by_horizon[120].windows >= 8 > by_horizon[120].apart
    assert by_horizon[120].verdict is GapVerdict.FEW


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_clean_matches_raise_at_most_one_false_alarm():
    alarms = []
    for seed in range(20):
        found = compare_recordings(as_table(play(seed + 1000, 40.0)))
        wrong = {row.verdict for row in found.situations} - {GapVerdict.AGREES, GapVerdict.FEW}
        if found.gaps or wrong:
            alarms.append((seed, [gap.text for gap in found.gaps], wrong))
    assert len(alarms) <= 1, alarms


@pytest.mark.slow
def test_a_control_that_is_wrong_makes_no_constant_of_the_car() -> None:
    recording = as_table(play(seconds=24))
    recording = replace(recording, state=recording.state.copy())
    recording.state.car_controls[..., CONTROL_NAMES.index("boost")] = 1.0
    found = compare_recordings(recording, windows=80)
    assert "boost" in [gap.name for gap in found.gaps if gap.kind is GapVerdict.MISSING]
    assert not [gap for gap in found.gaps if gap.kind is GapVerdict.PHYSICS]
    assert not [name for name in fitted_constants(found) if name.startswith(("boost", "jump"))]
