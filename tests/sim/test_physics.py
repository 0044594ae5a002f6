"""Matches with other constants: each plays with its own, and what was drawn lies in its range."""

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.conditions import TimeoutCondition
from rlgym_bridge.components.mutator_base import BatchMutator
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.game import GRAVITY, TICK_SECONDS
from rlgym_bridge.physics import CONSTANTS, Spread
from rlgym_bridge.sim.arena import scale_constants
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from tests.support.vector_parts import components


class BallUp(BatchMutator):
    """A kickoff with the ball high up, at rest."""

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        KickoffMutator().apply_batch(state, rng)
        state.ball_position[:] = (0, 0, 1800)
        state.ball_linear_velocity[:] = (0, 0, 1)


def env(matches: int, seconds: float = 0.5, **options: object) -> VectorEnv:
    parts = components(truncation_cond=TimeoutCondition(seconds), state_mutator=BallUp())
    return VectorEnv(matches, lambda: parts, **options)  # type: ignore[arg-type]


def falls(one: VectorEnv, steps: int = 4) -> np.ndarray:
    """Return the ball's acceleration in each match, uu/s^2 downwards."""
    before = one.state.ball_linear_velocity[:, 2].copy()
    for _ in range(steps):
        one.step(np.zeros((one.state.matches, one.cars), int))
    return (before - one.state.ball_linear_velocity[:, 2]) / (steps * 8 * TICK_SECONDS)


def test_each_episode_draws_its_own_constants_from_their_range() -> None:
    one = env(24, constants={"gravity": Spread(1.0, 0.5, 1.5)})
    one.reset(1)
    first = falls(one) / GRAVITY
    assert (first > 0.48).all() and (first < 1.51).all() and first.std() > 0.15
    for _ in range(4):  # into new episodes
        one.step(np.zeros((24, 2), int))
    assert np.abs(falls(one, 3) / GRAVITY - first).max() > 0.1
    one.reset(1)
    np.testing.assert_array_equal(falls(one) / GRAVITY, first)


def test_without_constants_matches_are_rocketsims() -> None:
    plain, named = env(3), env(3, constants={name: Spread(1.0, 1.0, 1.0) for name in CONSTANTS})
    for one in (plain, named):
        one.reset(5)
    np.testing.assert_array_equal(falls(plain), falls(named))


def test_every_constant_can_be_scaled() -> None:
    for name, own in CONSTANTS.items():
        config = rsim.MutatorConfig()
        scale_constants(config, {name: 1.5})
        value = -config.gravity.z if name == "gravity" else getattr(config, name)
        assert value == pytest.approx(1.5 * own, rel=1e-5)


def test_noise_makes_single_decisions_act_sooner_or_later() -> None:
    one = env(24, seconds=100, action_delay=4, delay_noise=50.0)
    one.reset(0)
    table = LookupTableAction().parse_batch(np.arange(90)[None])[0, :, 0]
    actions = np.flatnonzero(table[:, 0] == 1)[:1], np.flatnonzero(table[:, 0] == -1)[:1]
    throttles = []
    for step in range(20):
        one.step(np.full((24, 2), actions[step % 2][0]))
        throttles.append(one.state.car_controls[:, 0, 0] == table[actions[step % 2][0], 0])
    shown = np.array(throttles)  # whether the last tick of a step is driven by its own action
    # So much noise makes a delay of 4 nearly always 0 or more than 8: an action acts at once, or later.
    assert 0.4 < shown.mean() < 0.7
    assert (shown.mean(0) > 0.1).all()


def test_training_has_the_thrust_of_matches_by_default() -> None:
    one, plain = env(1, simulator="rocketsim2"), env(1, simulator="rocketsim2", thrust=False)
    doubled = env(1, simulator="rocketsim2", constants={"boost_accel_air": Spread(2.0, 2.0, 2.0)})
    accelerations = []
    for each in (one, plain, doubled):
        each.reset(1)
        arena = each._simulator._matches[0].arena  # type: ignore[attr-defined]
        accelerations.append(arena.get_mutator_config().boost_accel_air)
    assert accelerations == pytest.approx([991.667, 1058.333, 2 * 991.667], rel=1e-5)
