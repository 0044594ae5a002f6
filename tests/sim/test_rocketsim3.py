"""Training's matches in RocketSim 3: all components play, seeds repeat, and a match that dies begins anew."""

import logging
import sys
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.physics import CONSTANTS
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, DeadMatches, make_simulator
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import derive
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import TrainingSettings, check_settings
from tests.support.processes import run_to_end
from tests.support.simulators import needs_native
from tests.support.vector_parts import BallAhead, components, play

pytestmark = needs_native


def env(matches: int = 4, **changes: Any) -> VectorEnv:
    return VectorEnv(matches, components, simulator=ROCKETSIM3, **changes)


def all_rewards(**changes: Any) -> TrainingSettings:
    """Return settings in which every reward counts."""
    weights = [field.name for field in fields(TrainingSettings)]
    weights = weights[weights.index("goal") : weights.index("mate_distance") + 1]
    return check_settings(
        {"simulator": ROCKETSIM3, "matches": 16}
        | dict.fromkeys(weights, 1.0)
        | {"no_touch_seconds": 3.0}
        | changes
    )


@pytest.mark.parametrize("sizes", [[1, 1], [3, 3]], ids=["1v1", "3v3"])
def test_every_standard_component_plays(sizes: list[int]) -> None:
    initial_states = {"kickoff": 0.2, "anywhere": 0.2, "shot": 0.2, "dribble": 0.2, "collision": 0.2}
    settings = all_rewards(team_sizes=sizes, initial_states=initial_states, obs_noise={"ball_position": 1.0})
    matches = Task(settings).make_env()
    assert np.isfinite(matches.reset(0)).all()
    steps = play(matches, 80)
    assert all(np.isfinite(step.obs).all() and np.isfinite(step.rewards).all() for step in steps)
    counts = matches.take_counts()
    assert counts["touches"] > 5
    assert counts["episodes"] > 5
    assert counts["dead_matches"] == 0


def test_each_episode_draws_delays_hitboxes_and_constants() -> None:
    settings = all_rewards(
        action_delay=[1, 6], action_delay_noise=0.5, hitboxes="all",
        physics={"gravity": {"value": 1.0, "low": 0.5, "high": 1.5}},
    )  # fmt: skip
    matches = Task(settings).make_env()
    matches.reset(0)
    assert len(np.unique(matches.state.car_hitbox)) > 2
    matches.state.ball_position[:] = 0, 0, 1500
    matches.state.ball_linear_velocity[:] = 0, 0, -1
    matches._simulator.put(list(range(16)), matches.state.copy())
    play(matches, 4)
    assert len(np.unique(matches.state.ball_linear_velocity[:, 2].round(1))) > 8


_PLAY = """
import hashlib, sys
from tests.support.vector_parts import components, play
from rlgym_bridge.sim.vector_env import VectorEnv
env = VectorEnv(8, components, (2, 2), simulator="rocketsim3", action_delay=(0, 4))
env.reset(5)
digest = hashlib.sha256()
for step in play(env, 60, forward=True):
    digest.update(step.obs.tobytes() + step.rewards.tobytes())
digest.update(env.state.buffer.tobytes())
print(digest.hexdigest())
"""


def test_equal_seeds_give_equal_bits_in_two_processes() -> None:
    words = [run_to_end([sys.executable, "-c", _PLAY], check=True).stdout for _ in range(2)]
    assert len(words[0].strip()) == 64
    assert words[0] == words[1]


def test_all_constants_but_boost_in_the_air_are_the_older_one_s() -> None:
    own = make_simulator(ROCKETSIM3, 1, 1, 1)._own  # type: ignore[attr-defined]
    named = {"ball_world_restitution": "ball_bounciness"}
    found = {name: abs(own[named.get(name, name)]) for name in CONSTANTS}
    expected = CONSTANTS | {"boost_accel_air": 991.667}  # beside which throttle adds 66.67
    assert found == pytest.approx(expected, rel=1e-5)


def test_boost_in_the_air_scales_as_in_the_older_engine() -> None:
    accelerations = []
    for name in (ROCKETSIM2, ROCKETSIM3):
        simulator = make_simulator(name, 1, 1, 0)
        simulator.set_mutators(0, {"boost_accel_air": 2.0})
        state = blank_state(1, 0, 1)
        state.car_position[:], state.car_boost_amount[:] = (0, 0, 1000), 100
        state.ball_position[:] = 3000, 3000, 93.15
        state.gravity[:] = state.boost_consumption[:] = 1
        derive(state)
        simulator.put([0], state)
        rows = np.tile(np.array([1, 0, 0, 0, 0, 0, 1, 0], np.float32), (1, 1, 12, 1))
        simulator.step(rows)
        before = simulator.state.car_linear_velocity[0, 0, 0]
        simulator.step(rows)
        accelerations.append(10 * (simulator.state.car_linear_velocity[0, 0, 0] - before))
    assert accelerations == pytest.approx([2050, 2050], abs=2)


# --- a match that dies --------------------------------------------------------------------------


def touching(seed: int = 0) -> VectorEnv:
    """Return matches in which a blue car has just begun to follow the ball."""
    matches = VectorEnv(3, lambda: components(state_mutator=BallAhead()), simulator=ROCKETSIM3, seed=seed)
    matches.reset()
    return matches


def test_a_match_that_dies_begins_anew_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole, hit = touching(), touching()
    expected, found = play(whole, 5), play(hit, 5)
    hit._simulator._matches.panic_next(1)  # type: ignore[attr-defined]
    before = hit.state.copy()
    actions = np.zeros((3, 2), int)
    with caplog.at_level(logging.WARNING):
        expected.append(whole.step(actions))
        found.append(hit.step(actions))
    assert "match 1: " in caplog.text
    step = found[-1]
    assert step.truncated.tolist() == [False, True, False]
    assert not step.terminated.any()
    assert (step.rewards[1] == 0).all()
    assert step.final_obs.shape == (1, *step.obs.shape[1:])
    assert (hit.state.frame[1], before.frame[1]) == (0, 40)
    assert hit.take_counts()["dead_matches"] == 1
    for _ in range(20):
        one, other = whole.step(actions), hit.step(actions)
        assert np.array_equal(one.obs[[0, 2]], other.obs[[0, 2]])
        assert np.array_equal(one.rewards[[0, 2]], other.rewards[[0, 2]])
    assert hit.state.frame[1] == 160
    assert hit.take_counts()["dead_matches"] == 0


def test_the_third_match_that_dies_says_what_to_report() -> None:
    matches = touching(seed=11)
    for number in (0, 2):
        matches._simulator._matches.panic_next(number)  # type: ignore[attr-defined]
        matches.step(np.zeros((3, 2), int))
    matches._simulator._matches.panic_next(1)  # type: ignore[attr-defined]
    with pytest.raises(
        DeadMatches, match=r"match 1: .*3 of 3 matches have died .*report .* the seed 11"
    ) as caught:
        matches.step(np.zeros((3, 2), int))
    assert caught.value.numbers == [1]


def test_a_dying_match_rewards_no_touch_a_second_time() -> None:
    matches = touching()
    for _ in range(60):
        step = play(matches, 1, forward=True)[0]
        if (matches.state.car_ball_touches > 0).any() and not step.terminated.any():
            break
    touched = np.flatnonzero((matches.state.car_ball_touches > 0).any(1)).tolist()
    assert touched
    matches.take_counts()
    matches._simulator._matches.panic_next(touched[0])  # type: ignore[attr-defined]
    step = matches.step(np.zeros((3, 2), int))
    assert (step.rewards[touched[0]] == 0).all()


def test_kickoffs_begin_with_a_ball_at_rest() -> None:
    matches = VectorEnv(2, lambda: components(state_mutator=KickoffMutator()), simulator=ROCKETSIM3)
    matches.reset(0)
    play(matches, 3)
    assert (matches.state.ball_linear_velocity == 0).all()
