"""Gravity that is not the game's reaches the ball, however it lay when gravity was set."""

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.sim.arena import make_arena, set_mutators
from rlgym_bridge.sim.arena_reader import write_arena

DRAG = 0.03 * 200  # uu/s^2 of the speed that it has after half a second, at most


def fall(arena: rsim.Arena, ticks: int = 60) -> float:
    """Return the ball's acceleration, uu/s^2 upwards."""
    before = arena.ball.get_state().vel.z
    for _ in range(ticks):
        arena.step(1)
    return (arena.ball.get_state().vel.z - before) / (ticks * TICK_SECONDS)


@pytest.mark.parametrize("lies", [True, False])
def test_a_resting_ball_falls_by_new_gravity_once_it_moves(lies: bool) -> None:
    arena, _ = make_arena([0])
    ball = arena.ball.get_state()
    ball.pos, ball.vel = rsim.Vec(0, 0, 1000), rsim.Vec(0, 0, 0 if lies else 1)
    arena.ball.set_state(ball)
    config = arena.get_mutator_config()
    config.gravity = rsim.Vec(0, 0, -325)
    set_mutators(arena, config)
    ball.vel = rsim.Vec(0, 0, 1)
    arena.ball.set_state(ball)
    assert fall(arena) == pytest.approx(-325, abs=DRAG)


def test_a_state_of_other_gravity_falls_by_it() -> None:
    arena, _ = make_arena([0, 1])
    state = blank_state(1, 1, 1)
    state.car_position[0] = [[2000, -3000, 17], [-2000, 3000, 17]]
    for gravity in (0.5, 1.0, 1.6):
        state.gravity[:] = gravity
        state.ball_position[0] = (0, 0, 1500)
        state.ball_linear_velocity[0] = (0, 0, 5)
        derive(state)
        write_arena(arena, state)
        assert fall(arena) == pytest.approx(-650 * gravity, abs=2 * DRAG)
        np.testing.assert_allclose(arena.get_mutator_config().gravity.z, -650 * gravity, rtol=1e-6)
