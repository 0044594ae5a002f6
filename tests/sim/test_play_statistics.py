"""Compare a training's curves of play and of rewards with the matches themselves."""

from typing import Any

import numpy as np
import pytest
from rlgym.rocket_league.reward_functions import CombinedReward
from rlgym.rocket_league.reward_functions import TouchReward as PeerTouch

from rlgym_bridge.components.conditions import TimeoutCondition
from rlgym_bridge.components.reward_base import (
    BatchReward,
    WeightedSum,
    name_parts,
    name_reward,
    split_rewards,
)
from rlgym_bridge.components.rewards import (
    GoalReward,
    InAirReward,
    SpeedReward,
    TouchReward,
    VelocityPlayerToBallReward,
)
from rlgym_bridge.sim.play_statistics import LOOKED_AT_EVERY, PlayStatistics, means_of
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from tests.support.vector_parts import BallAhead, components, peers, play

MINUTE = 7200  # ticks


def by_team(before: MatchState, after: MatchState) -> np.ndarray:
    return np.tile([3.0, 1.0], (after.matches, 1))


def twos(before: MatchState, after: MatchState) -> np.ndarray:
    return np.full(after.car_boost_amount.shape, -2)


def played(steps: int, opponents: np.ndarray, **changes: Any) -> tuple[dict[str, float], VectorEnv]:
    env = VectorEnv(len(opponents), lambda: components(**changes))
    env.statistics = PlayStatistics(opponents)
    env.reset()
    play(env, steps, forward=True)
    return means_of(env.statistics.take()), env


def test_each_reward_is_shown_before_and_after_its_weight() -> None:
    opponents = np.array([[False, False], [False, True]])  # three cars of the policy: 3, 1 and 3
    means, _ = played(4, opponents, reward_fn=WeightedSum([(by_team, 0.5), (twos, 0.25)], team_spirit=0.5))
    assert means["reward_raw/by_team"] == pytest.approx(7 / 3)
    assert means["reward/by_team"] == pytest.approx(7 / 6)
    assert means["reward_raw/twos"] == -2 and means["reward/twos"] == -0.5
    assert means["reward_share/by_team"] == pytest.approx(0.7)  # sizes: 7/6 and 1/2
    assert means["reward_share/twos"] == pytest.approx(0.3)


def test_means_of_rewards_are_those_of_every_step() -> None:
    parts = [(SpeedReward(), 0.3), (VelocityPlayerToBallReward(), 2.0), (InAirReward(), 1.0)]
    reward = WeightedSum(parts)
    env = VectorEnv(2, lambda: components(reward_fn=reward, state_mutator=BallAhead()))
    env.statistics = PlayStatistics(np.zeros((2, 2), bool))
    env.reset()
    seen, rewards = [], []
    for _ in range(12):
        rewards.append(play(env, 1, forward=True)[0].rewards)
        seen.append([column.mean() for column in reward.last])
    means = means_of(env.statistics.take())
    for name, mean in zip(("speed", "velocity_to_ball", "in_air"), np.mean(seen, 0), strict=True):
        assert means[f"reward_raw/{name}"] == pytest.approx(mean, abs=1e-7)
    total = sum(means[f"reward/{name}"] for name in ("speed", "velocity_to_ball", "in_air"))
    assert total == pytest.approx(np.mean(rewards), abs=1e-6)


def test_rewards_of_others_are_shown_too() -> None:
    mixed = WeightedSum([(PeerTouch(), 2.0), (SpeedReward(), 1.0)])
    for reward, names in (
        (CombinedReward((PeerTouch(), 2.0), (GoalReward(), 1.0)), {"touch", "goal"}),
        (mixed, {"touch", "speed"}),
        (PeerTouch(), {"touch"}),
        (None, set()),
        (SpeedReward(), {"speed"}),
    ):
        means, _ = played(3, np.zeros((2, 2), bool), reward_fn=reward)
        assert {name.split("/")[1] for name in means if name.startswith("reward/")} == names
    assert means["reward/speed"] > 0


def test_a_reward_that_is_there_twice_has_two_names() -> None:
    inner = WeightedSum([(TouchReward(), 2.0), (TouchReward(strength=True), 1.0)])
    reward = WeightedSum([(TouchReward(), 1.0), (inner, 3.0), (PeerTouch(), 1.0)])
    given = [np.full((1, 2), size, np.float32) for size in range(5)]
    inner.last, reward.last = given[3:], given[:3]
    assert name_parts(reward) == [("touch", 1), ("touch", 6), ("touch_strength", 3), ("touch", 1)]
    assert [one[0, 0] for one in split_rewards(reward, given[0])] == [0, 3, 4, 2]
    statistics = PlayStatistics(np.zeros((1, 2), bool))
    statistics.count_rewards(split_rewards(reward, given[0]), lambda: name_parts(reward))
    means = means_of(statistics.take())
    assert means["reward_raw/touch_3"] == 2 and means["reward/touch_2"] == 18


def test_a_reward_without_a_name_has_that_of_its_class() -> None:
    class ABigJump(BatchReward): ...

    class NamedReward(BatchReward):
        name = "mine"

    assert [name_reward(one) for one in (ABigJump(), NamedReward(), InAirReward())] == [
        "abig_jump", "mine", "in_air",
    ]  # fmt: skip


def states() -> tuple[MatchState, MatchState]:
    """Two matches of 1v1 in which nothing happens."""
    before = MatchState(1, 1, 2)
    before.ball_position[:] = (0, 0, 93)
    return before, before.copy()


def counted(before: MatchState, after: MatchState, scored: tuple[int, int] = (0, 0)) -> dict[str, float]:
    statistics = PlayStatistics(np.array([[False, True], [False, True]]))  # blue is the policy
    touched = after.car_ball_touches > 0
    statistics.count(before, after, touched, touched, np.array(scored, np.int8), MINUTE)
    return means_of(statistics.take())


@pytest.mark.parametrize(("car", "side"), [(0, "policy"), (1, "opponents")])
def test_shots_and_saves_belong_to_the_car_that_touched(car: int, side: str) -> None:
    before, after = states()
    forward = 1 if car == 0 else -1
    after.car_ball_touches[0, car] = 1
    after.ball_linear_velocity[0, 1] = 3500 * forward
    means = counted(before, after)
    assert means[f"{side}/shots_per_minute"] == means[f"{side}/touches_per_minute"] == 0.5  # of two cars
    assert means[f"{side}/saves_per_minute"] == 0
    before.ball_linear_velocity[0, 1], after.ball_linear_velocity[0, 1] = -3500 * forward, 0
    means = counted(before, after)
    assert means[f"{side}/saves_per_minute"] == 0.5 and means[f"{side}/shots_per_minute"] == 0
    after.car_ball_touches[:] = 0  # nobody touched it
    assert not counted(before, after)[f"{side}/saves_per_minute"]


def test_goals_and_flips_are_counted_for_each_side() -> None:
    before, after = states()
    after.car_has_flipped[:, 1] = 1
    before.car_has_flipped[1, 1] = 1  # goes on
    means = counted(before, after, scored=(1, -1))
    assert means["policy/goals_per_minute"] == means["opponents/goals_per_minute"] == 0.5
    assert means["opponents/flips_per_minute"] == 0.5 and means["policy/flips_per_minute"] == 0


def test_what_cars_have_is_looked_at_now_and_then() -> None:
    statistics = PlayStatistics(np.array([[False, True]]))
    state = MatchState(1, 1, 1)
    state.car_boost_amount[:], state.car_on_ground[:] = (30, 70), (0, 1)
    state.car_linear_velocity[0, 0] = (300, 400, 0)
    for _ in range(LOOKED_AT_EVERY):
        nobody = np.zeros((1, 2), bool)
        statistics.count(state, state, nobody, nobody, np.zeros(1, np.int8), 8)
    means = means_of(statistics.take())
    assert [means[f"policy/{name}"] for name in ("boost", "speed", "time_in_air")] == [30, 500, 1]
    assert [means[f"opponents/{name}"] for name in ("boost", "speed", "time_in_air")] == [70, 0, 0]
    assert np.isnan(means_of(statistics.take())["policy/boost"])


def test_episodes_have_a_length_and_a_share_that_was_cut_off() -> None:
    means, env = played(31, np.zeros((2, 2), bool), truncation_cond=TimeoutCondition(1))
    assert means["episode_seconds"] == pytest.approx(1, abs=0.07) and means["truncated_share"] == 1
    assert "opponents/boost" not in means
    assert env.statistics is not None
    assert np.isnan(means_of(env.statistics.take())["episode_seconds"])


def test_sums_of_several_collectors_add_up() -> None:
    before, after = states()
    after.car_ball_touches[0, 0] = 1
    statistics = PlayStatistics(np.zeros((2, 2), bool))
    sums: dict[str, float] = {}
    for _ in range(2):
        touched = after.car_ball_touches > 0
        statistics.count(before, after, touched, touched, np.zeros(2, np.int8), MINUTE)
        taken = statistics.take()
        sums = {name: sums.get(name, 0) + value for name, value in taken.items()}
    assert means_of(sums) == pytest.approx(means_of(taken), nan_ok=True)


class Measured(SpeedReward):
    """A reward that measures something for the curves."""

    given: Any = None

    def metrics(self, state: MatchState) -> Any:
        if self.given is not None:
            return self.given
        return {"height": state.car_position[..., 2], "demolished": state.car_is_demoed.any(1), "one": 1}


def test_components_may_measure_something_of_their_own() -> None:
    reward = WeightedSum([(Measured(), 1.0), (GoalReward(), 1.0)])
    means, env = played(LOOKED_AT_EVERY, np.zeros((2, 2), bool), reward_fn=reward)
    assert means["metrics/height"] == pytest.approx(env.state.car_position[..., 2].mean())
    assert means["metrics/demolished"] == 0 and means["metrics/one"] == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"metrics of Measured gave a list, expected a dict .*test_play_statistics\.py, line \d+"),
        ({"mine": "high"}, r"metrics of Measured gave a str for 'mine', expected a number or an array"),
        ({3: 1.0}, r"metrics of Measured gave a float for 3, expected a number or an array"),
    ],
)
def test_a_measurement_that_is_no_number_is_named(given: Any, message: str) -> None:
    reward = Measured()
    reward.given = given
    with pytest.raises(ValueError, match=message):
        played(LOOKED_AT_EVERY, np.zeros((2, 2), bool), reward_fn=reward)


class Providing:
    """Numbers in RLGym's shared info."""

    def create(self, shared_info: dict[str, Any]) -> dict[str, Any]:
        return {"stage": 2, "text": "no number", "combo": {"length": 3.0, "name": "flip"}}

    def set_state(self, agents: Any, state: Any, shared_info: dict[str, Any]) -> dict[str, Any]:
        return shared_info

    def step(self, agents: Any, state: Any, shared_info: dict[str, Any]) -> dict[str, Any]:
        shared_info["stage"] = 4
        return shared_info


class PeerMeasured(PeerTouch):  # type: ignore[misc]
    """A reward of RLGym's form that measures something; it is given one match."""

    def metrics(self, state: MatchState) -> dict[str, float]:
        return {"matches": state.matches}


def test_numbers_in_the_shared_info_are_shown() -> None:
    changes = {"shared_info_provider": Providing(), "reward_fn": CombinedReward((PeerMeasured(), 1.0))}
    means, _ = played(LOOKED_AT_EVERY, np.zeros((2, 2), bool), **changes)
    shown = {name: value for name, value in means.items() if name.startswith("metrics/")}
    assert shown == {"metrics/stage": 4, "metrics/combo/length": 3, "metrics/matches": 1}


def test_matches_of_rlgyms_components_are_counted_alike() -> None:
    found = []
    for parts in (lambda: components(state_mutator=BallAhead()), peers):
        env = VectorEnv(2, parts)
        env.statistics = PlayStatistics(np.zeros((2, 2), bool))
        env.reset(3)
        play(env, 60, forward=True)
        found.append(means_of(env.statistics.take()))
    assert found[0] == pytest.approx(found[1], abs=1e-5) and found[0]["policy/goals_per_minute"] > 0
