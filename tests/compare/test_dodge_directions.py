"""A dodge that the recorded sticks do not explain is named, with the stick that would."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.compare.findings.dodge_directions import dodge_gaps
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Recording
from tests.support.captures import Capture
from tests.support.planted_gaps import as_table, play
from tests.support.real_data import real


def timed(recording: Recording, **parts: object) -> TimedRecording:
    scene = TimedRecording(recording, fit_timeline(recording))
    return replace(scene, **parts)


def test_a_dodge_of_the_game_without_its_pitch_is_named(tmp_path: Path) -> None:
    recording = Capture(real("game-2026/clean-dodge.csv"), tmp_path).recording
    recording.state.car_controls[..., CONTROL_NAMES.index("pitch")] = 0  # as it was recorded
    (gap,) = dodge_gaps(timed(recording), [0])
    assert gap.name == "pitch of a dodge" and "pitch -1 explains it" in gap.text
    assert "throttle, which is 1 at the press" in gap.text


@pytest.mark.slow
def test_dodges_as_recorded_are_not_named():
    assert dodge_gaps(timed(as_table(play(seconds=16))), [0]) == []


@pytest.mark.slow
def test_dodges_of_a_match_without_pitch_are_named():
    recording = as_table(play(seconds=16))
    state = recording.state.copy()
    state.car_controls[..., CONTROL_NAMES.index("pitch")] = 0
    pitches = recording.state.car_controls[:, 0, CONTROL_NAMES.index("pitch")]
    assert np.abs(pitches).max() == 1
    gaps = dodge_gaps(timed(replace(recording, state=state)), [0])
    assert {gap.name for gap in gaps} == {"pitch of a dodge"}
