"""Components of ours beside others: ours stay in batches, and the results are those of either alone."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rlgym.api import DoneCondition, RewardFunction
from rlgym.rocket_league import action_parsers, done_conditions, obs_builders, reward_functions
from rlgym.rocket_league.api import GameState
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

import rlgym_bridge
from rlgym_bridge.components import episode
from rlgym_bridge.components.batch_form import name_twin, works_in_batches
from rlgym_bridge.components.conditions import AllCondition, AnyCondition, GoalCondition, TimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.components.rewards import (
    BatchReward,
    GoalReward,
    SpeedReward,
    TouchReward,
    WeightedSum,
)
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.sim.vector_env import Step, VectorEnv
from rlgym_bridge.state import MatchState
from tests.support.vector_parts import BallAhead, components, play

_MATCHES = 3
_TIMEOUT = 1.5  # s; a goal of `BallAhead` takes less


def _ours(**changes: Any) -> Any:
    return components(
        **{"state_mutator": BallAhead(), "truncation_cond": TimeoutCondition(_TIMEOUT)} | changes
    )


def _theirs(kind: Any) -> Any:
    """Return RLGym's own timeout as long as ours."""
    return kind(_TIMEOUT)


MIXTURES = {
    "reward in our sum": lambda: {
        "reward_fn": WeightedSum([(GoalReward(), 10.0), (reward_functions.TouchReward(), 1.0)])
    },
    "reward in a sum within a sum": lambda: {
        "reward_fn": WeightedSum(
            [(GoalReward(), 10.0), (WeightedSum([(reward_functions.TouchReward(), 0.5)]), 2.0)]
        )
    },
    "ours in RLGym's sum": lambda: {
        "reward_fn": reward_functions.CombinedReward(
            (reward_functions.GoalReward(), 10.0), (WeightedSum([(TouchReward(), 1.0)]), 1.0)
        )
    },
    "all of RLGym's sum ours": lambda: {
        "reward_fn": reward_functions.CombinedReward((GoalReward(), 10.0), TouchReward())
    },
    "observation": lambda: {"obs_builder": obs_builders.DefaultObs(zero_padding=None)},
    "parser": lambda: {"parser": action_parsers.RepeatAction(action_parsers.LookupTableAction(), 8)},
    "termination": lambda: {"termination_cond": done_conditions.GoalCondition()},
    "truncation": lambda: {"truncation_cond": _theirs(done_conditions.TimeoutCondition)},
    "condition in our join": lambda: {
        "truncation_cond": AnyCondition(
            AllCondition(TimeoutCondition(_TIMEOUT), _theirs(done_conditions.TimeoutCondition)),
            TimeoutCondition(100.0),
        )
    },
    "ours in RLGym's join": lambda: {
        "truncation_cond": done_conditions.AnyCondition(
            TimeoutCondition(_TIMEOUT), done_conditions.TimeoutCondition(100.0)
        )
    },
    "mutator": lambda: {"state_mutator": MutatorSequence(FixedTeamSizeMutator(1, 1), BallAhead())},
}


@pytest.mark.parametrize("mixture", MIXTURES)
def test_one_third_party_component_changes_no_result(mixture: str) -> None:
    ours = VectorEnv(_MATCHES, _ours)
    mixed = VectorEnv(_MATCHES, lambda: _ours(**MIXTURES[mixture]()))
    np.testing.assert_allclose(mixed.reset(), ours.reset(), atol=1e-5)
    goals = cuts = touches = 0
    both = [[*play(env, 80, forward=True), *play(env, 80)] for env in (ours, mixed)]
    for our, its in zip(*both, strict=True):
        for name in Step._fields:
            np.testing.assert_allclose(getattr(its, name), getattr(our, name), atol=1e-5, err_msg=name)
        goals, cuts = goals + our.terminated.sum(), cuts + our.truncated.sum()
        touches += (our.rewards == 1).any()
    assert goals and cuts and touches


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by one with each game state made for components."""
    every: list[int] = []

    def counted(*arguments: Any) -> GameState[Any]:
        every.append(1)
        return to_rlgym(*arguments)

    monkeypatch.setattr(episode, "to_rlgym", counted)
    return every


@pytest.mark.parametrize(
    ("mixture", "a_match"),
    [
        ({}, 0),
        (MIXTURES["all of RLGym's sum ours"](), 0),
        (MIXTURES["mutator"](), 0),
        (MIXTURES["reward in our sum"](), 1),
        ({**MIXTURES["reward in our sum"](), **MIXTURES["termination"](), **MIXTURES["observation"]()}, 1),
    ],
    ids=["ours", "ours in RLGym's sum", "mutator", "reward", "reward, condition and observation"],
)
def test_a_game_state_is_made_once_a_step_and_match_if_at_all(
    mixture: dict[str, Any], a_match: int, made: list[int]
) -> None:
    env = VectorEnv(_MATCHES, lambda: _ours(**mixture))
    env.reset()
    assert len(made) == a_match * _MATCHES
    made.clear()
    steps = play(env, 5)
    assert not any(len(step.final_obs) for step in steps)
    assert len(made) == a_match * _MATCHES * 5


def test_ours_beside_a_third_party_reward_are_called_once() -> None:
    asked: list[int] = []

    class Counted(SpeedReward):
        def reward_batch(self, before: MatchState, after: MatchState, *flags: np.ndarray) -> np.ndarray:
            asked.append(after.matches)
            return super().reward_batch(before, after, *flags)

    class CountedObs(DefaultObs):
        def build_batch(self, state: MatchState, cars: Sequence[int] | None = None) -> np.ndarray:
            asked.append(-state.matches)
            return super().build_batch(state, cars)

    def parts() -> Any:
        reward = WeightedSum([(Counted(), 1.0), (reward_functions.TouchReward(), 1.0)])
        return _ours(reward_fn=reward, obs_builder=CountedObs(zero_padding=None))

    env = VectorEnv(_MATCHES, parts)
    env.reset()
    asked.clear()
    play(env, 2)
    assert asked == [-_MATCHES, _MATCHES] * 2


class Uneven(RewardFunction[Any, GameState[Any], float]):
    """Gives each car something else, and notes whom it was asked about."""

    def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None:
        self.asked: list[Any] = []

    def get_rewards(self, agents: Any, state: GameState[Any], *rest: Any) -> dict[Any, float]:
        self.asked.append(agents)
        return {agent: float(state.cars[agent].physics.position[0] + state.tick_count) for agent in agents}


def test_teams_share_what_a_third_party_reward_gives() -> None:
    env = VectorEnv(
        2, lambda: _ours(reward_fn=WeightedSum([(Uneven(), 0.1)], team_spirit=0.5, zero_sum=True)), (2, 1)
    )
    env.reset()
    rewards = play(env, 1)[0].rewards
    raw = 0.1 * (env.state.car_position[..., 0] + env.state.frame[:, None])
    blue = 0.5 * raw[:, :2] + 0.5 * raw[:, :2].mean(1, keepdims=True)
    expected = np.hstack([blue - raw[:, 2:], raw[:, 2:] - blue.mean(1, keepdims=True)])
    np.testing.assert_allclose(rewards, expected, rtol=1e-4)


class Moved(BatchReward):
    """Reward the distance along y since the last decision."""

    def reward_batch(self, before: MatchState, after: MatchState, *flags: np.ndarray) -> np.ndarray:
        moved: np.ndarray = after.car_position[..., 1] - before.car_position[..., 1]
        return moved


@pytest.mark.parametrize("team_spirit", [0.0, 0.5])
def test_a_live_match_judges_as_rlgyms_loop_does(team_spirit: float, made: list[int]) -> None:
    def reward() -> WeightedSum:
        parts = [(Moved(), 1.0), (Uneven(), 0.1), (reward_functions.CombinedReward(TouchReward()), 3.0)]
        return WeightedSum(parts, team_spirit)

    env, peer = VectorEnv(1, _ours, (2, 2)), reward()
    env.reset()
    calls = ComponentCalls(_ours(reward_fn=reward()))
    calls.begin(env.state, [1, 2])
    agents, flags = ["blue-1", "orange-0"], dict.fromkeys(["blue-1", "orange-0"], False)
    peer.reset(agents, to_rlgym(env.state), {})
    for _ in range(40):
        play(env, 1, forward=True)
        made.clear()
        calls.step(env.state)
        verdict = calls.judge()
        assert len(made) == 1
        ended = dict.fromkeys(agents, bool(GoalCondition().done_batch(env.state)[0]))
        assert verdict.terminated == ended
        expected = peer.get_rewards(agents, to_rlgym(env.state), ended, flags, {})
        assert dict(verdict.rewards) == pytest.approx(expected, rel=1e-6)
    asked: list[Any] = calls.parts.reward_fn.parts[1].asked  # type: ignore[union-attr]
    assert asked == peer.parts[1].asked


def test_a_live_match_of_ours_alone_makes_no_game_state(made: list[int]) -> None:
    env = VectorEnv(1, _ours)
    env.reset()
    calls = ComponentCalls(_ours(reward_fn=Moved()))
    calls.begin(env.state, [0])
    made.clear()
    before = float(env.state.car_position[0, 0, 1])
    for _ in range(40):
        play(env, 1, forward=True)
        calls.step(env.state)
        calls.observe()
        now = float(env.state.car_position[0, 0, 1])
        assert calls.judge().rewards == {"blue-0": pytest.approx(now - before, abs=1e-3)}
        before = now
    assert not made


class Mine(DoneCondition[Any, GameState[Any]]):
    def reset(self, *given: Any) -> None:
        pass

    def is_done(self, agents: Any, *rest: Any) -> dict[Any, bool]:
        return dict.fromkeys(agents, False)


def test_the_log_names_what_is_slow_and_its_fast_twin(caplog: pytest.LogCaptureFixture) -> None:
    VectorEnv(2, lambda: _ours(**MIXTURES["reward in our sum"](), termination_cond=Mine()))
    assert len(caplog.records) == 1
    said = caplog.records[0].getMessage()
    assert said.startswith(
        "TouchReward of rlgym (in batches: rlgym_bridge.rewards.TouchReward), Mine of tests:"
    )
    assert said.endswith("docs/train/rewards.md")
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "rlgym_bridge.sim.vector_env"):
        VectorEnv(2, lambda: _ours(**MIXTURES["mutator"]()))
        VectorEnv(2, lambda: _ours(**MIXTURES["all of RLGym's sum ours"]()))
    assert not caplog.records


def test_each_class_that_both_have_has_a_twin_in_batches() -> None:
    rooms = (
        (action_parsers, rlgym_bridge),
        (done_conditions, rlgym_bridge.conditions),
        (obs_builders, rlgym_bridge),
        (reward_functions, rlgym_bridge.rewards),
    )
    opened = {"AnyCondition", "AllCondition"}  # the former is opened, the latter differs
    twins = 0
    for theirs, ours in rooms:
        for name, kind in vars(theirs).items():
            if isinstance(kind, type) and hasattr(ours, name) and name not in opened:
                where = name_twin(kind)
                assert where == f"{ours.__name__.replace('components.', '')}.{name}"
                twins += 1
    assert twins == 8
    assert name_twin(TouchReward) is None and name_twin(Mine) is None
    assert works_in_batches(rlgym_bridge.rewards.TouchReward())
