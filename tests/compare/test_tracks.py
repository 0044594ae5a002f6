"""Inputs drive a car in a window as far as its tank lets them act."""

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.compare.findings.drift import measure
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.arena_reader import ArenaReader, control_of
from rlgym_bridge.state import MatchState
from tests.support.planted_gaps import sent

FULL_SPEED = [1.0, 0, 0, 0, 0, 0, 1, 0]


def drive_until_dry(boost: float) -> Recording:
    """Return three seconds of a car that drives from goal to goal with all it has."""
    arena, (car,) = make_arena([0])
    ball, begin = arena.ball.get_state(), car.get_state()
    ball.pos = rsim.Vec(3000, 0, 93.15)
    begin.pos, begin.boost = rsim.Vec(600, -4500, 17), boost
    begin.rot_mat = rsim.Angle(np.pi / 2, 0, 0).as_rot_mat()
    arena.ball.set_state(ball)
    car.set_state(begin)
    car.set_controls(control_of(FULL_SPEED))
    reader, ticks = ArenaReader(arena, [car]), 3 * TICKS_PER_SECOND
    state = MatchState(1, 0, ticks)
    for tick in range(ticks):
        arena.step(1)
        reader.read_into(state, tick)
    derive(state)
    there, count = np.ones(ticks, bool), np.arange(ticks, dtype=np.int64)
    return Recording("drive", state, count, count / TICKS_PER_SECOND, np.zeros(ticks, np.int32), there,
                     there[:, None])  # fmt: skip


@pytest.mark.parametrize("boost", [20.0, 33.33])
@pytest.mark.parametrize("lag", [None, 2])
def test_a_tank_burns_to_its_last_tick_and_no_longer(boost: float, lag: int | None) -> None:
    recording = drive_until_dry(boost)
    amount = recording.state.car_boost_amount[:, 0]
    assert 0 < (amount > 0).sum() < len(amount) - 60
    late = recording if lag is None else sent(recording, lag)
    scene = TimedRecording(late, fit_timeline(late), lag=float(lag or 0))
    found = measure(scene)
    cars = np.array([body == 0 for _, body, _ in found.origins])
    assert recording.inputs is Inputs.APPLIED and cars.sum() >= 5
    assert np.nanmax(found.position[cars]) < 0.01


def test_inputs_of_all_lags_share_their_rows() -> None:
    recording = drive_until_dry(20.0)
    scene = TimedRecording(recording, fit_timeline(recording))
    now, late = scene.drive(0, 0.0), scene.drive(0, 3.0)
    assert now is not None and late is not None and now.rows is late.rows
    ends = np.arange(40.0, 60.0)
    assert (now.during(0, ends) == late.during(0, ends + 3)).all()
    assert late.held(0, 0.0).rows[:, 0].any() == 0 and now.rows[:, 0].all()
