"""A stick that kept its value for some ticks is named, though nobody knows when."""

import numpy as np
import pytest

from rlgym_bridge.compare.findings.claims import explain
from rlgym_bridge.compare.findings.stuck_controls import HeldDrive, find_stuck
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.game import CONTROL_NAMES
from tests.support.fault_matches import plant

_STEER = CONTROL_NAMES.index("steer")


def scene_of(kind: str, seconds: int) -> TimedRecording:
    recording = plant(1036, kind, seconds=seconds).recording
    return TimedRecording(recording, fit_timeline(recording))


def test_a_held_drive_changes_one_control_for_some_ticks():
    drive = scene_of("stuck steer", 8).drive(0)
    assert drive is not None
    ends = np.arange(1010.0, 1060.0)
    before, after = drive.during(20, ends), HeldDrive(drive, _STEER, 0.25, 1020.0, 1029.0).during(20, ends)
    changed = (before != after).any(1)
    assert not changed[:10].any() and not changed[20:].any()
    assert (after[10:20, _STEER] == 0.25).all()
    assert (np.delete(before, _STEER, 1) == np.delete(after, _STEER, 1)).all()


def test_nothing_is_stuck_where_nothing_is_off():
    assert find_stuck(scene_of("stuck steer", 8), 1, 0.01) is None


@pytest.mark.slow
def test_a_stuck_stick_is_named():
    claims = explain([scene_of("stuck steer", 64)], 240)
    assert [(claim.name, claim.cars, claim.alike) for claim in claims] == [("steer stuck", [0], [])]


@pytest.mark.slow
def test_weak_friction_is_no_stuck_stick():
    assert find_stuck(scene_of("friction", 64), 0, 0.01) is None
