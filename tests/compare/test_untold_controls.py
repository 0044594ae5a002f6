"""Controls that a map could mix up without any effect are named; too few windows for a lag are no gap."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.findings.comparison_result import Comparison
from rlgym_bridge.compare.findings.sentences import begin_with, told_fit
from rlgym_bridge.compare.findings.untold_controls import UntoldControls, find_untold
from rlgym_bridge.compare.findings.verdict import Doubts, GapVerdict, judge
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import CAR_GROUND
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Inputs, Recording
from tests.support.capture_files import read_capture
from tests.support.made_comparisons import comparison, row
from tests.support.planted_gaps import as_replay, as_table, play
from tests.support.real_data import real
from tests.support.short_captures import capture, errors


def untold(recording: Recording) -> list[UntoldControls]:
    return find_untold(TimedRecording(recording, fit_timeline(recording)))


@cache
def few_changes() -> Comparison:
    """Return the comparison of two seconds in which steer changes five times."""
    return compare_recordings(replace(capture(), inputs=Inputs.SENT), windows=60)


def test_controls_of_no_use_and_equal_ones_are_named() -> None:
    recording = as_table(play(3, 24.0))
    controls = recording.state.car_controls
    controls[:, 0, CONTROL_NAMES.index("handbrake")] = 0
    controls[:, 0, CONTROL_NAMES.index("roll")] = 0
    controls[:, 0, CONTROL_NAMES.index("yaw")] = controls[:, 0, CONTROL_NAMES.index("pitch")]
    first, other = untold(recording)
    assert first.unused == ("roll", "handbrake") and first.equal == (("pitch", "yaw"),)
    assert not untold(as_replay(play(3, 24.0))) and other.car == 1


def test_the_sentences_say_what_a_map_could_mix_up() -> None:
    found = comparison(row("car", 120, 0.0))
    found.untold = [
        UntoldControls("a", 0, ("roll", "boost"), (("throttle", "steer"), ("pitch", "yaw"))),
        UntoldControls("a", 1, ("roll", "boost", "jump"), (("throttle", "steer"),)),
    ]
    assert begin_with(found)[-1] == (
        "If the map mixed up roll and boost (0 in every row) or throttle and steer (equal in every row), "
        "nothing would show it."
    )
    found.untold[1] = UntoldControls("a", 1, (), ())
    assert "mixed up" not in " ".join(begin_with(found))


def test_a_lag_that_few_windows_tell_is_null_and_no_gap() -> None:
    found = few_changes()
    told = found.as_json()
    assert 0 < found.fits[0].lag.windows < 6 and found.lag_is_unsure
    assert told["input_latency_ticks"] is None and told["fits"][0]["input_lag"]["ticks"] is None
    assert "how late inputs act is not known, as only" in told_fit(found.fits[0])
    assert not found.gaps and found.agrees


@pytest.mark.parametrize(
    ("untold", "off", "verdict"),
    [
        (True, 9.0, GapVerdict.FEW),
        (False, 9.0, GapVerdict.TIMING),
        (True, 200.0, GapVerdict.PHYSICS),  # no lag makes that in a quarter of a second
    ],
)
def test_errors_that_late_inputs_may_make_wait_for_a_lag(
    untold: bool, off: float, verdict: GapVerdict
) -> None:
    found = errors(np.full(64, off), 30)
    found.names[found.names != ""] = CAR_GROUND
    doubts = Doubts(lag=True, lag_untold=untold)
    rows = judge(found, Errors.empty(0), [], [], [], doubts)
    assert [each.verdict for each in rows if each.name == CAR_GROUND] == [verdict]


def test_errors_of_time_that_nothing_explains_are_said_first() -> None:
    found = comparison(row("car on the ground", 60, 9.0, GapVerdict.TIMING), row("ball", 60, 0.0))
    assert begin_with(found)[0] == (
        "No gap of physics was found; car on the ground may be off because of the time, which could not be "
        "fitted to the tick. It is not sure how late inputs act."
    )


def test_swapped_controls_that_are_alike_are_no_gap_but_said(tmp_path: Path) -> None:
    recording = read_capture(real("game-2026/probe_powerslide.csv"), tmp_path)
    (car,) = untold(recording)
    assert car.equal == (("throttle", "steer", "handbrake"),)
