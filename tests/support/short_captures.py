"""Captures of two seconds from RocketSim."""

from collections.abc import Callable

import numpy as np
import RocketSim as rsim

from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.arena import ArenaReader, control_of, make_arena
from rlgym_bridge.state import MatchState, derive

_ROWS = 240  # two seconds


def capture(mutate: Callable[[rsim.MutatorConfig], None] | None = None, driven: bool = True) -> Recording:
    """Return two seconds of a car that drives and turns below a ball in flight, or of the ball alone."""
    arena, cars = make_arena([0])
    ball, start = rsim.BallState(), rsim.CarState()
    ball.pos, ball.vel = rsim.Vec(1500, 0, 1200), rsim.Vec(200, 300, 500)
    start.pos, start.vel = rsim.Vec(-1500, -2000, 17.01), rsim.Vec(0, 600, 0)
    start.rot_mat = rsim.Angle(np.pi / 2, 0, 0).as_rot_mat()
    arena.ball.set_state(ball)
    cars[0].set_state(start)
    if mutate is not None:
        config = arena.get_mutator_config()
        mutate(config)
        arena.set_mutator_config(config)
    state, reader = MatchState(1, 0, _ROWS), ArenaReader(arena, cars)
    for tick in range(_ROWS):
        steer = (0.0, 0.5, -0.8, 0.2)[tick // 45 % 4]
        cars[0].set_controls(control_of([1, steer, 0, 0, 0, 0, 0, 0]))
        arena.step(1)
        reader.read_into(state, tick)
    derive(state)
    state.gravity[:] = 1
    tick, there = np.arange(_ROWS), np.ones(_ROWS, bool)
    return Recording(
        "capture", state, tick, tick / 120, np.zeros(_ROWS, np.int32), there, there[:, None] & driven,
        inputs=Inputs.APPLIED if driven else Inputs.NONE,
    )  # fmt: skip
