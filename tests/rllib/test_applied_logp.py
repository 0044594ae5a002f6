"""`correct_applied_actions` and probabilities: a learner reads those of the actions that were applied."""

import copy

import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("ray")
pytest.importorskip("torch")

import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner

from rlgym_bridge.training.rllib.correct_actions import correct_applied_actions
from tests.support.rllib_episodes import (
    ACTIONS,
    BLUE,
    DICT,
    ORANGE,
    SPACES,
    held,
    lists_and_arrays,
    logp_of,
    numbered,
    output,
    refused,
    with_outputs,
)


@lists_and_arrays
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(
    ("at", "rows"),
    [(2, [5]), ([3, 1], [6, 4]), (slice(-2, 2), [1, 2, 3, 4]), (None, [3, 4, 5, 6])],
    ids=["int", "list", "slice", "None"],
)
def test_written_steps_have_their_new_actions_probabilities(at, rows, name, numpy):
    episode, inputs = with_outputs(name, 3, numpy)
    new = np.stack([SPACES[name].sample() for _ in rows])
    given = new[0] if at == 2 else new
    correct_applied_actions(episode, {BLUE: given}, at_indices=at, neg_index_as_lookback=True)
    np.testing.assert_array_equal(np.asarray(held(episode))[rows], new)
    logp = output(episode, "action_logp")
    assert logp.dtype == np.float32
    np.testing.assert_allclose(logp[rows], logp_of(SPACES[name], inputs[rows], new), rtol=1e-5)
    assert (np.delete(logp, rows) == 0.5).all()
    assert (output(episode, "action_logp", ORANGE) == 0.5).all()


@lists_and_arrays
def test_probabilities_that_cannot_be_computed_are_refused(numpy):
    outputs = [{"action_logp": np.float32(0.5)}] * 7
    message = "has action_logp but no action_dist_inputs, .* leave action_logp out"
    refused(numbered(numpy=numpy, outputs=outputs), ValueError, message, {BLUE: 50}, at_indices=0)
    episode, _ = with_outputs("Discrete", 0, numpy, space=None)
    refused(episode, ValueError, "has action_logp but no action space", {BLUE: 50}, at_indices=0)
    episode, _ = with_outputs("Discrete", 0, numpy, space=spaces.Discrete(91))
    message = r"action_dist_inputs of agent 'blue-0' are \(90,\) a step, .* Discrete\(91\) takes \(91,\)"
    refused(episode, ValueError, message, {BLUE: 50, ORANGE: 50}, at_indices=0)


@lists_and_arrays
def test_actions_that_are_dicts_are_refused(numpy):
    DICT.seed(0)
    episode = numbered(space=DICT, actions=[DICT.sample() for _ in ACTIONS], numpy=numpy)
    refused(episode, ValueError, "are dicts or tuples, expected", {BLUE: DICT.sample()}, at_indices=0)


@lists_and_arrays
@pytest.mark.parametrize(
    ("space", "before", "after"),
    [
        (spaces.Discrete(4, start=2), 2, 3),
        (spaces.MultiDiscrete([3, 2], start=[1, 0]), np.array([1, 0]), np.array([2, 1])),
        (spaces.Box(-1, 1, ()), np.float32(0), np.float32(0.5)),
        (spaces.Box(-1, 1, (2, 2)), np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32)),
        (spaces.MultiBinary(2), np.zeros(2, np.int8), np.ones(2, np.int8)),
    ],
    ids=str,
)
def test_spaces_without_a_distribution_are_refused(space, before, after, numpy):
    outputs = [{"action_dist_inputs": np.zeros(4, np.float32), "action_logp": np.float32(0.5)}] * 7
    episode = numbered(space=space, actions=[before] * 7, outputs=outputs, numpy=numpy)
    refused(
        episode,
        ValueError,
        "no distribution of its own .* leave action_logp out",
        {BLUE: after},
        at_indices=1,
    )
    episode = numbered(space=space, actions=[before] * 7, numpy=numpy)
    assert correct_applied_actions(episode, {BLUE: after}, at_indices=1) == {BLUE: 1}


class _Held(MultiAgentEnv):
    """Eight steps; the info says what each agent's action was before, which is what it applies."""

    def __init__(self, config):
        super().__init__()
        self.agents = self.possible_agents = [BLUE, ORANGE]
        self.observation_spaces = dict.fromkeys(self.agents, spaces.Box(-1.0, 1.0, (3,)))
        self.action_spaces = dict.fromkeys(self.agents, config["space"])

    def reset(self, *, seed=None, options=None):
        self.t, self.last = 0, {agent: self.action_spaces[agent].sample() for agent in self.agents}
        return {agent: np.zeros(3, np.float32) for agent in self.agents}, {}

    def step(self, actions):
        self.t, applied, self.last = self.t + 1, self.last, actions
        seen = {agent: np.full(3, self.t / 8, np.float32) for agent in self.agents}
        flags = {"__all__": self.t == 8}, {"__all__": False}
        return (
            seen,
            dict.fromkeys(self.agents, 0.0),
            *flags,
            {a: {"applied": applied[a]} for a in self.agents},
        )


@pytest.mark.parametrize("name", SPACES)
def test_a_learner_reads_the_applied_actions(name):
    config = (
        PPOConfig()
        .environment(_Held, env_config={"space": SPACES[name]}, disable_env_checking=True)
        .multi_agent(policies={"main"}, policy_mapping_fn=lambda agent, episode, **_: "main")
        .env_runners(num_env_runners=0)
    )
    runner = MultiAgentEnvRunner(config=config)
    (episode,) = runner.sample(num_episodes=1)
    infos = episode.get_infos(slice(1, None))
    applied = {agent: [info["applied"] for info in infos[agent]] for agent in infos}
    commanded = copy.deepcopy(episode.get_actions())
    assert episode.is_numpy
    counts = correct_applied_actions(episode, applied)
    module = runner.module["main"]
    for agent in (BLUE, ORANGE):
        actions, logp, inputs, seen = (
            episode.get_actions()[agent],
            episode.get_extra_model_outputs("action_logp")[agent],
            episode.get_extra_model_outputs("action_dist_inputs")[agent],
            episode.get_observations(slice(0, -1))[agent],
        )
        np.testing.assert_array_equal(actions, applied[agent])
        assert counts[agent] == (commanded[agent] != actions).reshape(8, -1).any(1).sum() > 0
        np.testing.assert_allclose(logp, logp_of(SPACES[name], inputs, actions), rtol=1e-4)
        # The ratio that PPO takes its step with: 1 while the policy is the one that acted.
        out = module.forward_exploration({"obs": torch.from_numpy(seen)})["action_dist_inputs"]
        now = module.get_train_action_dist_cls().from_logits(out).logp(torch.from_numpy(actions))
        np.testing.assert_allclose(np.exp(now.detach().numpy() - logp), 1.0, rtol=1e-4)
