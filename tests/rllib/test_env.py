"""`MatchEnv`: what `VectorEnv` plays, in the form of RLlib's multi-agent environments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from rlgym_bridge.actions import ContinuousAction, LookupTableAction, MultiDiscreteAction, RepeatAction
from rlgym_bridge.components import Components
from rlgym_bridge.conditions import GoalCondition, TimeoutCondition
from rlgym_bridge.mutators import KickoffMutator, RandomStateMutator
from rlgym_bridge.observations import DefaultObs
from rlgym_bridge.reward_base import BatchReward
from rlgym_bridge.rllib.env import MatchEnv
from rlgym_bridge.rllib.module import PolicyModule
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.state import MatchState
from tests.policy_folders import make_module
from tests.sim.test_vector_env import BallAhead
from tests.test_policy import ENV

PARSERS = {"Discrete": LookupTableAction, "MultiDiscrete": MultiDiscreteAction, "Box": ContinuousAction}
SPACES = {
    "Discrete": spaces.Discrete(90),
    "MultiDiscrete": spaces.MultiDiscrete([3, 3, 3, 3, 3, 2, 2, 2]),
    "Box": spaces.Box(-1.0, 1.0, (8,)),
}
DECISIONS = 9  # of an episode: 0.6 s of 8 ticks each
NAMES = DefaultObs(zero_padding=None).names(1, 1)
FORWARD = int(np.flatnonzero((LookupTableAction.make_lookup_table() == [1, 0, 0, 0, 0, 0, 1, 0]).all(1))[0])
each_parser = pytest.mark.parametrize("kind", PARSERS)


class Place(BatchReward):
    """Another number for every car and step: how far along the field it is."""

    def reward_batch(self, before: MatchState, after: MatchState, *_: Any) -> np.ndarray:
        return after.car_position[..., 1] / 1000


def parts(kind: str = "Discrete", **changes: Any) -> Components:
    made = {
        "obs_builder": DefaultObs(zero_padding=None),
        "parser": RepeatAction(PARSERS[kind](), 8),
        "reward_fn": Place(),
        "truncation_cond": TimeoutCondition(DECISIONS * 8 / 120),
        "state_mutator": RandomStateMutator(),
    }
    return Components(**made | changes)


def config_of(kind: str = "Discrete", team_size: int = 1, **changes: Any) -> dict[str, Any]:
    return {"components": lambda: parts(kind, **changes), "team_sizes": (team_size, team_size)}


def drawn(env: MatchEnv) -> dict[str, Any]:
    return {agent: space.sample() for agent, space in env.action_spaces.items()}


def stacked(by_agent: dict[str, Any], env: MatchEnv) -> np.ndarray:
    """Return `(1, cars, ...)`, as `VectorEnv` has it; all agents have to be there, and nobody else."""
    assert list(by_agent) == env.agents
    return np.stack(list(by_agent.values()))[None]


@each_parser
@pytest.mark.parametrize("team_size", [1, 2, 3])
def test_it_passes_rllibs_own_check(team_size: int, kind: str) -> None:
    env = MatchEnv(config_of(kind, team_size))
    check_multiagent_environments(env)
    assert env.agents == env.possible_agents and len(env.agents) == 2 * team_size
    for agent in env.agents:
        assert env.get_action_space(agent) == SPACES[kind]
        assert env.get_observation_space(agent).contains(env.reset()[0][agent])


@each_parser
@pytest.mark.parametrize("team_size", [1, 2, 3])
def test_it_shows_what_the_matches_of_single_machine_training_show(team_size: int, kind: str) -> None:
    config = config_of(kind, team_size) | {"action_delay": (0, 3)}
    env, peer = MatchEnv(config), VectorEnv(1, **config)
    obs, infos = env.reset(seed=5)
    np.testing.assert_array_equal(stacked(obs, env), peer.reset(5))
    assert infos == {}
    for step in range(2 * DECISIONS + 3):
        actions = drawn(env)
        obs, rewards, terminated, truncated, infos = env.step(actions)
        expected = peer.step(stacked(actions, env))
        over = step % DECISIONS == DECISIONS - 1
        np.testing.assert_array_equal(stacked(obs, env), expected.final_obs if over else expected.obs)
        np.testing.assert_array_equal(np.float32(stacked(rewards, env)), expected.rewards)
        assert all(type(reward) is float for reward in rewards.values()) and infos == {}
        assert terminated == dict.fromkeys((*env.agents, "__all__"), False)
        assert truncated == dict.fromkeys((*env.agents, "__all__"), over)
        if over:
            np.testing.assert_array_equal(stacked(env.reset()[0], env), expected.obs)


def test_an_episode_ended_by_a_goal_shows_the_goal_and_the_next_reset_the_episode_drawn_since() -> None:
    scored = {"termination_cond": GoalCondition(), "truncation_cond": None}
    env = MatchEnv(config_of(state_mutator=BallAhead(), **scored))
    ball = NAMES.index("ball/position/y")
    for _ in range(2):
        before, _ = env.reset()
        assert before["blue-0"][ball] * 2300 == pytest.approx(3500)
        for _ in range(100):
            obs, _, terminated, truncated, _ = env.step(dict.fromkeys(env.agents, FORWARD))
            if terminated["__all__"]:
                break
        assert terminated == dict.fromkeys((*env.agents, "__all__"), True)
        assert truncated == dict.fromkeys((*env.agents, "__all__"), False)
        assert obs["blue-0"][ball] * 2300 > 5215.5


def test_a_reset_with_a_seed_starts_over_and_one_without_goes_on() -> None:
    def played(env: MatchEnv, seed: int | None, steps: int = DECISIONS) -> bytes:
        seen = [env.reset(seed=seed)[0]]
        for number in range(steps):
            seen.append(env.step(dict.fromkeys(env.agents, 7 * number))[0])
        return b"".join(stacked(obs, env).tobytes() for obs in seen)

    env = MatchEnv(config_of())
    first = played(env, 3)
    assert played(env, 3) == played(MatchEnv(config_of()), 3) == first
    assert played(MatchEnv(config_of() | {"seed": 3}), None) == first
    half = played(env, 3, 4)  # and is not played to its end
    assert len({first, half, played(env, None), played(env, None), played(env, 4)}) == 5


def test_what_was_shown_is_not_written_to_later() -> None:
    env = MatchEnv(config_of())
    seen = [env.reset(seed=0)[0]] + [env.step(drawn(env))[0] for _ in range(DECISIONS)] + [env.reset()[0]]
    kept = [stacked(obs, env).copy() for obs in seen]
    for _ in range(DECISIONS):
        env.step(drawn(env))
    for obs, copy in zip(seen, kept, strict=True):
        np.testing.assert_array_equal(stacked(obs, env), copy)


@pytest.mark.parametrize(
    ("rlbot_delay", "own", "expected"), [(True, {}, 1), (False, {}, 0), (True, {"action_delay": 4}, 4)]
)
def test_an_rlgym_by_name_gives_components_and_delay(
    rlbot_delay: bool, own: dict[str, int], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(tmp_path, monkeypatch, "someones_env", ENV.format(delay=rlbot_delay))
    env = MatchEnv({"components": "someones_env:make"} | own)
    env.reset()
    steps = [env.step(dict.fromkeys(env.agents, FORWARD))[0]["blue-0"] for _ in range(2)]
    assert [obs[-1] for obs in steps] == [1, 2], "its provider counts the steps"
    # From wherever a car kicks off, it is about as fast after its first ticks: one more is 0.009.
    ours = parts(state_mutator=KickoffMutator(), parser=RepeatAction(LookupTableAction(), 6))
    peer = VectorEnv(1, lambda: ours, action_delay=expected)
    peer.reset()
    velocity = [NAMES.index(f"self/linear_velocity/{axis}") for axis in "xy"]
    for obs in steps:
        other = peer.step(np.full((1, 2), FORWARD)).obs[0, 0]
        assert np.linalg.norm(obs[velocity]) == pytest.approx(np.linalg.norm(other[velocity]), abs=0.002)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, 'components None, expected a function that returns .*Components, or "module:function"'),
        ({"components": 3}, "components 3, expected a function"),
        (config_of() | {"team_size": (1, 1)}, "'team_size', .* nearest is team_sizes"),
        (config_of() | {"matches": 2}, "env_config has 'matches', which MatchEnv does not know"),
        (config_of() | {"action_delay": -1}, "action_delay is -1, expected ticks"),
        (config_of(state_mutator=None), "no state_mutator"),
        ({"components": "nowhere_at_all:make"}, "nowhere_at_all .*cannot be imported"),
        ({"components": "tests.rllib.test_env:nobody"}, "has no nobody"),
        ({"components": "tests.rllib.test_env:parts"}, "parts returned Components, expected an RLGym"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(config: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MatchEnv(config)


@pytest.mark.parametrize(
    ("kind", "actions", "message"),
    [
        ("Discrete", {}, "actions are {}, expected .* for each of blue-0, orange-0"),
        ("Discrete", {"blue-0": 1, "orange-1": 2}, "'orange-1': 2}, expected .* blue-0, orange-0"),
        ("Discrete", {"blue-0": 1, "orange-0": [2, 3]}, r"'orange-0': \[2, 3\]}, expected"),
        ("Discrete", {"blue-0": 1, "orange-0": 90}, "car 1 holds 90, expected 0 to below 90"),
        ("Discrete", {"blue-0": 1.5, "orange-0": 1}, "dtype float64, expected whole numbers"),
        ("MultiDiscrete", {"blue-0": [0] * 8, "orange-0": [3] * 8}, "car 1 holds 3, expected 0 to below"),
        ("MultiDiscrete", {"blue-0": [0] * 7, "orange-0": [0] * 7}, r"\(1, 2, 7\), expected"),
        ("Box", {"blue-0": [np.nan] * 8, "orange-0": [0.0] * 8}, "car 0 holds nan, expected a finite"),
    ],
)
def test_actions_that_are_missing_or_wrong_are_refused(
    kind: str, actions: dict[str, Any], message: str
) -> None:
    env = MatchEnv(config_of(kind))
    env.reset()
    with pytest.raises(ValueError, match=message):
        env.step(actions)


@each_parser
def test_rllibs_own_runner_plays_several_of_them(kind: str) -> None:
    spec = RLModuleSpec(
        module_class=PolicyModule, model_config={"policy_layers": (8,), "critic_layers": (8,)}
    )
    config = (
        PPOConfig()
        .environment(MatchEnv, env_config=config_of(kind))
        .multi_agent(policies={"main"}, policy_mapping_fn=lambda agent, episode, **_: "main")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=2)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"main": spec}))
        .debugging(seed=0)
    )
    episodes = MultiAgentEnvRunner(config=config).sample(num_timesteps=2 * DECISIONS + 2)
    assert sorted(len(episode) for episode in episodes) == [1, 1, DECISIONS, DECISIONS]
    assert [episode.is_done for episode in episodes] == [True, True, False, False]
    starts = [episode.get_observations(0)["blue-0"].tobytes() for episode in episodes]
    assert len(set(starts)) == 4, "each match and each episode begins in its own way"
    for episode in episodes:
        assert np.abs(episode.get_rewards(slice(None))["orange-0"]).min() > 0
