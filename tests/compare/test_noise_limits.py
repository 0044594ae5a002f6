"""Recordings of exact states are held against their own noise, and rounded ones against tolerances."""

from dataclasses import replace

import numpy as np
import pytest

from rlgym_bridge.compare.findings.noise_limits import limit_median, measure_noise
from rlgym_bridge.compare.findings.tolerances import SHOWS, tolerance
from rlgym_bridge.compare.findings.verdict import Doubts, GapVerdict, judge
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import TRIAL
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import BALL_AIR, BALL_TOUCHED, HORIZONS
from rlgym_bridge.recording.recording import Recording
from tests.support.planted_gaps import as_table, play, timed

_COLUMN = HORIZONS.index(30)


def flights(values: np.ndarray) -> Errors:
    """Return errors, in uu, of a ball in the air after 30 ticks, in windows that lie apart."""
    found = Errors.empty(len(values))
    found.names[:, _COLUMN] = BALL_AIR
    for name in ("position", "velocity", "angle", "spin"):
        getattr(found, name)[:, _COLUMN] = values
    found.began[:, _COLUMN] = 30 * np.arange(len(values))
    found.moments[:, _COLUMN] = 30
    found.origins = [(0, -1, window) for window in range(len(values))]
    return found


def noise_of(recording: Recording) -> float | None:
    return measure_noise([TimedRecording(recording, fit_timeline(recording))])


def rounded(recording: Recording, decimals: int) -> Recording:
    state = recording.state
    for part in (state.ball_position, state.car_position):
        part[:] = part.round(decimals)
    return recording


def test_states_of_every_tick_are_exact():
    noise = noise_of(as_table(play(seconds=16)))
    assert noise is not None and noise < 0.001


def test_positions_of_two_decimals_are_exact_to_them():
    noise = noise_of(rounded(as_table(play(seconds=16)), 2))
    assert noise is not None and 0.003 < noise < 0.01


@pytest.mark.parametrize("recording", ["rounded", "sparse"])
def test_rounded_and_sparse_states_are_not_exact(recording: str) -> None:
    table = as_table(play(seconds=16))
    assert noise_of(rounded(table, 1) if recording == "rounded" else timed(table, rate=60)) is None


def test_the_ends_of_trials_are_not_exact():
    table = as_table(play(seconds=16))
    assert noise_of(table) is not None
    trials = replace(table, segment=np.arange(len(table.tick)) // TRIAL)
    assert measure_noise([TimedRecording(trials, fit_timeline(table))]) is None


def test_the_floor_and_the_noise_set_the_limit_of_exact_states():
    floor = flights(np.full(12, 0.03))
    assert limit_median(BALL_AIR, _COLUMN, floor, 0.0001) == pytest.approx(0.03)
    assert limit_median(BALL_AIR, _COLUMN, flights(np.zeros(12)), 0.0001) == SHOWS
    assert limit_median(BALL_AIR, _COLUMN, flights(np.zeros(12)), 0.005) > SHOWS


def test_tolerances_hold_where_the_floor_says_little():
    allowed = tolerance(BALL_AIR, 30)
    assert limit_median(BALL_AIR, _COLUMN, flights(np.zeros(12)), None) == allowed
    assert limit_median(BALL_AIR, _COLUMN, flights(np.zeros(5)), 0.0001) == allowed
    assert limit_median(BALL_TOUCHED, _COLUMN, flights(np.zeros(12)), 0.0001) == tolerance(BALL_TOUCHED, 30)


@pytest.mark.parametrize(("noise", "verdict"), [(0.0001, GapVerdict.PHYSICS), (None, GapVerdict.AGREES)])
def test_small_errors_are_a_gap_of_exact_states(noise: float | None, verdict: GapVerdict) -> None:
    found, floor = flights(np.full(20, 0.06)), flights(np.full(20, 0.001))
    rows = judge(found, floor, [], [], [], Doubts(), noise)
    assert {row.verdict for row in rows if row.name == BALL_AIR} == {verdict}
