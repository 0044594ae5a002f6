"""Recordings of RocketSim 2.2.1 itself, in the forms that files have, for tests that need few rows."""

from dataclasses import replace
from functools import cache

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.state import MatchState
from tests.support.fault_scenes import Fault, Form, make_recording

_SEEN = (
    "position", "rotation", "linear_velocity", "angular_velocity", "boost_amount", "controls", "team",
)  # fmt: skip

heavier = 1.01
"""Gravity that is 1 % too strong."""


@cache
def play(seed: int = 0, seconds: float = 8.0, gravity: float = 1.0) -> Recording:
    """Return scenes of a match with all that is hidden; it does not say that gravity was changed.

    Do not write to it: it is kept.
    """
    fault = Fault("gravity", simulator=ROCKETSIM2, factors={} if gravity == 1 else {"gravity": gravity})
    whole = make_recording(f"match {seed}", fault, Form(), np.random.default_rng(seed))
    return rows_of(whole, np.arange(int(seconds * TICKS_PER_SECOND)))


def rows_of(recording: Recording, rows: np.ndarray) -> Recording:
    """Return a recording of some of the rows."""
    state = recording.state
    layout = state.layout
    return replace(
        recording,
        state=MatchState(layout.blue, layout.orange, len(rows), state.buffer[rows]),
        tick=recording.tick[rows],
        seconds=recording.seconds[rows],
        segment=recording.segment[rows],
        ball_shown=recording.ball_shown[rows],
        car_shown=recording.car_shown[rows],
        car_present=recording.car_present[rows],
    )


def as_table(recording: Recording) -> Recording:
    """Return what a table has: bodies, boost and controls, and nothing that is hidden."""
    state = recording.state
    layout = state.layout
    plain = MatchState(layout.blue, layout.orange, state.matches)
    for name in ("ball_position", "ball_rotation", "ball_linear_velocity", "ball_angular_velocity"):
        getattr(plain, name)[:] = getattr(state, name)
    for name in _SEEN:
        getattr(plain, "car_" + name)[:] = getattr(state, "car_" + name)
    return replace(recording, state=plain)


def sent(recording: Recording, lag: int) -> Recording:
    """Return a recording whose rows hold the inputs that drive the tick `lag` ticks after them."""
    state = recording.state.copy()
    ahead = lag + 1  # row k of applied inputs drove the tick before it
    rows = np.arange(len(recording.tick)) + ahead
    state.car_controls[:] = recording.state.car_controls[rows.clip(0, len(rows) - 1)]
    return replace(recording, state=state, inputs=Inputs.SENT)


def without(recording: Recording, control: str) -> Recording:
    """Return a recording that lacks a control, and does not say so."""
    column = CONTROL_NAMES.index(control)
    state = recording.state.copy()
    state.car_controls[..., column] = 0
    return replace(recording, state=state)


def as_replay(recording: Recording, seed: int = 0) -> Recording:
    """Return a recording as a replay is: 30 frames a second, each body's state up to 4 ticks old."""
    random = np.random.default_rng(seed)
    frames = np.arange(8, len(recording.tick), 4)
    frames = frames[recording.segment[frames] == recording.segment[frames - 8]]
    part = as_table(rows_of(recording, frames))
    state = part.state
    layout = state.layout
    ball = layout.column("ball_position")
    places = [slice(ball, ball + 18)]
    places += [
        slice(layout.column("position", car=car), layout.column("position", car=car) + 18) for car in (0, 1)
    ]
    was_shown = []
    for place in places:
        age = random.integers(0, 5, len(frames))
        state.buffer[:, place] = recording.state.buffer[frames - age, place]
        fresh = np.diff(frames - age, prepend=-1) > 0
        was_shown.append(fresh & (random.random(len(frames)) < 0.9))
    return replace(
        part, clock=TimeBase.FRAMES, ball_shown=was_shown[0], car_shown=np.stack(was_shown[1:], axis=1),
        inputs=Inputs.NONE, inputs_recorded=np.zeros((2, 8), bool),
    )  # fmt: skip
