"""Hitboxes that are drawn for each episode: RocketSim's cars have them, and one alone changes nothing."""

from typing import Any

import numpy as np
import pytest

from rlgym_bridge.components.conditions import TimeoutCondition
from rlgym_bridge.components.mutators import SETTLED, KickoffMutator
from rlgym_bridge.sim.batch_parts import draw_hitboxes
from rlgym_bridge.sim.vector_env import VectorEnv
from tests.support.vector_parts import components, play


def test_cars_stand_as_their_drawn_hitboxes_do() -> None:
    parts = components(state_mutator=KickoffMutator(), truncation_cond=TimeoutCondition(0.5))
    env = VectorEnv(6, lambda: parts, hitbox=[0, 1, 2, 5])
    env.reset(0)
    seen = set()
    neutral = np.full(
        (6, 2), int(np.flatnonzero(~env.parser.parse_batch(np.arange(90)[:, None]).any((1, 2, 3)))[0])
    )
    for _ in range(2):
        drawn = env.state.car_hitbox.astype(int).copy()
        seen |= set(drawn.ravel().tolist())
        for _ in range(6):
            env.step(neutral)
        np.testing.assert_array_equal(env.state.car_hitbox, drawn)
        # A car of another hitbox than it was put for would drop or rise to its own height: 17.0 to 18.8 uu.
        np.testing.assert_allclose(env.state.car_position[..., 2], SETTLED[drawn][..., 0], atol=0.02)
        env.reset()
    assert seen == {0, 1, 2, 5}


@pytest.mark.parametrize("given", [[3], (3, 3)])
def test_one_hitbox_in_a_list_is_that_hitbox_to_the_bit(given: Any) -> None:
    parts = components(state_mutator=KickoffMutator(), truncation_cond=TimeoutCondition(0.2))
    results = []
    for hitbox in (3, given):
        env = VectorEnv(2, lambda: parts, hitbox=hitbox)
        results.append([env.reset(4), *(step.obs for step in play(env, 8, forward=True))])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_entry_is_drawn_as_often() -> None:
    drawn = draw_hitboxes([0, 0, 4], (3000, 2), np.random.default_rng(0))
    assert (drawn == 0).mean() == pytest.approx(2 / 3, abs=0.02)
    assert set(np.unique(drawn)) == {0, 4}
