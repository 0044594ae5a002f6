"""Wrong arguments and components of matches are named."""

import re
from typing import Any

import numpy as np
import pytest
from rlgym.api import DoneCondition, RewardFunction, StateMutator
from rlgym.rocket_league import obs_builders as rlgym_obs
from rlgym.rocket_league.api import GameState
from rlgym.rocket_league.reward_functions import CombinedReward
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from rlgym_bridge.components.actions import ContinuousAction, RepeatAction
from rlgym_bridge.components.rewards import BatchReward, TouchReward, WeightedSum
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from tests.support.vector_parts import begun, components, peers, play


class Odd(BatchReward):
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        rewards = np.zeros((after.matches, after.layout.cars), np.float32)
        rewards[1, 0] = np.nan
        return rewards


def test_what_goes_wrong_is_named() -> None:
    env = begun(2, reward_fn=WeightedSum([(TouchReward(), 1.0), (Odd(), 2.0)]))
    with pytest.raises(ValueError, match=r"reward Odd \(weight 2\) gave nan for blue-0 in match 1"):
        play(env, 1)
    env = begun(1, parser=RepeatAction(ContinuousAction(), 8))
    with pytest.raises(ValueError, match="expected a finite number"):
        env.step(np.full((1, 2, 8), np.nan, np.float32))
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
        ({"action_delay": (2, 1)}, r"action_delay is \(2, 1\), expected ticks, 0 or more"),
        (
            {"own_delays": np.zeros((1, 3), int)},
            r"own_delays is .*, expected an array \(1, 2\) of whole ticks",
        ),
        ({"own_delays": np.zeros((1, 2))}, "own_delays is .*, expected an array"),
        ({"own_delays": np.full((1, 2), -2)}, "own_delays is .*, expected an array"),
        ({"delay_noise": np.nan}, "delay_noise is nan, expected 0 to 1e.09 ticks"),
        ({"components": lambda: components(state_mutator=None)}, "no state_mutator"),
        ({"delay_noise": "1"}, "delay_noise is '1', expected 0 to 1e.09 ticks"),
        ({"hitbox": "octane"}, "hitbox is 'octane', expected the number of one, or a list of them: 0 octane"),
        ({"hitbox": 6}, "hitbox is 6, expected the number of one"),
        ({"hitbox": [0, 6]}, r"hitbox is \[0, 6\], expected the number of one, or a list of them"),
        ({"hitbox": []}, r"hitbox is \[\], expected the number of one"),
        ({"constants": {"BALL_DRAG": 1.1}}, r"constants is \{'BALL_DRAG': 1.1\}, expected .*Spread by name"),
        ({"constants": 3}, "constants is 3, expected .*Spread by name"),
        ({"components": components()}, "components is a Components, expected a function that returns a new"),
        ({"components": None}, "components is a NoneType, expected a function that returns"),
        ({"components": int}, "components gave a int, expected rlgym_bridge.components.spec.Components"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VectorEnv(**{"matches": 1, "components": components} | wrong)


class ThirdPartyBlind(rlgym_obs.DefaultObs):
    """Sees a given number in place of one, by RLGym's own builder."""

    shown = 0.0

    def build_obs(self, agents: list[str], state: Any, shared_info: dict[str, Any]) -> dict[str, np.ndarray]:
        built = super().build_obs(agents, state, shared_info)
        built["orange-0"][3] = self.shown
        return built


def test_a_third_party_observation_that_is_not_finite_is_named() -> None:
    blind = ThirdPartyBlind(zero_padding=None)
    env = begun(2, obs_builder=blind)
    blind.shown = np.nan
    message = (
        "ThirdPartyBlind gave nan as number 3 of what orange-0 sees in match 0, expected a finite number"
    )
    with pytest.raises(ValueError, match=message):
        env.step(np.zeros((2, 2), np.int64))
    with pytest.raises(ValueError, match=message):
        env.reset()


class Sets(StateMutator[Any]):
    """Sets one value of a state, which is no value of a match."""

    def __init__(self, where: str, name: str, value: Any) -> None:
        self.where, self.name, self.value = where, name, value

    def apply(self, state: GameState[Any], shared_info: dict[str, Any]) -> None:
        car = state.cars["blue-0"]
        holder = {
            "state": state,
            "config": state.config,
            "ball": state.ball,
            "car": car,
            "physics": car.physics,
        }
        setattr(holder[self.where], self.name, self.value)


@pytest.mark.parametrize(
    ("where", "name", "value", "message"),
    [
        ("ball", "angular_velocity", None, "angular_velocity of the ball is None, expected three numbers up"),
        ("ball", "position", [0, 0], r"position of the ball is \[0, 0\], expected three numbers up to 10000"),
        ("ball", "rotation_mtx", np.full((3, 3), np.nan), "rotation of the ball is .*, expected a finite"),
        ("physics", "linear_velocity", ["a"] * 3, "linear_velocity of blue-0 is .*, expected three numbers"),
        ("state", "ball", None, "physics of the ball is None, expected a PhysicsObject"),
        ("state", "boost_pad_timers", [0.0], "boost_pad_timers is .*, expected 34 finite numbers"),
        ("state", "tick_count", None, "tick_count is None, expected a finite number"),
        ("config", "gravity", "low", "gravity is low, expected up to 10"),
        ("car", "boost_amount", -20, "boost_amount of blue-0 is -20, expected 0 to 100"),
        ("car", "boost_amount", 150, "boost_amount of blue-0 is 150, expected 0 to 100"),
        ("car", "demo_respawn_timer", np.nan, "demo_respawn_timer of blue-0 is nan"),
        ("car", "has_flipped", None, "has_flipped of blue-0 is None, expected True or False"),
        ("car", "flip_time", np.zeros(1), r"flip_time of blue-0 is \[0\.\], expected a finite number"),
        ("car", "hitbox_type", 9, "hitbox_type of blue-0 is 9, expected 0 to 5"),
        ("car", "team_num", 2, "team_num of blue-0 is 2, expected 0 to 1"),
        ("car", "wheels_with_contact", (True,), "wheels_with_contact of blue-0 is .*, expected four flags"),
        ("car", "flip_torque", None, "flip_torque of blue-0 is None, expected three finite numbers"),
    ],
)
def test_a_value_that_no_match_has_is_named_with_its_mutator(
    where: str, name: str, value: Any, message: str
) -> None:
    def mutator() -> Any:
        return MutatorSequence(FixedTeamSizeMutator(), KickoffMutator(), Sets(where, name, value))

    with pytest.raises(ValueError, match=message + rf".*; Sets set it \({re.escape(__file__)}, line \d+\)"):
        VectorEnv(1, lambda: components(state_mutator=mutator())).reset()


def test_a_value_that_no_mutator_sets_is_named_with_all_of_them() -> None:
    def mutator() -> Any:
        inner = MutatorSequence(Sets("car", "boost_amount", 50))
        return MutatorSequence(FixedTeamSizeMutator(), inner)

    message = r"position of the ball is None.*; no part of MutatorSequence \(FixedTeamSizeMutator, Sets\) set"
    with pytest.raises(ValueError, match=message):
        VectorEnv(1, lambda: components(state_mutator=mutator())).reset()


class Gives(RewardFunction[Any, Any, Any]):
    def __init__(self, value: Any) -> None:
        self.value = value

    def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None: ...

    def get_rewards(self, agents: Any, *arguments: Any) -> Any:
        return dict.fromkeys(agents, self.value) if self.value != "no dict" else None


@pytest.mark.parametrize("among_others", [None, CombinedReward, WeightedSum])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            np.ones(1, np.float32),
            r"reward Gives gave an array \(1,\) of float32 for blue-0, expected a num.*",
        ),
        (None, "reward Gives gave None for blue-0, expected a number"),
        ("much", "reward Gives gave a str for blue-0, expected a number"),
        ("no dict", "reward Gives gave None, expected a dict with a number for each agent"),
    ],
)
def test_a_reward_that_is_no_number_is_named_with_its_line(
    among_others: Any, value: Any, message: str
) -> None:
    def reward() -> Any:
        if among_others is None:
            return Gives(value)
        pairs = [(Gives(1.0), 1.0), (Gives(value), 0.5)]
        return among_others(*pairs) if among_others is CombinedReward else among_others(pairs)

    env = begun(1, reward_fn=reward())
    with pytest.raises(ValueError, match=message + rf" \({re.escape(__file__)}, line \d+\)"):
        play(env, 1)


def test_a_reward_that_leaves_out_agents_is_named_with_its_line() -> None:
    class Silent(Gives):
        def get_rewards(self, agents: Any, *arguments: Any) -> Any:
            return {}

    env = begun(1, reward_fn=Silent(1.0))
    message = rf"Silent gave no reward for blue-0, .* \({re.escape(__file__)}, line \d+\)"
    with pytest.raises(ValueError, match=message):
        play(env, 1)


@pytest.mark.parametrize("given", [None, {"blue-0": None, "orange-0": None}])
def test_a_condition_without_an_answer_is_named_with_its_line(given: Any) -> None:
    class Silent(DoneCondition[Any, Any]):
        def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None: ...

        def is_done(self, agents: Any, state: Any, shared_info: Any) -> Any:
            return given

    env = begun(1, termination_cond=Silent())
    with pytest.raises(ValueError, match=r"condition Silent gave .*None.*, expected a dict .*, line \d+\)"):
        play(env, 1)
