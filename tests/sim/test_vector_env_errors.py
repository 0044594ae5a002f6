"""Wrong arguments and components of matches are named."""

from typing import Any

import numpy as np
import pytest
from rlgym.api import RewardFunction
from rlgym.rocket_league import obs_builders as rlgym_obs

from rlgym_bridge.components.actions import ContinuousAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.rewards import BatchReward, TouchReward, WeightedSum
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from tests.support.vector_parts import components, peers, play


class Odd(BatchReward):
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        rewards = np.zeros((after.matches, after.layout.cars), np.float32)
        rewards[1, 0] = np.nan
        return rewards


def test_what_goes_wrong_is_named() -> None:
    env = VectorEnv(2, lambda: components(reward_fn=WeightedSum([(TouchReward(), 1.0), (Odd(), 2.0)])))
    env.reset()
    with pytest.raises(ValueError, match=r"reward Odd \(weight 2\) gave nan for blue-0 in match 1"):
        play(env, 1)
    env = VectorEnv(1, lambda: components(parser=RepeatAction(ContinuousAction(), 8)))
    env.reset()
    with pytest.raises(ValueError, match="expected a finite number"):
        env.step(np.full((1, 2, 8), np.nan, np.float32))
    with pytest.raises(ValueError, match="no state_mutator"):
        VectorEnv(1, lambda: components(state_mutator=None))
    with pytest.raises(ValueError, match=r"action_delay is \(2, 1\), expected ticks, 0 or more"):
        VectorEnv(1, components, action_delay=(2, 1))
    for wrong in (np.zeros((1, 3), int), np.zeros((1, 2)), np.full((1, 2), -2)):
        with pytest.raises(ValueError, match=r"own_delays is .*, expected an array \(1, 2\) of whole ticks"):
            VectorEnv(1, components, own_delays=wrong)
    with pytest.raises(ValueError, match=r"delay_noise is nan, expected 0 to 1e.09 ticks"):
        VectorEnv(1, components, delay_noise=np.nan)
    env = VectorEnv(1, peers, (2, 2))
    with pytest.raises(ValueError, match="made 1 blue and 1 orange cars, expected 2 and 2"):
        env.reset()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tick_skip": 0}, "tick_skip is 0, expected a whole number, 1 or more"),
        ({"tick_skip": "8"}, "tick_skip is '8', expected a whole number"),
        ({"seed": -1}, "seed is -1, expected a whole number, 0 or more"),
        ({"seed": 1.5}, "seed is 1.5, expected a whole number"),
        (
            {"team_sizes": (0, 0)},
            r"team_sizes is \(0, 0\), expected \(blue, orange\), 0 to 4 cars each and one",
        ),
        ({"team_sizes": (1,)}, r"team_sizes is \(1,\), expected"),
        ({"team_sizes": (1, 5)}, r"team_sizes is \(1, 5\), expected"),
        ({"team_sizes": 3}, "team_sizes is 3, expected"),
        ({"action_delay": 1.5}, "action_delay is 1.5, expected ticks, 0 or more; or a pair of them"),
        ({"action_delay": (1,)}, r"action_delay is \(1,\), expected ticks"),
        ({"delay_noise": "1"}, "delay_noise is '1', expected 0 to 1e.09 ticks"),
        ({"hitbox": "octane"}, "hitbox is 'octane', expected the number of one, or a list of them: 0 octane"),
        ({"hitbox": 6}, "hitbox is 6, expected the number of one"),
        ({"hitbox": [0, 6]}, r"hitbox is \[0, 6\], expected the number of one, or a list of them"),
        ({"hitbox": []}, r"hitbox is \[\], expected the number of one"),
        ({"constants": {"BALL_DRAG": 1.1}}, r"constants is \{'BALL_DRAG': 1.1\}, expected .*Spread by name"),
        ({"constants": 3}, "constants is 3, expected .*Spread by name"),
        ({"components": None}, "components is a NoneType, expected a function that returns"),
        ({"components": int}, "components gave a int, expected rlgym_bridge.components.spec.Components"),
    ],
    ids=str,
)
def test_arguments_of_the_wrong_kind_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VectorEnv(**{"matches": 1, "components": components} | wrong)


def test_components_are_not_taken_for_what_makes_them() -> None:
    with pytest.raises(
        ValueError, match="components is a Components, expected a function that returns a new"
    ):
        VectorEnv(2, components())  # type: ignore[arg-type]


class Forgetful(RewardFunction[Any, Any, Any]):
    """Rewards the first car alone."""

    def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None:
        pass

    def get_rewards(self, agents: Any, *more: Any) -> dict[Any, float]:
        return {agents[0]: 1.0}


def test_a_reward_that_leaves_a_car_out_is_named() -> None:
    env = VectorEnv(2, lambda: components(reward_fn=Forgetful()))
    env.reset()
    with pytest.raises(
        ValueError, match="Forgetful gave no reward for orange-0 in match 0, expected one for"
    ):
        play(env, 1)


class Blind(DefaultObs):
    """Sees what it is told in place of one number."""

    shown = 0.0

    def build_batch(self, state: MatchState) -> np.ndarray:
        obs = super().build_batch(state)
        obs[-1, 1, 3] = self.shown
        return obs


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_an_observation_that_is_not_finite_is_named(bad: float) -> None:
    blind = Blind(zero_padding=None)
    env = VectorEnv(2, lambda: components(obs_builder=blind))
    env.reset()
    blind.shown = bad
    message = rf"Blind gave {bad} as number 3 \(ball/linear_velocity/x\) for orange-0 in match 1"
    with pytest.raises(ValueError, match=message):
        env.step(np.zeros((2, 2), np.int64))
    with pytest.raises(ValueError, match=message):
        env.reset()


class ForeignBlind(rlgym_obs.DefaultObs):
    """Sees what it is told in place of one number, by RLGym's own builder."""

    shown = 0.0

    def build_obs(self, agents: list[str], state: Any, shared_info: dict[str, Any]) -> dict[str, np.ndarray]:
        built = super().build_obs(agents, state, shared_info)
        built["orange-0"][3] = self.shown
        return built


def test_a_foreign_observation_that_is_not_finite_is_named() -> None:
    blind = ForeignBlind(zero_padding=None)
    env = VectorEnv(2, lambda: components(obs_builder=blind))
    env.reset()
    blind.shown = np.nan
    message = "ForeignBlind gave nan as number 3 of what orange-0 sees in match 0, expected a finite number"
    with pytest.raises(ValueError, match=message):
        env.step(np.zeros((2, 2), np.int64))
    with pytest.raises(ValueError, match=message):
        env.reset()
