"""`MatchRunner`: the episodes that it returns, and how it is asked for them; what RLlib's own runner does."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

import torch
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rlgym_bridge.training.rllib.env import MatchEnv
from rlgym_bridge.training.rllib.match_runner import COUNTS, MatchRunner
from tests.support.rllib_episodes import logp_of
from tests.support.rllib_matches import (
    DECISIONS,
    SPACES,
    Place,
    by_team,
    config_of,
    each_parser,
    ppo,
    timeout,
)

TEAMS, CARS = ("blue", "orange"), ("blue-0", "orange-0")


def runner_of(*args: Any, **changes: Any) -> MatchRunner:
    """Return a runner whose two policies are not alike, and decided."""
    made = MatchRunner(config=ppo(*args, **changes))
    for parameter in (parameter for name in TEAMS for parameter in made.module[name].parameters()):
        parameter.data += 0.2 * torch.randn_like(parameter)
    return made


def column(episode: MultiAgentEpisode, agent: str, name: str) -> np.ndarray:
    """Return all that a chunk holds by one name."""
    one = episode.agent_episodes[agent]
    get = getattr(one, f"get_{name}", None)
    return one.get_extra_model_outputs(name, slice(None)) if get is None else get(slice(None))


def inputs_of(runner: MatchRunner, name: str, episode: MultiAgentEpisode, agent: str) -> np.ndarray:
    """Return what a module says of the observations that were acted on, in a batch of its own."""
    obs = torch.from_numpy(column(episode, agent, "observations")[:-1])
    return runner.module[name].forward_inference({"obs": obs})["action_dist_inputs"].numpy()


def likeliest(kind: str, inputs: np.ndarray) -> np.ndarray:
    if kind == "Box":
        return inputs[:, :8]
    sizes = [90] if kind == "Discrete" else SPACES[kind].nvec
    parts = np.split(inputs, np.cumsum(sizes)[:-1], axis=1)
    return np.stack([part.argmax(1) for part in parts], 1).reshape(len(inputs), *SPACES[kind].shape)


@each_parser
@pytest.mark.parametrize("explore", [True, False])
def test_equal_actions_and_seeds_give_equal_episodes(kind: str, explore: bool) -> None:
    runner, env = runner_of(kind, 1), MatchEnv(config_of(kind))
    played = [*runner.sample(num_timesteps=DECISIONS + 4, explore=explore), *runner.sample(num_timesteps=12)]
    assert [len(episode) for episode in played] == [DECISIONS, 4, DECISIONS - 4, 7]
    obs, _ = env.reset(seed=3)
    for episode in played:
        for step in range(len(episode)):
            for agent in CARS:
                np.testing.assert_array_equal(column(episode, agent, "observations")[step], obs[agent])
            actions = {agent: column(episode, agent, "actions")[step] for agent in CARS}
            obs, rewards, *_ = env.step(actions)
            for agent in CARS:
                assert column(episode, agent, "rewards")[step] == rewards[agent]
        for agent in CARS:
            np.testing.assert_array_equal(column(episode, agent, "observations")[-1], obs[agent])
        if episode.is_done:
            obs, _ = env.reset()


@pytest.mark.parametrize("cause", ["termination_cond", "truncation_cond"])
def test_chunks_of_an_episode_go_on_from_each_other(cause: str) -> None:
    ends = {"truncation_cond": None, cause: timeout()}
    runner, chunks = runner_of(env=config_of(**ends)), defaultdict(list)
    for _ in range(7):
        sample = runner.sample(num_timesteps=2 * 4)
        assert sum(len(episode) for episode in sample) == 2 * 4
        for episode in sample:
            chunks[episode.id_].append(episode)
    assert len(chunks) == 2 * 4
    for number, parts in enumerate(chunks.values()):
        assert [part.is_done for part in parts] == [False] * (len(parts) - 1) + [number < 6]
        assert sum(map(len, parts)) == (DECISIONS if number < 6 else 1)
        first = 0
        for part in parts:
            assert (part.env_t_started, part.env_t) == (first, first + len(part))
            assert part.is_terminated == (part.is_done and cause == "termination_cond")
            for agent in CARS:
                one = part.agent_episodes[agent]
                assert (one.t_started, one.t) == (part.env_t_started, part.env_t)
                assert part.agent_t_started[agent] == first
                assert (one.is_terminated, one.is_truncated) == (part.is_terminated, part.is_truncated)
                assert len(column(part, agent, "observations")) == len(part) + 1
            first = part.env_t
        for agent in CARS:
            for before, after in pairwise(column(part, agent, "observations") for part in parts):
                np.testing.assert_array_equal(before[-1], after[0])


@each_parser
@pytest.mark.parametrize("explore", [True, False])
def test_what_is_said_of_actions_is_the_modules_own(kind: str, explore: bool) -> None:
    runner, actions = runner_of(kind), []
    for episode in runner.sample(num_timesteps=2 * 14, explore=explore):
        for agent in CARS:
            name = by_team(agent, episode)
            assert episode.agent_episodes[agent].module_id == episode.module_for(agent) == name
            inputs = inputs_of(runner, name, episode, agent)
            found, done = (column(episode, agent, column_) for column_ in ("action_dist_inputs", "actions"))
            actions.append(done)
            np.testing.assert_allclose(found, inputs, rtol=1e-4, atol=1e-5)
            if explore:
                logp = column(episode, agent, "action_logp")
                np.testing.assert_allclose(logp, logp_of(SPACES[kind], inputs, done), rtol=1e-4, atol=1e-4)
            else:
                np.testing.assert_allclose(done, likeliest(kind, inputs), atol=1e-5)
    assert explore <= (len(np.unique(np.concatenate(actions), axis=0)) > 20)


@each_parser
def test_random_actions_come_from_the_space_alone(kind: str) -> None:
    episodes = runner_of(kind).sample(num_timesteps=2 * 30, random_actions=True)
    assert not any(one.agent_episodes[agent].extra_model_outputs for one in episodes for agent in CARS)
    actions = np.concatenate([column(one, agent, "actions") for one in episodes for agent in CARS])
    assert all(SPACES[kind].contains(action) for action in actions)
    assert len(np.unique(actions, axis=0)) > 40


@pytest.mark.parametrize("count", [1, 2, 3])
def test_episodes_that_are_asked_for_are_whole_and_begin_anew(count: int) -> None:
    runner, starts = runner_of(), set()
    for _ in range(2):
        runner.sample(num_timesteps=6)
        episodes = runner.sample(num_episodes=count)
        assert count <= len(episodes) <= count + 1 and all(e.is_done for e in episodes)
        assert {(e.env_t_started, len(e)) for e in episodes} == {(0, DECISIONS)}
        begun = runner.sample(num_timesteps=2)
        assert [(e.env_t_started, len(e)) for e in begun] == [(0, 1), (0, 1)]
        starts |= {column(e, "blue-0", "observations")[0].tobytes() for e in begun}
    assert len(starts) == 4, "a seed is for the first of them, no match is played twice"
    assert len({e.id_ for e in episodes + begun}) == len(episodes) + 2


@pytest.mark.parametrize(
    ("by", "trained", "asked", "steps"),
    [
        ("env_steps", None, 7, 4),
        ("agent_steps", None, 9, 3),
        ("agent_steps", ["blue"], 7, 4),
    ],
)
def test_steps_are_counted_as_the_config_says(by: str, trained: Any, asked: int, steps: int) -> None:
    assert [len(one) for one in runner_of(by=by, trained=trained).sample(num_timesteps=asked)] == [steps] * 2


@pytest.mark.parametrize("trained", [["blue"], {"blue"}, lambda name, batch: name == "blue"])
def test_only_cars_of_trained_modules_are_in_the_episodes(trained: Any) -> None:
    for episode in runner_of(trained=trained).sample(num_timesteps=2 * (DECISIONS + 2)):
        assert set(episode.agent_episodes) == episode.agent_ids == {"blue-0"}


def test_who_plays_is_asked_for_every_episode_anew_and_plays_it() -> None:
    said: dict[str, dict[str, str]] = defaultdict(dict)

    def who(agent: str, episode: MultiAgentEpisode, **_: Any) -> str:
        assert agent not in said[episode.id_], "it was asked before"
        said[episode.id_][agent] = TEAMS[CARS.index(agent) ^ (len(said) % 3 == 0)]
        return said[episode.id_][agent]

    runner = runner_of(who=who, trained=["blue"])
    episodes = [episode for _ in range(4) for episode in runner.sample(num_timesteps=2 * 10)]
    assert len({episode.id_ for episode in episodes}) == len(said) == 2 * 5
    for episode in episodes:
        (agent,) = episode.agent_ids
        assert said[episode.id_][agent] == episode.module_for(agent) == "blue"
        found = column(episode, agent, "action_dist_inputs")
        np.testing.assert_allclose(found, inputs_of(runner, "blue", episode, agent), rtol=1e-4, atol=1e-5)
    assert {agent for episode in episodes for agent in episode.agent_ids} == set(CARS)


@pytest.mark.parametrize("cars", [1, 2])
def test_metrics_are_what_the_episodes_say(cars: int) -> None:
    runner, sums = runner_of(trained=TEAMS[:cars]), defaultdict(lambda: np.zeros(cars))
    for steps in (7, 10, 5):
        episodes = runner.sample(num_timesteps=2 * steps)
        for one in episodes:
            sums[one.id_] += [column(one, agent, "rewards").sum(dtype=float) for agent in CARS[:cars]]
        returns = np.array([sums[one.id_] for one in episodes if one.is_done]).reshape(-1, cars)
        found = values_of(runner.get_metrics())
        for when in ("", "_lifetime"):  # an env runner's own lifetime is that since it was asked
            assert found[f"num_env_steps_sampled{when}"] == 2 * steps
            assert found[f"num_episodes{when}"] == len(returns)
            agents, modules = (found[f"num_{what}_steps_sampled{when}"] for what in ("agent", "module"))
            assert [agents.get(agent, 0) for agent in CARS] == [2 * steps, 2 * steps * (cars == 2)]
            assert modules == dict.fromkeys(TEAMS[:cars], 2 * steps)
        matches = found[COUNTS]
        assert (matches["episodes"], matches["finished_cars"]) == (len(returns), returns.size)
        assert matches["episode_reward"] == pytest.approx(returns.sum(), rel=1e-5)
        assert matches["game_minutes"] == pytest.approx(2 * steps * 8 / 7200)
        for what in ("min", "mean", "max") if len(returns) else ():
            assert found[f"episode_len_{what}"] == DECISIONS
            if cars == 2:  # those who are not trained count too
                expected = pytest.approx(getattr(returns.sum(1), what)(), rel=1e-5)
                assert found[f"episode_return_{what}"] == expected
        for seat, expected in enumerate(returns.mean(0) if len(returns) else ()):
            for key, name in (("agent", CARS[seat]), ("module", TEAMS[seat])):
                assert found[f"{key}_episode_returns_mean"][name] == pytest.approx(expected, rel=1e-5)


def values_of(metrics: Any) -> Any:
    """Return the values of RLlib's statistics."""
    if not isinstance(metrics, dict):
        return metrics.peek()
    return {name: values_of(value) for name, value in metrics.items()}


class FailsOnce(Place):
    calls = 0

    def reward_batch(self, *states: Any) -> np.ndarray:
        FailsOnce.calls += 1
        if FailsOnce.calls == 4:
            raise ArithmeticError("out of order")
        return super().reward_batch(*states)


def failing(restart: bool, monkeypatch: pytest.MonkeyPatch) -> MatchRunner:
    monkeypatch.setattr(FailsOnce, "calls", 0)
    made = ppo(env=config_of(reward_fn=FailsOnce()))
    return MatchRunner(config=made.fault_tolerance(restart_failed_sub_environments=restart))


def test_a_failed_step_raises_or_restarts_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError) as raised:
        failing(False, monkeypatch).sample(num_timesteps=2 * 6)
    assert "out of order" in str(raised.value.__cause__)
    runner = failing(True, monkeypatch)
    for steps in (2, 6):
        episodes = runner.sample(num_timesteps=2 * steps)
        assert [(one.env_t_started, len(one)) for one in episodes] == [(0, steps), (0, steps)]
    assert values_of(runner.get_metrics())["num_env_steps_sampled"] == 2 * (2 + 6)


def test_episodes_go_on_after_a_sample_in_which_a_step_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = failing(True, monkeypatch)
    first, second = runner.sample(num_timesteps=2 * 6), runner.sample(num_timesteps=2)
    assert {one.id_ for one in first} == {one.id_ for one in second}


def test_chunks_can_be_put_together_as_replay_buffers_do() -> None:
    runner = runner_of(matches=1)
    (first,), (second,) = (runner.sample(num_timesteps=3) for _ in range(2))
    first.concat_episode(second)
    assert len(first) == 6 and len(column(first, "blue-0", "observations")) == 7
