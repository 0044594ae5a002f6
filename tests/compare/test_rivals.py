"""A control that seems missing is not named alone where others, used otherwise, explain as much."""

from dataclasses import replace

import numpy as np
import RocketSim as rsim

from rlgym_bridge.compare.findings.gaps import input_gaps
from rlgym_bridge.compare.findings.missing_inputs import Missing, find_missing
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.arena_reader import ArenaReader, control_of
from rlgym_bridge.state import MatchState

_ROWS = 360  # three seconds


def drive(handbrake: float) -> Recording:
    """Return a car that drives straight on from a stop, and in its third second steers."""
    arena, (car,) = make_arena([0])
    start = rsim.CarState()
    start.pos, start.rot_mat = rsim.Vec(-1500, -3000, 17.01), rsim.Angle(np.pi / 2, 0, 0).as_rot_mat()
    car.set_state(start)
    state, reader = MatchState(1, 0, _ROWS), ArenaReader(arena, [car])
    rows = np.zeros((_ROWS, 8))
    for tick in range(_ROWS):
        slides = handbrake if tick >= 240 else 0.0
        rows[tick] = [1, slides, 0, 0, 0, 0, 0, slides]
        car.set_controls(control_of(rows[tick].tolist()))
        arena.step(1)
        reader.read_into(state, tick)
    derive(state)
    state.gravity[:] = 1
    state.car_controls[:, 0] = rows
    tick, there = np.arange(_ROWS), np.ones(_ROWS, bool)
    return Recording(
        "drive", state, tick, tick / 120, np.zeros(_ROWS, np.int32), there, there[:, None],
        inputs=Inputs.APPLIED,
    )  # fmt: skip


def handbrake_of(recording: Recording) -> Missing:
    scene = TimedRecording(recording, fit_timeline(recording))
    (found,) = (one for one in find_missing(scene, 60)[0] if one.control == "handbrake")
    return found


def test_swapped_controls_are_not_called_a_missing_one() -> None:
    recording = drive(0.0)
    recording.state.car_controls[:, 0, :2] = recording.state.car_controls[:, 0, 1::-1]
    found = handbrake_of(recording)
    assert found.shown and "throttle and steer swapped" in found.rivals
    (gap,) = input_gaps("drive", [found], [])
    assert gap.kind is GapVerdict.WRONG and gap.name.endswith("swapped or a missing handbrake")
    assert "the data do not tell why: throttle and steer swapped explains" in gap.text
    (alone,) = input_gaps("drive", [replace(found, rivals=())], [])
    assert alone.name == "handbrake" and alone.kind is GapVerdict.MISSING


def test_a_missing_control_that_nothing_rivals_is_named_alone() -> None:
    recording = drive(1.0)
    recording.state.car_controls[:, 0, 7] = 0
    found = handbrake_of(recording)
    assert found.shown and found.rivals == ()
