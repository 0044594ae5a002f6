"""Action parsers: RLGym's meaning, in both forms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rlgym.api import ActionParser
from rlgym.rocket_league.action_parsers import LookupTableAction as RLGymLookupTableAction
from rlgym.rocket_league.action_parsers import RepeatAction as RLGymRepeatAction

from rlgym_bridge.components.actions import (
    ContinuousAction,
    LookupTableAction,
    MultiDiscreteAction,
    RepeatAction,
)
from rlgym_bridge.game import CONTROL_NAMES

PARSERS = (LookupTableAction, ContinuousAction, MultiDiscreteAction)
SIZES = (3, 3, 3, 3, 3, 2, 2, 2)


def random_actions(parser: Any, matches: int, cars: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if isinstance(parser, LookupTableAction):
        return rng.integers(0, 90, (matches, cars))
    if isinstance(parser, MultiDiscreteAction):
        return rng.integers(0, SIZES, (matches, cars, 8))
    return rng.normal(0, 1.5, (matches, cars, 8)).astype(np.float32)


def parse(parser: Any, actions: dict) -> dict:
    return parser.parse_actions(actions, None, {})


def test_the_table_is_rlgyms_row_by_row():
    np.testing.assert_array_equal(
        LookupTableAction.make_lookup_table(), RLGymLookupTableAction.make_lookup_table()
    )
    assert LookupTableAction.make_lookup_table().dtype == np.float32


@pytest.mark.parametrize("shape", [(1,), (5,), (1, 1), (5, 1)])
def test_the_lookup_table_gives_rlgyms_rows_for_every_shape(shape):
    action = np.random.default_rng(1).integers(0, 90, shape)
    ours = parse(LookupTableAction(), {"blue-0": action})["blue-0"]
    theirs = parse(RLGymLookupTableAction(), {"blue-0": action})["blue-0"]
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


def test_a_bare_number_gives_one_bare_row():
    row = parse(LookupTableAction(), {"a": np.int64(7)})["a"]
    np.testing.assert_array_equal(row, LookupTableAction.make_lookup_table()[7])


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("repeats", [None, 1, 8])
def test_the_batch_form_equals_the_dict_form_agent_by_agent(kind, repeats):
    parser = kind() if repeats is None else RepeatAction(kind(), repeats)
    actions = random_actions(kind(), 4, 3)
    batch = parser.parse_batch(actions)
    assert batch.dtype == np.float32
    assert batch.shape == (4, 3, repeats or 1, 8)
    for match in range(4):
        given_actions = {car: actions[match, car][None] for car in range(3)}
        for car, rows in parse(parser, given_actions).items():
            assert rows.dtype == np.float32
            np.testing.assert_array_equal(batch[match, car], rows)


@pytest.mark.parametrize("kind", PARSERS)
def test_every_row_is_a_legal_control_row(kind):
    rows = RepeatAction(kind(), 2).parse_batch(random_actions(kind(), 200, 2))
    assert (np.abs(rows) <= 1).all()
    assert np.isin(rows[..., 5:], (0, 1)).all()


@pytest.mark.parametrize("kind", PARSERS)
def test_each_is_an_rlgym_parser(kind):
    parser = RepeatAction(kind())
    assert isinstance(parser, ActionParser)
    assert isinstance(parser.parser, ActionParser)
    parser.reset(["blue-0"], None, {})


def test_action_spaces_are_rlgyms_pairs():
    assert LookupTableAction().get_action_space("a") == RLGymLookupTableAction().get_action_space("a")
    assert ContinuousAction().get_action_space("a") == ("continuous", 8)
    assert MultiDiscreteAction().get_action_space("a") == ("multi_discrete", SIZES)
    assert RepeatAction(MultiDiscreteAction()).get_action_space("a") == ("multi_discrete", SIZES)


@given(arrays.arrays(np.float32, (8,), elements=st.floats(-10, 10, width=32)))
def test_continuous_sticks_are_clipped_and_buttons_rounded(action):
    row = parse(ContinuousAction(), {"a": action})["a"]
    np.testing.assert_array_equal(row[:5], np.clip(action[:5], -1, 1))
    np.testing.assert_array_equal(row[5:], (action[5:] > 0).astype(np.float32))


def test_multi_discrete_choices_mean_minus_one_to_one():
    low = parse(MultiDiscreteAction(), {"a": np.zeros(8, int)})["a"]
    high = parse(MultiDiscreteAction(), {"a": np.array(SIZES) - 1})["a"]
    np.testing.assert_array_equal(low, [-1] * 5 + [0] * 3)
    np.testing.assert_array_equal(high, np.ones(8))


@pytest.mark.parametrize("control", range(8))
def test_each_continuous_number_moves_its_own_control(control):
    action = np.zeros(8, np.float32)
    action[control] = 1
    row = parse(ContinuousAction(), {"a": action})["a"]
    assert {name for name, value in zip(CONTROL_NAMES, row, strict=True) if value} == {CONTROL_NAMES[control]}


def test_parsing_leaves_the_actions_and_the_table_as_they_were():
    parser, actions = LookupTableAction(), np.array([[3, 4]])
    parser.parse_batch(actions)[:] = 9
    np.testing.assert_array_equal(
        parser.parse_batch(actions)[0, 0, 0], LookupTableAction.make_lookup_table()[3]
    )


@pytest.mark.parametrize("inner", [RLGymLookupTableAction, LookupTableAction])
def test_repeat_equals_rlgyms_repeat_around_any_parser(inner):
    actions = {"blue-0": np.array([3]), "orange-0": np.array([77])}
    ours = parse(RepeatAction(inner(), 8), actions)
    theirs = parse(RLGymRepeatAction(RLGymLookupTableAction(), 8), actions)
    assert ours.keys() == theirs.keys()
    for agent, rows in ours.items():
        np.testing.assert_array_equal(rows, theirs[agent])


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [90, -1, 1000])
def test_a_number_outside_the_table_is_refused_with_the_agent(wrong):
    with pytest.raises(ValueError, match=rf"agent 'orange-1' holds {wrong}, expected 0 to below 90"):
        parse(LookupTableAction(), {"blue-0": np.array([1]), "orange-1": np.array([wrong])})
    with pytest.raises(ValueError, match=rf"match 1, car 0 holds {wrong}, expected 0 to below 90"):
        LookupTableAction().parse_batch(np.array([[3, 3], [wrong, 3]]))
    with pytest.raises(ValueError, match=rf"match 0, car 0 holds {wrong}"):
        LookupTableAction().parse_batch(np.array([[wrong]]))


@pytest.mark.parametrize("kind", [LookupTableAction, MultiDiscreteAction])
def test_real_numbers_are_refused_where_choices_are_expected(kind):
    action = random_actions(kind(), 1, 1)[0].reshape(-1).astype(np.float32)
    with pytest.raises(ValueError, match=r"agent 'a' has dtype float32, expected whole numbers"):
        parse(kind(), {"a": action})


def test_a_choice_beyond_its_size_is_refused():
    action = np.array([0, 0, 0, 0, 0, 0, 0, 2])
    with pytest.raises(ValueError, match=r"agent 'a' holds 2, expected 0 to below"):
        parse(MultiDiscreteAction(), {"a": action})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused(value):
    actions = np.zeros((2, 2, 8), np.float32)
    actions[1, 0, 4] = value
    with pytest.raises(ValueError, match=r"match 1, car 0 holds .*expected a finite number"):
        ContinuousAction().parse_batch(actions)
    with pytest.raises(ValueError, match=r"agent 'a' holds .*expected a finite number"):
        parse(ContinuousAction(), {"a": actions[1, 0]})


def test_things_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match=r"agent 'a' has dtype .*, expected numbers"):
        parse(ContinuousAction(), {"a": np.array(["x"] * 8)})


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2), (7,), (0, 3)])
def test_another_shape_is_refused_with_the_agent(kind, shape):
    if kind is LookupTableAction and len(shape) == 1:
        shape = (7, 1, 1)
    action = np.zeros(shape, int)
    with pytest.raises(ValueError, match=r"agent 'a' has shape .*expected \("):
        parse(kind(), {"a": action})


@pytest.mark.parametrize(("kind", "shape"), [(LookupTableAction, (3,)), (ContinuousAction, (2, 2, 7))])
def test_a_batch_of_another_shape_is_refused(kind, shape):
    with pytest.raises(ValueError, match=r"actions have shape .*expected \(matches, cars"):
        kind().parse_batch(np.zeros(shape, int))


def test_repeat_without_a_batch_form_says_what_works_instead():
    with pytest.raises(TypeError, match=r"LookupTableAction has no parse_batch; use parse_actions"):
        RepeatAction(RLGymLookupTableAction()).parse_batch(np.zeros((1, 1), int))


def test_repeat_refuses_more_than_one_row():
    with pytest.raises(ValueError, match=r"gave agent 'a' rows of shape \(3, 8\), expected"):
        parse(RepeatAction(LookupTableAction()), {"a": np.array([1, 2, 3])})
    with pytest.raises(ValueError, match=r"one row to repeat"):
        RepeatAction(RepeatAction(LookupTableAction(), 2)).parse_batch(np.zeros((1, 1), int))


@pytest.mark.parametrize("repeats", [0, -1, 1.5, True])
def test_repeats_below_one_are_refused(repeats):
    with pytest.raises(ValueError, match=r"repeats is .*expected a whole number of ticks"):
        RepeatAction(LookupTableAction(), repeats)
