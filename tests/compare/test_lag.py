"""How late inputs act is found by driving the simulation with each lag."""

from dataclasses import replace

import pytest

from rlgym_bridge.compare.lag import LagFit, fit_lag
from rlgym_bridge.compare.scene import Scene
from rlgym_bridge.compare.timeline import fit_timeline
from rlgym_bridge.recording.recording import Inputs, Recording
from tests.compare.planted import as_replay, as_table, play, sent, timed, without


def _fit(recording: Recording) -> LagFit:
    return fit_lag(Scene(recording, fit_timeline(recording)), windows=10)


@pytest.mark.parametrize("lag", range(5))
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


@pytest.mark.parametrize("lag", [20, -12])
def test_a_lag_beyond_all_that_was_looked_for_is_not_sure(lag):
    assert _fit(sent(as_table(play(seconds=16)), lag)).sure < 0.9


def test_the_lag_is_found_on_a_clock_of_its_own_and_with_an_input_missing():
    assert _fit(timed(without(sent(as_table(play(seconds=16)), 3), "handbrake"), 0.003, 60)).ticks == 3


def test_without_inputs_there_is_no_lag():
    fit = _fit(as_replay(play(seconds=16)))
    assert (fit.ticks, fit.windows, fit.sure) == (0, 0, 0.0)
