"""The lag of inputs is found by driving the simulation with each lag."""

from dataclasses import replace

import numpy as np
import pytest

from rlgym_bridge.compare.findings.comparison_result import Comparison, Fit
from rlgym_bridge.compare.findings.sentences import told_changes
from rlgym_bridge.compare.fit.action_delay import action_delay
from rlgym_bridge.compare.fit.clock_fit import ClockFit, fit_timeline
from rlgym_bridge.compare.fit.input_lag import LagFit, fit_lag
from rlgym_bridge.compare.fit.state_age import OffsetFit
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import Drive
from rlgym_bridge.recording.recording import Inputs, Recording
from tests.support.planted_gaps import as_replay, as_table, play, sent, timed, without


def _fit(recording: Recording, windows: int = 10) -> LagFit:
    return fit_lag(TimedRecording(recording, fit_timeline(recording)), windows)


@pytest.mark.parametrize("lag", [0, 3, *(pytest.param(lag, marks=pytest.mark.slow) for lag in (1, 2, 4))])
def test_the_lag_of_commanded_inputs_is_found(lag):
    fit = _fit(sent(as_table(play(seconds=16)), lag))
    assert fit.ticks == lag
    assert fit.sure > 0.9


def test_applied_inputs_are_not_late():
    assert _fit(as_table(play(seconds=16))).ticks == 0


def test_inputs_that_are_called_applied_and_are_not_are_late():
    assert _fit(replace(sent(as_table(play(seconds=16)), 1), inputs=Inputs.APPLIED)).ticks == 2


@pytest.mark.parametrize("lag", [11, -5])
def test_a_long_lag_is_looked_for_further_off(lag):
    assert _fit(sent(as_table(play(seconds=16)), lag)).ticks == lag


def _changing(early: int, late: int, row: int) -> Recording:
    match = as_table(play(seconds=16))
    one, other = sent(match, early), sent(match, late)
    one.state.car_controls[row:] = other.state.car_controls[row:]
    return one


@pytest.mark.parametrize(("early", "late"), [pytest.param(2, 1, marks=pytest.mark.slow), (1, 3)])
def test_a_lag_that_changes_for_good_has_pieces_of_its_own(early, late):
    recording = _changing(early, late, 1000)
    fit = _fit(recording, 60)
    assert [piece.ticks for piece in fit.pieces] == [early, late]
    assert fit.pieces[1].row == pytest.approx(1000, abs=60)
    assert fit.sure > 0.9
    delay = action_delay(recording, fit)
    assert delay is not None and (delay.low, delay.high) == (min(early, late), max(early, late))
    assert f"{late} from {fit.pieces[1].seconds:.1f} s on" in told_changes(fit)


def test_a_lag_that_changes_drives_each_row_with_its_own():
    recording = _changing(3, 1, 1000)
    times = fit_timeline(recording).inputs
    lag = np.where(np.arange(len(times)) < 1000, 3.0, 1.0)
    rows = slice(970, 1100)  # of one segment
    applied = as_table(play(seconds=16)).state.car_controls[rows, 0]
    # Rows just before the change act after newer ones, and those count.
    found = Drive(recording, 0, times, lag).during(1000, times[rows])
    np.testing.assert_array_equal(found[:, :5], applied[:, :5])  # not buttons: boost ends with the tank


@pytest.mark.parametrize("lag", [0, 2])
def test_a_lag_that_stays_is_one_piece(lag):
    assert [piece.ticks for piece in _fit(sent(as_table(play(seconds=16)), lag), 60).pieces] == [lag]


@pytest.mark.parametrize("lag", [20, -12])
def test_a_lag_beyond_all_that_was_looked_for_is_not_sure(lag):
    assert _fit(sent(as_table(play(seconds=16)), lag)).sure < 0.9


def test_the_lag_is_found_on_a_clock_with_a_missing_input():
    assert _fit(timed(without(sent(as_table(play(seconds=16)), 3), "handbrake"), 0.003, 60)).ticks == 3


def test_without_inputs_there_is_no_lag():
    fit = _fit(as_replay(play(seconds=16)))
    assert (fit.ticks, fit.windows, fit.sure) == (0, 0, 0.0)


def test_a_lag_that_nothing_tells_is_null_and_not_zero():
    untold, told = LagFit(0, 0.0, 2, {}), LagFit(0, 1.0, 40, {0: 0.1, 1: 9.0})
    for lag, ticks in ((untold, None), (told, 0)):
        fit = Fit("made", ClockFit(1.0, np.inf, 0), OffsetFit(), lag, None, True, 0)
        found = Comparison([fit], [], [], [], [], []).as_json()
        assert (found["input_latency_ticks"], found["fits"][0]["input_lag"]["ticks"]) == (ticks, ticks)
