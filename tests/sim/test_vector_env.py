"""Many matches stepped together: what RLGym's loop would give for each, and new episodes by themselves."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rlgym.rocket_league.action_parsers import LookupTableAction as PeerLookup

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.conditions import GoalCondition, TimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutator_base import WeightedMutator
from rlgym_bridge.components.mutators import SETTLED, KickoffMutator, RandomStateMutator
from rlgym_bridge.components.relative_obs import RelativeObs
from rlgym_bridge.components.rewards import (
    GoalReward,
    TouchReward,
    WeightedSum,
)
from rlgym_bridge.sim.batch_parts import draw_hitboxes
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from tests.support.vector_parts import BallAhead, begun, components, play


@pytest.mark.parametrize("parser", [LookupTableAction, PeerLookup])
@pytest.mark.parametrize(("tick_skip", "ticks"), [(5, 5), (None, 1)])
def test_a_single_row_is_held_for_the_tick_skip(parser: Any, tick_skip: int | None, ticks: int) -> None:
    env = VectorEnv(2, lambda: components(parser=parser()), tick_skip=tick_skip)
    env.reset()
    began = env.state.frame.copy()
    play(env, 3, forward=True)
    assert (env.state.frame - began).tolist() == [3 * ticks] * 2


class Halved(TouchReward):
    """Gives a number a car, whatever the number of matches."""

    def reward_batch(self, *steps: Any) -> np.ndarray:
        return super().reward_batch(*steps)[0]


class Written(TouchReward):
    """Gives text in place of numbers."""

    def reward_batch(self, *steps: Any) -> np.ndarray:
        return super().reward_batch(*steps).astype(str)


class Whole(GoalCondition):
    """Gives numbers in place of bools."""

    def done_batch(self, state: MatchState) -> np.ndarray:
        return super().done_batch(state).astype(np.int8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward_fn": Halved()}, r"reward Halved gave an array \(2,\) of .*, expected an array \(3, 2\)"),
        ({"reward_fn": WeightedSum([(Halved(), 1.0)])}, r"reward Halved gave an array \(2,\)"),
        ({"reward_fn": WeightedSum([(Written(), 1.0)])}, r"reward Written gave an array \(3, 2\) of <U"),
        ({"termination_cond": Whole()}, r"condition Whole gave an array \(3,\) of int8, .* \(3,\) of bool"),
    ],
)
def test_what_has_another_shape_is_named_with_its_line(changes: dict[str, Any], message: str) -> None:
    env = begun(3, **changes)
    with pytest.raises(ValueError, match=rf"{message}.* \({re.escape(__file__)}, line \d+\)"):
        env.step(np.zeros((3, 2), np.int64))


class SpoiltObs(RelativeObs):
    """Gives what a function makes of the right observation."""

    def __init__(self, spoil: Callable[[np.ndarray], Any]) -> None:
        super().__init__(None)
        self._spoil = spoil

    def build_batch(self, state: MatchState, cars: Any = None) -> Any:
        return self._spoil(super().build_batch(state, cars))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda obs: None, r"SpoiltObs gave None, expected an array \(3, 2, size\)"),
        (lambda obs: obs.tolist(), "SpoiltObs gave a list"),
        (lambda obs: obs[0], r"SpoiltObs gave an array \(2, \d+\) of float32"),
        (lambda obs: obs[:, :1], r"SpoiltObs gave an array \(3, 1, \d+\)"),
        (lambda obs: obs.astype(str), r"SpoiltObs gave an array \(3, 2, \d+\) of <U32"),
        (
            lambda obs: obs + np.reshape([0, 1, np.inf], (3, 1, 1)),
            r"SpoiltObs gave inf as number \d+ \(\S+\) for \S+ in",
        ),
    ],
)
def test_a_spoilt_observation_is_named_with_its_line(spoil: Any, message: str) -> None:
    env = VectorEnv(3, lambda: components(obs_builder=SpoiltObs(spoil)))
    with pytest.raises(ValueError, match=rf"{message}.* \({re.escape(__file__)}, line \d+\)"):
        env.reset()


def test_goals_terminate_and_time_truncates() -> None:
    env = begun(1, state_mutator=BallAhead(), reward_fn=GoalReward())
    steps = play(env, 60, forward=True)
    first = next(i for i, step in enumerate(steps) if step.terminated[0])
    goal = steps[first]
    assert not goal.truncated[0] and goal.rewards.tolist() == [[1, -1]]
    assert all(not step.rewards.any() for step in steps[:first])
    ball_y = DefaultObs(zero_padding=None).names(1, 1).index("ball/position/y")
    assert goal.final_obs[0, 0, ball_y] * 2300 > 5215.5, "the last of the old episode"
    assert goal.obs[0, 0, ball_y] * 2300 == pytest.approx(3500), "the first of the new one"

    class Both(GoalCondition):
        pass

    env = begun(1, truncation_cond=TimeoutCondition(1))
    ends = [bool(step.truncated[0]) for step in play(env, 32)]
    assert [i for i, end in enumerate(ends) if end] == [14, 29], "15 decisions of 8 ticks are a second"
    env = begun(1, truncation_cond=Both(), termination_cond=Both(), state_mutator=BallAhead())
    step = next(step for step in play(env, 100, forward=True) if step.terminated[0])
    assert not step.truncated[0], "what is terminated needs no bootstrapping"


def test_a_goal_is_the_scorers_in_the_step_that_ends_with_it() -> None:
    env = begun(1, state_mutator=BallAhead())
    seen = {(bool(play(env, 1, forward=True)[0].terminated[0]), int(env.scored[0])) for _ in range(60)}
    assert seen == {(False, 0), (True, 1)}, "blue drives the ball into orange's goal"


def test_equal_seeds_give_equal_matches_after_a_reset_too() -> None:
    def make(seed: int) -> VectorEnv:
        return VectorEnv(
            3,
            lambda: components(state_mutator=RandomStateMutator(), truncation_cond=TimeoutCondition(1)),
            action_delay=(0, 2),
            seed=seed,
        )

    def bytes_of(env: VectorEnv, seed: int | None = None) -> list[bytes]:
        return [env.reset(seed).tobytes(), *(step.obs.tobytes() for step in play(env, 40))]

    env = make(1)
    once = bytes_of(env)
    assert once == bytes_of(make(1)) == bytes_of(env, seed=1)
    assert once != bytes_of(make(2))


class Calls(WeightedMutator):
    """Somebody's own mutator, which may change from episode to episode; notes for how many it is called."""

    def __init__(self) -> None:
        super().__init__([(KickoffMutator(), 1.0)])
        self.matches: list[int] = []

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        self.matches.append(state.matches)
        super().apply_batch(state, rng)


def test_new_states_are_drawn_in_blocks_from_standard_mutators(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    original = KickoffMutator.apply_batch

    def noted(self: KickoffMutator, state: MatchState, rng: np.random.Generator) -> None:
        drawn.append(state.matches)
        original(self, state, rng)

    monkeypatch.setattr(KickoffMutator, "apply_batch", noted)
    each = TimeoutCondition(1 / 15)
    env = begun(3, truncation_cond=each)
    ended = sum(len(step.final_obs) for step in play(env, 20))
    assert ended == 60 and drawn == [32, 32], "63 episodes have begun"
    own = Calls()
    env = begun(3, truncation_cond=each, state_mutator=own)
    play(env, 20)
    assert own.matches == [3] * 21


def test_delays_are_drawn_for_each_episode() -> None:
    env = VectorEnv(8, lambda: components(truncation_cond=TimeoutCondition(0.5)), action_delay=(0, 2))
    env.reset()
    seen = set()
    for _ in range(10):
        play(env, 8)
        seen.update(env._delays[:, 0].tolist())
    assert seen == {0, 1, 2}


def test_cars_with_a_delay_of_their_own_keep_it() -> None:
    env = VectorEnv(2, components, action_delay=9, own_delays=np.array([[-1, 0], [1, -1]]))
    env.reset()
    forward = int(np.flatnonzero(PeerLookup.make_lookup_table()[:, 0] == 1)[0])
    for expected in ([[0, 1], [1, 0]], [[1, 1], [1, 1]]):
        env.step(np.full((2, 2), forward))
        assert env.state.car_controls[..., 0].tolist() == expected


def test_counts_are_those_since_the_last_time() -> None:
    env = begun(2, state_mutator=BallAhead())
    steps = play(env, 150, forward=True)
    counts = env.take_counts()
    goals = sum(int(step.terminated.sum()) for step in steps)
    assert counts["goals"] == goals > 0
    assert counts["episodes"] == sum(len(step.final_obs) for step in steps)
    assert counts["touches"] >= 1
    assert counts["game_minutes"] == pytest.approx(2 * 150 * 8 / 7200)
    assert counts["car_minutes"] == pytest.approx(2 * counts["game_minutes"])
    assert not any(env.take_counts().values())


def test_rows_that_change_from_tick_to_tick_are_played() -> None:
    class Wiggle(LookupTableAction):
        def parse_batch(self, actions: np.ndarray) -> np.ndarray:
            rows = super().parse_batch(actions).repeat(8, 2)
            rows[:, :, 4:, 1] = -1
            return rows

    env = begun(2, parser=Wiggle())
    play(env, 3)
    assert (env.state.car_controls[..., 1] == -1).all()


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


def test_every_entry_is_drawn_as_often() -> None:
    drawn = draw_hitboxes([0, 0, 4], (3000, 2), np.random.default_rng(0))
    assert (drawn == 0).mean() == pytest.approx(2 / 3, abs=0.02)
    assert set(np.unique(drawn)) == {0, 4}
