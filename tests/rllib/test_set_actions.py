"""RLlib's `MultiAgentEpisode.set_actions`: as documented, and where ray 2.60.0 does something else.

The second half fails when ray changes, so that the table in `lab/rllib-set-actions.md` stays true.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

from tests.support.rllib_episodes import (
    ACTIONS,
    BLUE,
    DICT,
    DOCUMENTED,
    ORANGE,
    SPACES,
    WRONG_SIZES,
    held,
    lists_and_arrays,
    numbered,
    ragged,
    same,
    snapshot,
)


def struct(new, at, numpy):
    """Return new actions as `set_actions` wants them in both kinds of episode."""
    return np.array(new) if numpy and (at is None or isinstance(at, slice)) else new


# As documented


@lists_and_arrays
@pytest.mark.parametrize(("lookback", "at", "neg", "new", "expected"), DOCUMENTED)
def test_the_actions_that_at_indices_name_are_overwritten(lookback, at, neg, new, expected, numpy):
    episode = numbered(lookback, numpy=numpy)
    episode.set_actions(new_data={ORANGE: struct(new, at, numpy)}, at_indices=at, neg_index_as_lookback=neg)
    assert held(episode, ORANGE) == expected
    assert held(episode, BLUE) == ACTIONS


@lists_and_arrays
@pytest.mark.parametrize(("lookback", "at", "neg", "new"), WRONG_SIZES)
def test_sizes_that_do_not_match_raise_and_change_nothing(lookback, at, neg, new, numpy):
    episode = numbered(lookback, numpy=numpy)
    before = snapshot(episode)
    with pytest.raises(IndexError, match="Cannot `set\\(\\)` value"):
        episode.set_actions(
            new_data={ORANGE: struct(new, at, numpy)}, at_indices=at, neg_index_as_lookback=neg
        )
    assert same(snapshot(episode), before)


@lists_and_arrays
def test_an_unknown_agent_is_refused(numpy):
    with pytest.raises(KeyError, match="'green-0' not found"):
        numbered(numpy=numpy).set_actions(new_data={"green-0": 50}, at_indices=0)


@lists_and_arrays
@pytest.mark.parametrize("name", SPACES)
def test_every_plain_space_is_overwritten_in_every_form(name, numpy):
    space = SPACES[name]
    space.seed(0)
    actions = [space.sample() for _ in range(7)]
    for at in (2, -1, [1, 3], slice(1, 4), None):
        episode = numbered(3, numpy=numpy, actions=actions, space=space)
        count = len(range(4)[at]) if isinstance(at, slice) else 4 if at is None else np.size(at)
        new = np.stack([space.sample() for _ in range(count)])
        episode.set_actions(new_data={BLUE: new[0] if isinstance(at, int) else new}, at_indices=at)
        steps = np.atleast_1d(np.arange(4)[slice(None) if at is None else at]) + 3
        np.testing.assert_array_equal(np.array(held(episode))[steps], new)


# Where ray 2.60.0 does something else


def test_the_call_in_the_documentation_is_no_call():
    with pytest.raises(TypeError, match="positional argument"):
        numbered(3).set_actions(50, -1, neg_index_as_lookback=True)


@lists_and_arrays
def test_actions_beyond_a_list_of_indices_are_dropped_silently(numpy):
    episode = numbered(3, numpy=numpy)
    episode.set_actions(new_data={BLUE: [50, 51, 52]}, at_indices=[0, 1])
    assert held(episode) == [3, 4, 5, 50, 51, 8, 9]


@lists_and_arrays
@pytest.mark.parametrize(
    ("new", "at", "error"),
    [([50], [0, 1], "list index out of range"), ([50, 51], [0, 4], "Out of range of buffer data")],
    ids=["too few actions", "second index out of range"],
)
def test_a_list_of_indices_that_fails_has_written_those_before(new, at, error, numpy):
    episode = numbered(3, numpy=numpy)
    with pytest.raises(IndexError, match=error):
        episode.set_actions(new_data={BLUE: new}, at_indices=at)
    assert held(episode) == [3, 4, 5, 50, 7, 8, 9]


@lists_and_arrays
@pytest.mark.parametrize(
    ("agent", "at"), [("green-0", 0), (ORANGE, 3)], ids=["unknown agent", "out of range"]
)
def test_agents_before_the_one_that_fails_stay_overwritten(agent, at, numpy):
    episode = ragged(numpy=numpy)
    with pytest.raises((KeyError, IndexError), match=r"not found|Out of range"):
        episode.set_actions(new_data={BLUE: 50, agent: 51}, at_indices=at)
    assert held(episode)[at] == 50


@lists_and_arrays
def test_indices_count_agent_steps_and_not_env_steps(numpy):
    episode = ragged(numpy=numpy)
    episode.set_actions(new_data={ORANGE: 50}, at_indices=2)
    assert held(episode, ORANGE) == [20, 22, 50]
    assert episode.get_actions(2)[ORANGE] == 22
    assert episode.get_actions(4)[ORANGE] == 50


@lists_and_arrays
@pytest.mark.parametrize("at", [np.int64(0), (0,), range(1), np.array([0])], ids=lambda at: type(at).__name__)
def test_numpy_integers_tuples_ranges_and_arrays_are_no_indices(at, numpy):
    with pytest.raises(AssertionError, match=r"^$"):
        numbered(numpy=numpy).set_actions(new_data={BLUE: [50]}, at_indices=at)


@lists_and_arrays
def test_true_is_the_second_step(numpy):
    episode = numbered(3, numpy=numpy)
    episode.set_actions(new_data={BLUE: 50}, at_indices=True)
    assert held(episode) == [3, 4, 5, 6, 50, 8, 9]


@lists_and_arrays
def test_of_a_step_named_twice_the_last_action_stays(numpy):
    episode = numbered(3, numpy=numpy)
    episode.set_actions(new_data={BLUE: [50, 51]}, at_indices=[3, -1])
    assert held(episode) == [3, 4, 5, 6, 7, 8, 51]


@pytest.mark.parametrize("at", [slice(0, 2), None], ids=str)
def test_a_numpyized_episode_takes_no_list_for_a_slice(at):
    with pytest.raises(ValueError, match="structure"):
        numbered(numpy=True).set_actions(new_data={BLUE: [50, 51]}, at_indices=at)


def test_an_empty_slice_fails_when_numpyized_only():
    numbered().set_actions(new_data={BLUE: []}, at_indices=slice(2, 2))
    with pytest.raises(IndexError, match="out of bounds"):
        numbered(numpy=True).set_actions(new_data={BLUE: np.array([], int)}, at_indices=slice(2, 2))


@pytest.mark.parametrize(("at", "new"), [(0, 500), ([0], [500])], ids=["int", "list"])
def test_numpyized_actions_outside_the_space_fail(at, new):
    with pytest.raises(AssertionError, match="500"):
        numbered(numpy=True).set_actions(new_data={BLUE: new}, at_indices=at)


def test_only_the_first_action_of_a_slice_is_checked():
    episode = numbered(numpy=True)
    episode.set_actions(new_data={BLUE: np.array([50, 500])}, at_indices=slice(0, 2))
    assert held(episode)[:2] == [50, 500]


@pytest.mark.parametrize("first", [500, 1.5])
def test_a_first_action_outside_is_called_a_wrong_size(first):
    with pytest.raises(IndexError, match="does NOT have the same size"):
        numbered(numpy=True).set_actions(new_data={BLUE: np.array([first, 1])}, at_indices=slice(0, 2))


def test_lists_take_actions_outside_the_space():
    episode = numbered()
    episode.set_actions(new_data={BLUE: [500, 1.7]}, at_indices=slice(0, 2))
    assert held(episode)[:2] == [500, 1.7]


def test_without_a_space_floats_are_cut_to_integers_silently():
    episode = numbered(numpy=True, space=None)
    episode.set_actions(new_data={BLUE: np.array([1.7, -2.5])}, at_indices=slice(0, 2))
    assert held(episode)[:2] == [1, -2]


@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        (0, AssertionError, r"\d"),
        ([0, 1], AssertionError, r"\d"),
        (slice(0, 2), IndexError, "does NOT have the same size"),
        (None, IndexError, "does NOT have the same size"),
    ],
    ids=["int", "list", "slice", "None"],
)
def test_dict_actions_can_be_overwritten_in_lists_alone(at, error, message):
    DICT.seed(0)
    one = DICT.sample()
    count = {int: 1, list: 2, slice: 2}.get(type(at), 7)
    episode = numbered(space=DICT, actions=[DICT.sample() for _ in ACTIONS])
    episode.set_actions(new_data={BLUE: one if at == 0 else [one] * count}, at_indices=at)
    assert episode.agent_episodes[BLUE].get_actions(0) == one
    episode.to_numpy()
    new = one if at == 0 else [one] * count
    if at is None or isinstance(at, slice):
        new = {key: np.stack([value] * count) for key, value in one.items()}
    with pytest.raises(error, match=message):
        episode.set_actions(new_data={BLUE: new}, at_indices=at)


@lists_and_arrays
def test_a_slice_backward_raises(numpy):
    with pytest.raises(IndexError, match="does NOT have the same size"):
        numbered(numpy=numpy).set_actions(
            new_data={BLUE: struct([50] * 7, None, numpy)}, at_indices=slice(None, None, -1)
        )


@lists_and_arrays
def test_a_slice_past_the_end_is_cut_off(numpy):
    episode = numbered(numpy=numpy)
    episode.set_actions(new_data={BLUE: struct([50, 51], None, numpy)}, at_indices=slice(5, 9))
    assert held(episode)[5:] == [50, 51]


@lists_and_arrays
@pytest.mark.parametrize(
    ("at", "new"), [(-5, 50), ([-5], [50]), (slice(-5, -4), [50])], ids=["int", "list", "slice"]
)
def test_an_index_from_the_end_runs_on_into_the_lookback_buffer(at, new, numpy):
    episode = numbered(3, numpy=numpy)
    episode.set_actions(new_data={BLUE: struct(new, at, numpy)}, at_indices=at)
    assert held(episode) == [3, 4, 50, 6, 7, 8, 9]


@lists_and_arrays
def test_an_action_without_its_observation_is_only_readable(numpy):
    episode = ragged(numpy=numpy, hanging=True)
    assert episode.get_actions(-1)[ORANGE] == 26
    episode.set_actions(new_data={ORANGE: 50}, at_indices=-1)
    assert held(episode, ORANGE) == [20, 22, 50]
    assert episode.get_actions(-1)[ORANGE] == 26
    with pytest.raises(IndexError, match="Out of range"):
        episode.set_actions(new_data={ORANGE: 50}, at_indices=3)


@lists_and_arrays
def test_the_probability_stays_that_of_the_action_before(numpy):
    outputs = [{"action_dist_inputs": np.zeros(90, np.float32), "action_logp": float(t)} for t in range(7)]
    episode = numbered(numpy=numpy, outputs=outputs)
    episode.set_actions(new_data={BLUE: 50}, at_indices=2)
    assert list(episode.agent_episodes[BLUE].get_extra_model_outputs("action_logp")) == list(range(7))


@lists_and_arrays
def test_arrays_may_change_their_type_in_lists_alone(numpy):
    episode = numbered(numpy=numpy, actions=np.arange(7, dtype=np.int32))
    episode.set_actions(new_data={BLUE: np.int64(50)}, at_indices=2)
    assert episode.agent_episodes[BLUE].get_actions(2).dtype == (np.int32 if numpy else np.int64)
