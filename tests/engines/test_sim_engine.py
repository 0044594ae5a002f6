"""`RLGym` over `SimEngine` plays on either simulator, by the same rules of a step."""

from typing import Any

import numpy as np
import pytest
from rlgym.api import RLGym
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import GoalCondition, NoTouchTimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.components.rewards import GoalReward
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.engines.sim import SimEngine
from rlgym_bridge.sim.simulator import ROCKETSIM3, DeadMatches, SimulatorError
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from tests.support.rlgym_worlds import Env
from tests.support.simulators import ROUNDING, both, needs_native
from tests.support.states import random_state
from tests.support.vector_parts import BallAhead, components


def started(engine: SimEngine, mutator: Any = None) -> Env:
    """Return a 1v1 environment at its first state."""
    env = RLGym(
        MutatorSequence(FixedTeamSizeMutator(1, 1), mutator or KickoffMutator(seed=1)),
        DefaultObs(zero_padding=None),
        RepeatAction(LookupTableAction(), 8),
        GoalReward(),
        engine,
        GoalCondition(),
        NoTouchTimeoutCondition(20.0),
    )
    env.reset()
    return env


def ahead() -> MatchState:
    """Return a match in which a ball rolls into orange's goal and a blue car follows it."""
    matches = VectorEnv(1, lambda: components(state_mutator=BallAhead()))
    matches.reset(0)
    return matches.state.copy()


def row(**controls: float) -> np.ndarray:
    """Return control vectors `(8,)` with throttle and boost."""
    return np.array([controls.get("throttle", 0), 0, 0, 0, 0, 0, controls.get("boost", 0), 0], np.float32)


@both
def test_an_rlgym_environment_plays_episodes(name: str) -> None:
    env, random = started(SimEngine(simulator=name)), np.random.default_rng(0)
    ends = 0
    for _ in range(400):
        actions = {agent: random.integers(90, size=1) for agent in env.agents}
        obs, _, terminated, truncated = env.step(actions)
        assert all(np.isfinite(seen).all() for seen in obs.values())
        if any(terminated.values()) or any(truncated.values()):
            env.reset()
            ends += 1
    assert ends >= 1


@needs_native
def test_a_match_equals_that_of_training_to_the_bit() -> None:
    desired, table, random = blank_state(1, 1, 1), LookupTableAction(), np.random.default_rng(1)
    BallAhead().apply_batch(desired, random)
    matches = VectorEnv(1, lambda: components(state_mutator=BallAhead()), simulator=ROCKETSIM3)
    matches.reset(3)
    engine = SimEngine(simulator=ROCKETSIM3, seed=3)
    engine.set_state(to_rlgym(desired), {})
    shown = engine._simulator.state  # type: ignore[union-attr]
    equal = 0
    while True:
        actions = random.integers(90, size=(1, 2))
        rows = table.parse_batch(actions)[0].reshape(2, -1)[:, :8]
        if matches.step(actions).terminated[0]:
            break
        engine.step(dict(zip(engine.agents, rows, strict=True)), {})
        shown.phase[:] = matches.state.phase  # RLGym's states have none
        assert np.array_equal(shown.buffer, matches.state.buffer)
        equal += 1
    assert equal > 15
    assert engine.step(dict(zip(engine.agents, rows, strict=True)), {}).goal_scored


@both
def test_a_step_ends_with_the_tick_of_a_goal(name: str) -> None:
    state = ahead()
    state.ball_position[:], state.ball_linear_velocity[:] = (0, 5000, 93.15), (0, 2000, 0)
    coarse, fine = SimEngine(simulator=name), SimEngine(simulator=name)
    ticks = []
    for engine, length in ((coarse, 8), (fine, 1)):
        shown = engine.set_state(to_rlgym(state), {})
        first = shown.tick_count
        while not shown.goal_scored:
            rows = {agent: np.tile(row(), (length, 1)) for agent in engine.agents}
            shown = engine.step(rows, {})
        ticks.append(shown.tick_count - first)
    assert ticks[0] == ticks[1]
    assert ticks[0] % 8  # inside a step
    assert ticks[0] == pytest.approx((5124.25 + 91.25 - 5000) / 2000 * 120, abs=2)


@both
@pytest.mark.parametrize("y", [0.0, 4600.0], ids=["far from the goals", "before a goal"])
def test_touches_are_those_of_the_whole_step(name: str, y: float) -> None:
    state = ahead()
    state.ball_position[:], state.ball_linear_velocity[:] = (1500, y, 93.15), 0
    state.car_position[:, 0], state.car_linear_velocity[:, 0] = (1500, y - 215, 17), (0, 1000, 0)
    totals = []
    for length in (8, 1):
        engine = SimEngine(simulator=name)
        engine.set_state(to_rlgym(state), {})
        total = 0
        for _ in range(24 // length):
            shown = engine.step({agent: np.tile(row(), (length, 1)) for agent in engine.agents}, {})
            total += shown.cars[engine.agents[0]].ball_touches
            assert not shown.cars[engine.agents[1]].ball_touches
        totals.append(total)
    assert totals[0] == totals[1] > 0


@both
@pytest.mark.parametrize("delay", [True, False])
def test_an_action_acts_one_tick_late_where_asked_for(name: str, delay: bool) -> None:
    engine = SimEngine(delay, simulator=name)
    env = started(engine)
    pushed = {agent: row(throttle=1, boost=1)[None] for agent in env.agents}
    speeds = [
        np.linalg.norm(engine.step(pushed, {}).cars[agent].physics.linear_velocity)
        for agent in [env.agents[0]] * 2
    ]
    assert (speeds[0] > 1) is not delay
    assert speeds[1] > 1


@both
def test_states_are_set_as_coarsely_as_in_a_match_if_asked(name: str) -> None:
    state = random_state(1, 1, seed=4)
    state.car_is_demoed[:] = 0
    state.car_demo_respawn_timer[:] = 0
    state.car_boost_amount[:] = 33.7
    state.car_linear_velocity[:] = 0, 2290, 0
    shown = SimEngine(simulator=name, as_in_a_match=True).set_state(to_rlgym(state), {})
    asked = to_rlgym(state)
    for agent, car in shown.cars.items():
        assert car.boost_amount == int(car.boost_amount)
        assert not car.is_jumping and not car.is_flipping and not car.has_jumped
        assert car.is_supersonic and car.supersonic_time > 0
        theirs = asked.cars[agent].physics
        within = ROUNDING[name]
        assert car.physics.position == pytest.approx(theirs.position, rel=1e-7, abs=within["position"])
        assert car.physics.rotation_mtx == pytest.approx(theirs.rotation_mtx, abs=within["rotation"])


@needs_native
def test_an_environment_goes_on_after_a_match_that_died() -> None:
    engine = SimEngine(simulator=ROCKETSIM3)
    env = started(engine)
    engine._simulator._matches.panic_next(0)  # type: ignore[union-attr]
    with pytest.raises(DeadMatches, match="match 0: "):
        env.step({agent: np.array([0]) for agent in env.agents})
    env.reset()
    env.step({agent: np.array([0]) for agent in env.agents})
    assert env.state.tick_count == 8


def test_a_simulator_that_cannot_be_had_is_refused_at_once() -> None:
    with pytest.raises(SimulatorError, match="simulator is 'rocketsim1', expected rocketsim2 or rocketsim3"):
        SimEngine(simulator="rocketsim1")
