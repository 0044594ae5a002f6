"""`RLGym` runs unchanged over our simulator and over a match, and sees the same in both."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from rlgym.api import RLGym, StateMutator, TransitionEngine
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import (
    AnyCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
    TimeoutCondition,
)
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator, RandomStateMutator
from rlgym_bridge.components.rewards import GoalReward, TouchReward, WeightedSum
from rlgym_bridge.controls import ControlsError
from rlgym_bridge.engines.live import LiveEngine, LiveEngineError
from rlgym_bridge.engines.sim import SimEngine
from rlgym_bridge.live.agent_connections import NoServer, match_of
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.server import Impairments
from rlgym_bridge.server.lineup import with_line_up
from rlgym_bridge.sim.simulator import ROCKETSIM2
from tests.support.rlgym_worlds import STANDARD, BallIntoGoal, Env, serving


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, int]]:
    with serving() as address:
        yield address


@contextmanager
def live(server: tuple[str, int], sizes: Any = (1, 1), **settings: Any) -> Iterator[LiveEngine]:
    engine = LiveEngine(sizes, server, dialect=STANDARD, patience=20.0, **settings)
    try:
        yield engine
    finally:
        engine.close()


def env_of(
    engine: TransitionEngine[Any, Any, Any],
    mutator: Any,
    sizes: tuple[int, int] = (1, 1),
    timeout: float = 30.0,
) -> Env:
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(*sizes), mutator),
        DefaultObs(zero_padding=None),
        RepeatAction(LookupTableAction(), 8),
        WeightedSum([(GoalReward(), 10.0), (TouchReward(), 1.0)]),
        engine,
        GoalCondition(),
        AnyCondition(NoTouchTimeoutCondition(timeout), TimeoutCondition(3 * timeout)),
    )


def play_both(
    first: Env, second: Env, steps: int, again: Callable[[], tuple[dict[Any, Any], dict[Any, Any]]]
) -> tuple[float, int]:
    """Play two environments with the same actions; return the greatest difference, and the episodes."""
    random = np.random.default_rng(7)
    (a, b), worst, episodes = again(), 0.0, 1
    for _ in range(steps):
        assert list(a) == list(b)
        worst = max(worst, *(float(np.abs(a[agent] - b[agent]).max()) for agent in a))
        actions = {agent: random.integers(90, size=1) for agent in a}
        a, *said = first.step(actions)
        b, *same = second.step(actions)
        assert said[1:] == same[1:]  # terminated, truncated
        assert said[0] == pytest.approx(same[0], abs=1e-5)
        if any(said[1].values()) or any(said[2].values()):
            a, b = again()
            episodes += 1
    return worst, episodes


def test_the_simulator_goes_on_as_rlgyms_own_engine() -> None:
    ours, theirs = SimEngine(simulator=ROCKETSIM2), RocketSimEngine[Any]()
    first, second = env_of(ours, KickoffMutator(seed=1)), env_of(theirs, KickoffMutator(seed=1))

    def again() -> tuple[dict[Any, Any], dict[Any, Any]]:
        obs = first.reset()
        second.reset()
        return obs, second.set_state(first.state)

    random = np.random.default_rng(0)
    for _ in range(3):
        a, b = again()
        for _ in range(100):
            for agent, seen in a.items():
                np.testing.assert_array_equal(seen, b[agent])
            actions = {agent: random.integers(90, size=1) for agent in a}
            a, b = first.step(actions)[0], second.step(actions)[0]


class PadsOf(StateMutator[Any]):
    """Sets the pads as another environment has them: a match leaves them as they are."""

    def __init__(self, other: Env) -> None:
        self.other = other

    def apply(self, state: Any, shared_info: dict[str, Any]) -> None:
        state.boost_pad_timers = self.other.state.boost_pad_timers.copy()


@pytest.mark.parametrize("sizes", [(1, 1), pytest.param((2, 2), marks=pytest.mark.slow)], ids=["1v1", "2v2"])
def test_from_set_states_a_match_equals_the_simulator(
    server: tuple[str, int], sizes: tuple[int, int]
) -> None:
    with live(server, sizes) as engine:
        match = env_of(engine, RandomStateMutator(seed=3), sizes, timeout=3.0)
        begins = MutatorSequence(RandomStateMutator(seed=3), PadsOf(match))
        sim = env_of(SimEngine(as_in_a_match=True, thrust=True), begins, sizes, timeout=3.0)
        worst, episodes = play_both(match, sim, 180, lambda: (match.reset(), sim.reset()))
    assert episodes > 3
    assert worst < 3e-4


@pytest.fixture(params=["simulator", "match"])
def engine(request: pytest.FixtureRequest) -> Iterator[TransitionEngine[Any, Any, Any]]:
    if request.param == "simulator":
        yield SimEngine(as_in_a_match=True)
    else:
        with live(request.getfixturevalue("server")) as one:
            yield one


def test_a_goal_ends_the_step_and_the_next_episode_begins(
    engine: TransitionEngine[Any, Any, Any],
) -> None:
    env = env_of(engine, BallIntoGoal())
    for _ in range(2):
        env.reset()
        began, steps = env.state.tick_count, 0
        done = False
        while not done:
            _, rewards, terminated, _ = env.step({agent: np.array([0]) for agent in env.agents})
            steps, done = steps + 1, all(terminated.values())
        assert env.state.goal_scored and env.state.scoring_team == 0
        assert rewards == {"blue-0": 10.0, "orange-0": -10.0}
        ticks = env.state.tick_count - began
        assert 8 * (steps - 1) < ticks < 8 * steps
        assert ticks == 26  # 5215.5 - 4800 uu at 2000 uu/s, and drag


def test_actions_for_other_agents_are_refused_by_name(engine: TransitionEngine[Any, Any, Any]) -> None:
    env = env_of(engine, KickoffMutator())
    env.reset()
    with pytest.raises(KeyError, match=r"actions are for \['blue-0'\], expected \['blue-0', 'orange-0'\]"):
        env.step({"blue-0": np.array([0])})
    rows = {agent: np.zeros((4 + number, 8)) for number, agent in enumerate(env.agents)}
    with pytest.raises(ValueError, match=r"different numbers of ticks.*'blue-0': 4, 'orange-0': 5"):
        engine.step(rows, {})
    with pytest.raises(
        ValueError, match=r"'blue-0' gave an array of shape \(7,\), expected \(8,\) or \(ticks, 8\)"
    ):
        engine.step({agent: np.zeros(7) for agent in env.agents}, {})
    with pytest.raises(ControlsError, match=r"throttle = 2.0 in row 0"):
        engine.step({agent: np.full((4, 8), 2.0) for agent in env.agents}, {})


def test_a_step_before_the_first_reset_is_refused(engine: TransitionEngine[Any, Any, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected `RLGym.reset` first"):
        engine.step({"blue-0": np.zeros((1, 8))}, {})
    with pytest.raises(ValueError, match=r"there is no state yet"):
        _ = engine.state


def test_cars_that_are_not_in_the_match_are_refused(server: tuple[str, int]) -> None:
    with (
        live(server) as engine,
        pytest.raises(ValueError, match="has 2 blue and 0 orange cars, expected 1 and 1"),
    ):
        env_of(engine, KickoffMutator(), (2, 0)).reset()


def test_a_match_says_what_it_does_not_set(server: tuple[str, int], caplog: pytest.LogCaptureFixture) -> None:
    class Odd(KickoffMutator):
        def apply(self, state: Any, shared_info: dict[str, Any]) -> None:
            super().apply(state, shared_info)
            state.boost_pad_timers[3] = 4.0
            state.config.gravity = 0.5

    with live(server) as engine:
        env = env_of(engine, Odd(seed=0))
        for _ in range(2):
            env.reset()
        assert env.state.config.gravity == pytest.approx(0.5)
    said = [record.getMessage() for record in caplog.records if "does not set" in record.getMessage()]
    assert said == ["a match does not set pad_timer: asked for 4, it is 0"]


def test_a_match_without_state_setting_is_named(server: tuple[str, int]) -> None:
    match = match_of(1, 1)
    match.enable_state_setting = False
    with live(server, match) as engine, pytest.raises(LiveEngineError, match="enable_state_setting"):
        env_of(engine, RandomStateMutator(seed=0)).reset()


def test_lost_packets_cost_rows_and_are_counted() -> None:
    with serving(impairments=Impairments(drop=10.0)) as lossy, live(lossy) as engine:
        env = env_of(engine, RandomStateMutator(seed=2))
        env.reset()
        began = env.state.tick_count
        for _ in range(50):
            *_, terminated, truncated = env.step({agent: np.array([18]) for agent in env.agents})
            assert not any(terminated.values()) and not any(truncated.values())
        assert 400 <= env.state.tick_count - began <= 420
        assert 20 <= engine.lost_ticks <= 70


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    with pytest.raises(NoServer, match=rf"no RLBot server at 127.0.0.1:{address[1]}"):
        LiveEngine((1, 1), address)


def test_the_delay_of_a_match_cannot_be_taken_away(server: tuple[str, int]) -> None:
    with live(server) as engine:
        assert engine.config == {"rlbot_delay": True}
        with pytest.raises(ValueError, match="expected True: actions act a tick late in a match"):
            engine.config = {"rlbot_delay": False}


def test_only_the_bots_that_nobody_starts_are_the_engines(server: tuple[str, int]) -> None:
    match = match_of(1, 1)
    with live(server, with_line_up(match, None, [CHASER])) as engine:
        env = env_of(engine, KickoffMutator(seed=0))
        env.reset()
        assert env.agents == ["blue-0"] and list(env.state.cars) == ["blue-0", "orange-0"]
        for _ in range(60):
            env.step({"blue-0": np.array([18])})
        assert np.linalg.norm(env.state.cars["orange-0"].physics.linear_velocity) > 500


def test_a_state_that_no_match_can_have_is_refused_by_name(engine: TransitionEngine[Any, Any, Any]) -> None:
    class Odd(KickoffMutator):
        def apply(self, state: Any, shared_info: dict[str, Any]) -> None:
            super().apply(state, shared_info)
            state.ball.position = np.array([0, np.nan, 100], np.float32)

    with pytest.raises(ValueError, match=r"position of the ball is \[.*nan.*\], expected three numbers up"):
        env_of(engine, Odd()).reset()


def test_an_engine_that_was_closed_says_so(server: tuple[str, int]) -> None:
    with live(server) as engine:
        env = env_of(engine, KickoffMutator())
        env.reset()
        engine.close()
        with pytest.raises(ValueError, match="the engine is closed"):
            env.step({agent: np.array([0]) for agent in ("blue-0", "orange-0")})


def test_a_match_begins_anew_after_one_whose_player_died(server: tuple[str, int]) -> None:
    for _ in range(3):
        engine = LiveEngine((1, 1), server, dialect=STANDARD, patience=20.0)
        env = env_of(engine, KickoffMutator())
        env.reset()
        env.step({agent: np.array([18]) for agent in env.agents})
        engine._stream._connections.close()  # as a script that raised: nobody tells the server to stop
    with live(server) as engine:
        env_of(engine, KickoffMutator()).reset()


def test_a_match_that_somebody_else_replaces_is_named(server: tuple[str, int]) -> None:
    with live(server) as first:
        env = env_of(first, KickoffMutator())
        env.reset()
        with live(server), pytest.raises(EOFError, match=rf"the match on {server[0]}:{server[1]} is over"):
            for _ in range(1000):
                env.step({agent: np.array([18]) for agent in env.agents})


@pytest.mark.parametrize("sizes", [(5, 5), (0, 0), (-1, 1)])
def test_team_sizes_that_no_match_has_are_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected 1 to 4 in a team"):
        LiveEngine(sizes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rlbot_delay": 8}, "rlbot_delay is 8, expected True or False; ticks of an action are tick_skip"),
        ({"seed": -1}, "seed is -1, expected a whole number, 0 or more"),
        ({"seed": "x"}, "seed is 'x', expected a whole number"),
        ({"tick_skip": 10**12}, "tick_skip is 1000000000000, expected a whole number of ticks, 1 to 7200"),
    ],
)
def test_a_sim_engine_names_an_argument_of_another_type(values, message):
    with pytest.raises(ValueError, match=message):
        SimEngine(**values)
