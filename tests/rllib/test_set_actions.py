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
    held,
    lists_and_arrays,
    numbered,
    ragged,
)


def struct(new, at, numpy):
    """Return new actions as `set_actions` wants them in both kinds of episode."""
    return np.array(new) if numpy and (at is None or isinstance(at, slice)) else new


@lists_and_arrays
@pytest.mark.parametrize(("lookback", "at", "neg", "new", "expected"), DOCUMENTED)
def test_the_actions_that_at_indices_name_are_overwritten(lookback, at, neg, new, expected, numpy):
    episode = numbered(lookback, numpy=numpy)
    episode.set_actions(new_data={ORANGE: struct(new, at, numpy)}, at_indices=at, neg_index_as_lookback=neg)
    assert held(episode, ORANGE) == expected
    assert held(episode, BLUE) == ACTIONS


LISTS, ARRAYS = [False], [True]
BOTH = LISTS + ARRAYS
SIZE = (IndexError, "does NOT have the same size")


# Kind of episode, steps in its lookback buffer, at_indices, new actions, error, all actions afterwards.
OTHERWISE = {
    "actions beyond a list of indices are dropped": (
        BOTH, 3, [0, 1], [50, 51, 52], None, [3, 4, 5, 50, 51, 8, 9],
    ),
    "of too few actions those before are written": (
        BOTH, 3, [0, 1], [50], (IndexError, "list index out of range"), [3, 4, 5, 50, 7, 8, 9],
    ),
    "before an index out of range steps are written": (
        BOTH, 3, [0, 4], [50, 51], (IndexError, "Out of range of buffer data"), [3, 4, 5, 50, 7, 8, 9],
    ),
    "an integer of numpy is no index": (BOTH, 0, np.int64(0), [50], (AssertionError, "^$"), ACTIONS),
    "a tuple is no list of indices": (BOTH, 0, (0,), [50], (AssertionError, "^$"), ACTIONS),
    "a range is none": (BOTH, 0, range(1), [50], (AssertionError, "^$"), ACTIONS),
    "an array is none": (BOTH, 0, np.array([0]), [50], (AssertionError, "^$"), ACTIONS),
    "True is the second step": (BOTH, 3, True, 50, None, [3, 4, 5, 6, 50, 8, 9]),
    "of a step named twice the last action stays": (BOTH, 3, [3, -1], [50, 51], None, [3, 4, 5, 6, 7, 8, 51]),
    "arrays take no list for a slice": (ARRAYS, 0, slice(0, 2), [50, 51], (ValueError, "structure"), ACTIONS),
    "arrays take no list for None": (ARRAYS, 0, None, [50, 51], (ValueError, "structure"), ACTIONS),
    "lists take an empty slice": (LISTS, 0, slice(2, 2), [], None, ACTIONS),
    "arrays take none": (
        ARRAYS, 0, slice(2, 2), np.array([], int), (IndexError, "out of bounds"), ACTIONS,
    ),
    "arrays refuse an action outside": (ARRAYS, 0, 0, 500, (AssertionError, "500"), ACTIONS),
    "arrays refuse one in a list": (ARRAYS, 0, [0], [500], (AssertionError, "500"), ACTIONS),
    "of a slice the first action is checked alone": (
        ARRAYS, 0, slice(0, 2), np.array([50, 500]), None, [50, 500, 5, 6, 7, 8, 9],
    ),
    "a first action outside is called a size": (ARRAYS, 0, slice(0, 2), np.array([500, 1]), SIZE, ACTIONS),
    "lists take actions outside": (LISTS, 0, slice(0, 2), [500, 1.7], None, [500, 1.7, 5, 6, 7, 8, 9]),
    "a slice backward is called a wrong size": (BOTH, 0, slice(None, None, -1), [50] * 7, SIZE, ACTIONS),
    "a slice past the end is cut off": (BOTH, 0, slice(5, 9), [50, 51], None, [3, 4, 5, 6, 7, 50, 51]),
    "an index from the end runs on": (BOTH, 3, -5, 50, None, [3, 4, 50, 6, 7, 8, 9]),
    "so does one in a list": (BOTH, 3, [-5], [50], None, [3, 4, 50, 6, 7, 8, 9]),
    "so does one of a slice": (BOTH, 3, slice(-5, -4), [50], None, [3, 4, 50, 6, 7, 8, 9]),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERWISE)
def test_ray_does_something_else_than_it_documents(case):
    kinds, lookback, at, new, error, after = OTHERWISE[case]
    for numpy in kinds:
        episode = numbered(lookback, numpy=numpy)
        given = {"new_data": {BLUE: struct(new, at, numpy and kinds == BOTH)}, "at_indices": at}
        if error is None:
            episode.set_actions(**given)
        else:
            with pytest.raises(error[0], match=error[1]):
                episode.set_actions(**given)
        assert held(episode) == after


def test_the_call_in_the_documentation_is_no_call():
    with pytest.raises(TypeError, match="positional argument"):
        numbered(3).set_actions(50, -1, neg_index_as_lookback=True)


def test_without_a_space_floats_are_cut_to_integers_silently():
    episode = numbered(numpy=True, space=None)
    episode.set_actions(new_data={BLUE: np.array([1.7, -2.5])}, at_indices=slice(0, 2))
    assert held(episode)[:2] == [1, -2]


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
def test_indices_count_agent_steps_that_are_observed(numpy):
    episode = ragged(numpy=numpy, hanging=True)
    assert episode.get_actions(-1)[ORANGE] == 26
    episode.set_actions(new_data={ORANGE: 50}, at_indices=-1)
    assert held(episode, ORANGE) == [20, 22, 50]
    assert episode.get_actions(-1)[ORANGE] == 26 and episode.get_actions(4)[ORANGE] == 50
    with pytest.raises(IndexError, match="Out of range"):
        episode.set_actions(new_data={ORANGE: 50}, at_indices=3)


def test_dict_actions_can_be_overwritten_in_lists_alone():
    DICT.seed(0)
    one = DICT.sample()
    episode = numbered(space=DICT, actions=[DICT.sample() for _ in ACTIONS])
    episode.set_actions(new_data={BLUE: [one]}, at_indices=[0])
    assert episode.agent_episodes[BLUE].get_actions(0) == one
    with pytest.raises(AssertionError, match=r"\d"):
        episode.to_numpy().set_actions(new_data={BLUE: [one]}, at_indices=[0])


@lists_and_arrays
def test_dtypes_and_probabilities_are_left_alone(numpy):
    outputs = [{"action_dist_inputs": np.zeros(90, np.float32), "action_logp": float(t)} for t in range(7)]
    episode = numbered(numpy=numpy, actions=np.arange(7, dtype=np.int32), outputs=outputs)
    episode.set_actions(new_data={BLUE: np.int64(50)}, at_indices=2)
    one = episode.agent_episodes[BLUE]
    assert one.get_actions(2).dtype == (np.int32 if numpy else np.int64)
    assert list(one.get_extra_model_outputs("action_logp")) == list(range(7))
