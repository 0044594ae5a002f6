"""Matches of modes that RocketSim plays are compared by the rules of their own mode."""

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.arena_reader import ArenaReader
from rlgym_bridge.sim.game_modes import PLAYED_MODES
from rlgym_bridge.state import MatchState

_TICKS = 90  # of a scene


def test_modes_have_rocketsims_numbers() -> None:
    assert {name: getattr(rsim.GameMode, name.upper()) for name in PLAYED_MODES} == PLAYED_MODES


def free_ball(mode: str) -> Recording:
    """Return balls that fly and bounce in a mode, one after the other, without cars."""
    arena, cars = make_arena([0], mode=PLAYED_MODES[mode])
    random, rows = np.random.default_rng(0), 6 * _TICKS
    state, seen = MatchState(0, 0, rows), MatchState(1, 0)
    reader = ArenaReader(arena, cars)
    for row in range(rows):
        if row % _TICKS == 0:
            ball = rsim.BallState()
            ball.pos = rsim.Vec(*random.uniform((-1500, -1500, 200), (1500, 1500, 800)).tolist())
            ball.vel = rsim.Vec(*random.uniform(-900, 900, 3).tolist())
            ball.heatseeker_target_dir = float(np.sign(ball.vel.y))
            ball.heatseeker_target_speed = 2900.0
            arena.ball.set_state(ball)
        arena.step(1)
        reader.read_into(seen)
        for name in ("position", "rotation", "linear_velocity", "angular_velocity"):
            getattr(state, "ball_" + name)[row] = getattr(seen, "ball_" + name)[0]
    tick = np.arange(rows)
    return Recording(
        mode, state, tick, tick / 120, (tick // _TICKS).astype(np.int32), np.ones(rows, bool),
        np.zeros((rows, 0), bool), inputs=Inputs.NONE, mode=mode,
    )  # fmt: skip


def off_in_scenes(recording: Recording) -> np.ndarray:
    """Return how far RocketSim's ball is from the recorded one half a second later, `(scenes,)` uu."""
    scene = TimedRecording(recording, fit_timeline(recording))
    stage, off = RolloutArena(recording, (BALL,)), []
    for track in scene.tracks((BALL,)):
        path = stage.roll(track, 20, 60, 1.0, [None])
        off.append(np.linalg.norm(path.values[60, 0, :3] - track.values[80, 0, :3]))
    return np.array(off)


@pytest.mark.parametrize("mode", ["Snowday", "Heatseeker"])
def test_a_ball_is_simulated_in_its_own_mode(mode: str) -> None:
    found = free_ball(mode)
    assert np.median(off_in_scenes(found)) < 0.01
    found.mode = "Soccar"
    assert off_in_scenes(found).max() > 20
