"""`correct_applied_actions`: `set_actions` as documented, all or nothing, and probabilities that fit."""

import copy

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
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

pytest.importorskip("ray")

from tests.support.rllib_episodes import (
    DOCUMENTED,
    WRONG_SIZES,
    ragged,
)

pytest.importorskip("torch")


@lists_and_arrays
@pytest.mark.parametrize("container", [list, np.array], ids=["list", "array"])
@pytest.mark.parametrize(("lookback", "at", "neg", "new", "expected"), DOCUMENTED)
def test_the_indexed_actions_are_overwritten_and_counted(lookback, at, neg, new, expected, container, numpy):
    episode = numbered(lookback, numpy=numpy)
    given = new if isinstance(new, int) else container(new)
    counts = correct_applied_actions(episode, {ORANGE: given}, at_indices=at, neg_index_as_lookback=neg)
    assert held(episode, ORANGE) == expected
    assert held(episode, BLUE) == ACTIONS
    assert counts == {ORANGE: sum(a != b for a, b in zip(ACTIONS, expected, strict=True))}
    assert correct_applied_actions(episode, {ORANGE: given}, at_indices=at, neg_index_as_lookback=neg) == {
        ORANGE: 0
    }


@lists_and_arrays
@pytest.mark.parametrize(("lookback", "at", "neg", "new"), WRONG_SIZES)
def test_sizes_that_do_not_match_raise_and_change_nothing(lookback, at, neg, new, numpy):
    episode = numbered(lookback, numpy=numpy)
    refused(episode, IndexError, "agent 'orange-0'", {ORANGE: new}, at_indices=at, neg_index_as_lookback=neg)


@lists_and_arrays
@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        ([0, 4], IndexError, "at_indices has 4, agent 'blue-0' has 4 steps and 3 in its lookback buffer"),
        (-5, IndexError, "at_indices has -5"),
        (True, TypeError, "at_indices has True, expected whole numbers"),
        ([True, False, True, False], TypeError, "np.flatnonzero makes them of a mask"),
        (np.array([True, False]), TypeError, "np.flatnonzero makes them of a mask"),
        (1.0, TypeError, "at_indices has 1.0"),
        (np.array([1.0, 2.0]), TypeError, "at_indices has 1.0"),
        (slice(0.0, 2), TypeError, "at_indices has 0.0"),
        ({1, 2}, TypeError, r"at_indices has \{1, 2\}"),
        ("12", TypeError, "at_indices has '12'"),
        ([3, -1], ValueError, "a step of agent 'blue-0' stands twice"),
        (slice(None, None, -1), ValueError, "expected a slice forward"),
    ],
    ids=str,
)
def test_indices_that_are_no_steps_are_refused(at, error, message, numpy):
    refused(numbered(3, numpy=numpy), error, message, {BLUE: [50, 51]}, at_indices=at)


@lists_and_arrays
@pytest.mark.parametrize(
    ("at", "new", "error", "message"),
    [
        ([0, 1], [50, 51, 52], IndexError, "given 3 actions, expected 2"),
        ([0, 1], [50], IndexError, "given 1 actions, expected 2"),
        ([0, 1], 50, IndexError, "given 50, expected 2"),
        (slice(0, 2), np.array(50), IndexError, r"given array\(50\), expected 2"),
        (0, [50, 51], IndexError, r"shape \(2,\), expected \(\)"),
        (slice(0, 2), [[50], [51]], ValueError, r"shape \(1,\), expected \(\)"),
        (slice(0, 2), [[50], [51, 52]], ValueError, r"not of shape \(\) each"),
        (slice(0, 2), [50, 500], ValueError, r"action 500 for agent 'orange-0' at step 1 .* Discrete\(90\)"),
        ([2, 0], [50, -1], ValueError, r"action -1 for agent 'orange-0' at step 0 .* Discrete\(90\)"),
        (-1, 500, ValueError, r"action 500 for agent 'orange-0' at step 3 .* Discrete\(90\)"),
        (slice(0, 2), [50, 1.7], ValueError, r"is float64, expected integers, .* Discrete\(90\)"),
        (0, 50.0, ValueError, "action 50.0 .* at step 0 is float64, expected integers"),
        (0, True, ValueError, "is bool, expected integers"),
        (0, None, ValueError, "is object, expected integers"),
        (slice(0, 2), {0: 50, 1: 51}, TypeError, "was given {0: 50, 1: 51}, expected a list or array of 2"),
        (slice(0, 2), {50, 51}, TypeError, "expected a list or array of 2"),
        (slice(0, 2), "50", TypeError, "was given '50', expected a list or array of 2"),
    ],
)
def test_what_is_wrong_for_one_agent_changes_no_agent(at, new, error, message, numpy):
    good = 50 if isinstance(at, int) else [50, 51]
    refused(numbered(3, numpy=numpy), error, message, {BLUE: good, ORANGE: new}, at_indices=at)


@pytest.mark.parametrize(
    ("episode", "applied", "error", "message"),
    [
        (None, {}, TypeError, "episode is a NoneType, expected RLlib's"),
        (numbered().agent_episodes[BLUE], {}, TypeError, "episode is a SingleAgentEpisode, expected RLlib's"),
        (numbered(), [50] * 7, TypeError, "applied is a list, expected a mapping"),
        (
            numbered(),
            {"green-0": 50},
            KeyError,
            r"agent 'green-0', expected some of \['blue-0', 'orange-0'\]",
        ),
    ],
)
def test_other_arguments_are_refused(episode, applied, error, message):
    with pytest.raises(error, match=message):
        correct_applied_actions(episode, applied, at_indices=0)


@lists_and_arrays
@pytest.mark.parametrize("at", [(1, 2), range(1, 3), np.array([1, 2], np.uint8), [np.int64(1), 2]], ids=str)
def test_whole_numbers_of_any_kind_are_steps(at, numpy):
    episode = numbered(3, numpy=numpy)
    assert correct_applied_actions(episode, {BLUE: (50, 51)}, at_indices=at) == {BLUE: 2}
    assert held(episode) == [3, 4, 5, 6, 50, 51, 9]
    assert numpy or type(episode.agent_episodes[BLUE].get_actions(1)) is int


@lists_and_arrays
def test_steps_of_an_agent_that_skips_are_its_own(numpy):
    episode = ragged(numpy=numpy)
    assert correct_applied_actions(episode, {ORANGE: [50, 51]}, at_indices=[2, 1]) == {ORANGE: 2}
    assert held(episode, ORANGE) == [20, 51, 50]
    assert episode.get_actions(4) == {BLUE: 14, ORANGE: 50}
    refused(episode, IndexError, "orange-0' has 3 steps", {BLUE: 50, ORANGE: 51}, at_indices=3)
    assert correct_applied_actions(episode, {BLUE: [50] * 6, ORANGE: [22] * 3}) == {BLUE: 6, ORANGE: 3}


@lists_and_arrays
def test_an_action_without_its_observation_is_refused(numpy):
    episode = ragged(numpy=numpy, hanging=True)
    refused(episode, ValueError, "add the observation first", {BLUE: 50, ORANGE: 51}, at_indices=-1)
    assert correct_applied_actions(episode, {BLUE: 50}, at_indices=-1) == {BLUE: 1}
    episode = ragged(hanging=True)
    episode.add_env_step(
        observations={BLUE: np.float32([8]), ORANGE: np.float32([8])},
        actions={BLUE: 17},
        rewards={BLUE: 0.0, ORANGE: 0.0},
    )
    episode = episode.to_numpy() if numpy else episode
    assert correct_applied_actions(episode, {ORANGE: 51}, at_indices=-1) == {ORANGE: 1}
    assert held(episode, ORANGE) == [20, 22, 24, 51]


@lists_and_arrays
@pytest.mark.parametrize(
    "actions", [np.arange(7, dtype=np.int8), np.arange(7, dtype=np.int32)], ids=["8", "32"]
)
def test_the_dtype_stays_and_what_does_not_fit_is_refused(actions, numpy):
    episode = numbered(numpy=numpy, actions=actions, space=None)
    correct_applied_actions(episode, {BLUE: [50, 51]}, at_indices=[0, 2])
    assert {np.asarray(episode.agent_episodes[BLUE].get_actions(t)).dtype for t in range(7)} == {
        actions.dtype
    }
    refused(episode, ValueError, f"does not fit into {actions.dtype}", {BLUE: 2**40}, at_indices=0)
    refused(episode, ValueError, "is float64, expected integers$", {BLUE: 1.7}, at_indices=0)


@lists_and_arrays
def test_another_dtype_is_refused_where_ray_would_fail(numpy):
    episode = numbered(numpy=numpy, actions=np.zeros((7, 8)), space=SPACES["Box"])
    new = np.full(8, 0.5)
    if numpy:
        refused(episode, ValueError, r"\(float64\) cannot be, .* Box\(.*float32\)", {BLUE: new}, at_indices=0)
    else:
        assert correct_applied_actions(episode, {BLUE: new}, at_indices=0) == {BLUE: 1}
    refused(episode, ValueError, "action .* cannot be", {BLUE: new + 1}, at_indices=0)


@lists_and_arrays
def test_numbers_that_are_not_finite_are_refused_everywhere(numpy):
    everything = spaces.Box(-np.inf, np.inf, (2,))
    for space, bad in ((None, np.nan), (everything, 1e300), (everything, -np.inf)):
        episode = numbered(numpy=numpy, actions=np.zeros((7, 2), np.float32), space=space)
        refused(
            episode, ValueError, "is not finite in float32", {BLUE: [[0, 0], [0, bad]]}, at_indices=[0, 1]
        )


@lists_and_arrays
def test_actions_that_stay_may_lie_outside_their_space(numpy):
    samples = np.linspace(-3, 3, 7 * 8, dtype=np.float32).reshape(7, 8)
    episode = numbered(numpy=numpy, actions=samples, space=SPACES["Box"])
    assert correct_applied_actions(episode, {BLUE: samples}) == {BLUE: 0}
    new = samples.copy()
    new[3] = 0.25
    assert correct_applied_actions(episode, {BLUE: new}) == {BLUE: 1}
    np.testing.assert_array_equal(np.asarray(held(episode)), new)
    refused(episode, ValueError, "at step 5 .* cannot be", {BLUE: [new[6], new[4]]}, at_indices=[6, 5])


def test_what_is_written_shares_no_memory_with_what_was_given():
    new = np.zeros((2, 8), np.float32)
    for numpy in (False, True):
        episode, _ = with_outputs("Box", 0, numpy)
        correct_applied_actions(episode, {BLUE: new}, at_indices=slice(0, 2))
        new += 1
        assert (np.asarray(held(episode))[:2] == 0).all()
        new -= 1


@settings(max_examples=200, deadline=None)
@given(st.data(), st.booleans(), st.booleans(), st.integers(0, 7))
def test_any_indices_choose_what_a_plain_list_would(data, numpy, neg, lookback):
    end = st.none() | st.integers(-9, 9)
    at = data.draw(
        st.builds(slice, end, end, st.none() | st.integers(1, 3))
        | st.lists(st.integers(-9, 9), max_size=5)
        | st.integers(-9, 9)
    )
    every = list(range(7))
    rows: list[int] | None
    if isinstance(at, slice) and neg:
        start, stop = (None if one is None else max(one + lookback, 0) for one in (at.start, at.stop))
        rows = every[slice(lookback if start is None else start, stop, at.step)]
    elif isinstance(at, slice):
        rows = every[lookback:][at]
    else:
        indices = [at] if isinstance(at, int) else at
        try:
            rows = [(every[:lookback] if neg and one < 0 else every[lookback:])[one] for one in indices]
        except IndexError:
            rows = None
    count = 1 if rows is None else len(rows)
    new = 50 if isinstance(at, int) else list(range(50, 50 + count))
    episode, how = numbered(lookback, numpy=numpy), {"at_indices": at, "neg_index_as_lookback": neg}
    if rows is None or len(set(rows)) < count:
        refused(episode, (IndexError, ValueError), "at_indices", {BLUE: new}, **how)
        return
    expected = list(ACTIONS)
    for row, action in zip(rows, [new] if isinstance(at, int) else new, strict=True):
        expected[row] = action
    correct_applied_actions(episode, {BLUE: new}, **how)
    assert held(episode) == expected


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
