"""`MatchEnv`: what `VectorEnv` plays, in the form of RLlib's multi-agent environments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from rlgym_bridge.components.actions import (
    LookupTableAction,
    RepeatAction,
)
from rlgym_bridge.components.conditions import GoalCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.training.rllib.env import MatchEnv
from rlgym_bridge.training.rllib.match_runner import MatchRunner
from tests.support.policy_folders import COUNTING_ENV, make_module
from tests.support.rllib_matches import DECISIONS, SPACES, config_of, each_parser, parts, ppo, timeout
from tests.support.vector_parts import BallAhead

NAMES = DefaultObs(zero_padding=None).names(1, 1)
FORWARD = int(np.flatnonzero((LookupTableAction.make_lookup_table() == [1, 0, 0, 0, 0, 0, 1, 0]).all(1))[0])


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
def test_it_shows_what_single_machine_training_shows(team_size: int, kind: str) -> None:
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
        assert truncated["__all__"] == over >= max(truncated.values())
        if over:
            np.testing.assert_array_equal(stacked(env.reset()[0], env), expected.obs)


def test_a_goal_is_shown_before_the_next_episode() -> None:
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
        assert truncated["__all__"] is False and not any(truncated.values())
        assert obs["blue-0"][ball] * 2300 > 5215.5


def test_a_reset_with_a_seed_starts_over() -> None:
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
    make_module(tmp_path, monkeypatch, "someones_env", COUNTING_ENV.format(delay=rlbot_delay))
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
        ({"components": "tests.support.rllib_matches:parts"}, "parts returned Components, expected an RLGym"),
        (
            config_of(parser=RepeatAction(LookupTableAction(masked=True), 8)),
            "have action masks, which the environments for RLlib do not pass on; expected components without",
        ),
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


def anatomy(episode: MultiAgentEpisode) -> dict[str, Any]:
    """Return what an episode is made of, without its values."""
    made: dict[str, Any] = {
        name: getattr(episode, name)
        for name in ("env_t_started", "env_t", "agent_t_started", "is_numpy", "is_done", "is_truncated")
    }
    spaces_ = episode.observation_space, episode.action_space
    made |= {"length": len(episode), "agents": episode.agent_ids, "spaces": spaces_}
    for agent, one in episode.agent_episodes.items():
        held = {name: getattr(one, name) for name in ("observations", "actions", "rewards", "infos")}
        for name, buffer in (held | one.extra_model_outputs).items():
            array = None if name == "infos" else (buffer.data.dtype.kind, buffer.data.shape[1:])
            made[f"{agent} {name}"] = array, len(buffer.data), buffer.lookback, buffer.finalized
        names = ("t_started", "t", "is_numpy", "is_terminated", "is_truncated", "module_id", "agent_id")
        made[agent] = [getattr(one, name) for name in names], one.observation_space, one.action_space
        assert one.multi_agent_episode_id == episode.id_
        made.pop(f"{agent} weights_seq_no", None)
    return made


@each_parser
@pytest.mark.parametrize("explore", [True, False])
def test_rllibs_own_runner_gives_episodes_as_ours_does(kind: str, explore: bool) -> None:
    # Ours have no lookback buffer, and arrays of other widths: int64, float32 for int32, float64.
    env = {"components": lambda: parts(kind, termination_cond=timeout(), truncation_cond=None)}
    theirs = MultiAgentEnvRunner(config=ppo(env=env, episode_lookback_horizon=0))
    ours = MatchRunner(config=ppo(env=env))
    starts = set()
    for steps in (DECISIONS + 2, 3, DECISIONS):
        episodes = [runner.sample(num_timesteps=2 * steps, explore=explore) for runner in (theirs, ours)]
        for own, other in zip(*episodes, strict=True):
            assert anatomy(own) == anatomy(other)
            starts.add(own.get_observations(0)["blue-0"].tobytes())
            assert np.abs(own.get_rewards(slice(None))["orange-0"]).min() > 0
    assert len(starts) == 2 * 5, "each match and each episode begins in its own way"


@pytest.mark.parametrize("runner", [MatchRunner, MultiAgentEnvRunner])
def test_an_episode_that_runs_out_of_time_is_not_terminated(runner: Any) -> None:
    (episode,) = runner(config=ppo(matches=1)).sample(num_timesteps=DECISIONS)
    every = [episode, *episode.agent_episodes.values()]
    assert [(one.is_terminated, one.is_truncated) for one in every] == [(False, True)] * 3
