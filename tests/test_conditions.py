"""Conditions: RLGym's answers, for many matches at once."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlgym.api import DoneCondition
from rlgym.rocket_league import done_conditions as rlgym_conditions

from rlgym_bridge.components.batch_form import third_party_part
from rlgym_bridge.components.conditions import (
    AllCondition,
    AnyCondition,
    BatchCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
    TimeoutCondition,
)
from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.state import MatchState, derive

AGENTS = ["blue-0", "orange-0"]

Moment = tuple[int, int, bool, bool]  # ticks since the last, who touches (0 nobody), goal, a new episode

moments = st.tuples(
    st.sampled_from([1, 4, 8, 60, 120, 121, 360]),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from([0, 0, 0, 1]),
)
timeouts = st.sampled_from([0, 0.5, 1, 3, 0.1, 1 / 3, math.inf])


def sequence(story: list[Moment], start: int = 0) -> list[MatchState]:
    """Return one match as it goes on."""
    states, frame = [], start
    for ticks, toucher, goal, _ in story:
        frame += ticks
        state = blank_state(1, 1, 1)
        state.frame[:] = frame
        state.ball_position[0, 1] = 5300 * goal
        if toucher:
            state.car_ball_touches[0, toucher - 1] = 2
        derive(state)
        states.append(state)
    return states


def pairs(seconds: float) -> list[tuple[BatchCondition, DoneCondition]]:
    """Return ours and RLGym's, as they are used."""
    theirs = rlgym_conditions
    return [
        (GoalCondition(), theirs.GoalCondition()),
        (TimeoutCondition(seconds), theirs.TimeoutCondition(seconds)),
        (NoTouchTimeoutCondition(seconds), theirs.NoTouchTimeoutCondition(seconds)),
        (
            AnyCondition(NoTouchTimeoutCondition(seconds), TimeoutCondition(3)),
            theirs.AnyCondition(theirs.NoTouchTimeoutCondition(seconds), theirs.TimeoutCondition(3)),
        ),
        (
            AnyCondition([GoalCondition(), AnyCondition(TimeoutCondition(seconds))]),
            theirs.AnyCondition(theirs.GoalCondition(), theirs.TimeoutCondition(seconds)),
        ),
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(moments, min_size=1, max_size=12), timeouts, st.sampled_from([0, 5000, 2**31 - 10_000]))
def test_the_dict_form_answers_as_rlgym_does(story, seconds, start):
    games = [to_rlgym(state) for state in sequence(story, start)]
    for ours, theirs in pairs(seconds):
        for i, game in enumerate(games):
            if i == 0 or story[i][3]:
                for condition in (ours, theirs):
                    condition.reset(AGENTS, game, {})
            else:
                answer = ours.is_done(AGENTS, game, {})
                assert answer == theirs.is_done(AGENTS, game, {})
                assert all(type(value) is bool for value in answer.values())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(moments, min_size=6, max_size=6), min_size=1, max_size=4), timeouts)
def test_a_batch_answers_as_rlgym_does_for_each_match(stories, seconds):
    matches = [sequence(story, 1000 * i) for i, story in enumerate(stories)]
    for number in range(5):
        ours = pairs(seconds)[number][0]
        theirs = [pairs(seconds)[number][1] for _ in matches]
        for i in range(6):
            state = MatchState(1, 1, len(matches), np.concatenate([match[i].buffer for match in matches]))
            begun = np.array([i == 0 or bool(story[i][3]) for story in stories])
            games = [to_rlgym(state, match) for match in range(len(matches))]
            ours.reset_batch(state, begun)
            for match in np.flatnonzero(begun):
                theirs[match].reset(AGENTS, games[match], {})
            done = ours.done_batch(state)
            assert done.shape == (len(matches),) and done.dtype == np.bool_
            expected = [theirs[m].is_done(AGENTS, games[m], {})["blue-0"] for m in range(len(matches))]
            np.testing.assert_array_equal(done, expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(moments, min_size=2, max_size=8), timeouts)
def test_all_and_any_join_what_their_parts_say(story, seconds):
    def parts() -> list[BatchCondition]:
        return [NoTouchTimeoutCondition(seconds), TimeoutCondition(1)]

    alone, both, either = parts(), AllCondition(parts()), AnyCondition(*parts())
    for i, state in enumerate(sequence(story)):
        begun = np.array([i == 0])
        for condition in (*alone, both, either):
            condition.reset_batch(state, begun)
        answers = [condition.done_batch(state)[0] for condition in alone]
        assert both.done_batch(state)[0] == all(answers)
        assert either.done_batch(state)[0] == any(answers)


def test_time_is_counted_in_ticks_to_the_tick():
    start, nearly, over = sequence([(7, 0, False, True), (359, 0, False, False), (1, 0, False, False)])
    for condition in (TimeoutCondition(3), NoTouchTimeoutCondition(3)):
        condition.reset_batch(start, np.array([True]))
        assert not condition.done_batch(nearly)[0]
        assert condition.done_batch(over)[0]


def test_a_new_episode_counts_its_time_from_its_own_beginning():
    def both_at(frame: int) -> MatchState:
        state = blank_state(1, 1, 2)
        state.frame[:] = frame
        return state

    for condition in (TimeoutCondition(3), NoTouchTimeoutCondition(3)):
        condition.reset_batch(both_at(0), np.array([True, True]))
        condition.reset_batch(both_at(200), np.array([False, True]))
        assert condition.done_batch(both_at(360)).tolist() == [True, False]
        assert condition.done_batch(both_at(560)).tolist() == [True, True]


def test_episodes_with_a_task_may_have_less_time():
    def matches_at(frame: int) -> MatchState:
        state = blank_state(1, 1, 2)
        state.ball_position[1, 0], state.frame[:] = 300.0, frame
        return state

    condition = TimeoutCondition(np.inf, task_seconds=2)
    condition.reset_batch(matches_at(0), np.array([True, True]))
    assert condition.done_batch(matches_at(239)).tolist() == [False, False]
    assert condition.done_batch(matches_at(240)).tolist() == [False, True]
    condition.reset_batch(matches_at(240), np.array([False, True]))
    assert condition.done_batch(matches_at(479)).tolist() == [False, False]
    with pytest.raises(ValueError, match="task_seconds is -1, expected seconds, 0 or more"):
        TimeoutCondition(3, -1)


def test_frame_numbers_may_run_over_their_end():
    start, nearly, over = sequence([(0, 0, False, True)] * 3)
    condition = TimeoutCondition(1)
    start.frame[0], nearly.frame[0], over.frame[0] = 2**31 - 1, -(2**31) + 118, -(2**31) + 119
    condition.reset_batch(start, np.array([True]))
    assert [condition.done_batch(state)[0] for state in (nearly, over)] == [False, True]


def test_a_condition_keeps_no_view_of_the_state_it_was_reset_on():
    state = sequence([(0, 0, False, True)])[0]
    condition = TimeoutCondition(1)
    condition.reset_batch(state, np.array([True]))
    state.frame[0] = 120  # the same buffer, filled anew
    assert condition.done_batch(state)[0]


# --- conditions of others --------------------------------------------------------------------------


class BlueIsDone(DoneCondition):
    """A condition of somebody else, which tells agents apart."""

    resets = 0

    def reset(self, agents, initial_state, shared_info):
        self.resets += 1

    def is_done(self, agents, state, shared_info):
        return {agent: agent.startswith("blue") for agent in agents}


def test_a_third_party_condition_may_tell_agents_apart():
    states = sequence([(0, 0, False, True), (60, 0, False, False), (120, 0, False, False)])
    games = [to_rlgym(state) for state in states]
    third_party = BlueIsDone()
    either = AnyCondition(AnyCondition([third_party]), TimeoutCondition(1))
    both = AllCondition([third_party, TimeoutCondition(1)])
    for condition in (either, both):
        condition.reset(AGENTS, games[0], {})
    assert third_party.resets == 2
    assert either.is_done(AGENTS, games[1], {}) == {"blue-0": True, "orange-0": False}
    assert both.is_done(AGENTS, games[1], {}) == {"blue-0": False, "orange-0": False}
    assert either.is_done(AGENTS, games[2], {}) == {"blue-0": True, "orange-0": True}
    assert both.is_done(["orange-0"], games[2], {}) == {"orange-0": False}
    assert third_party_part(either) is third_party
    for call in (lambda: either.done_batch(states[0]), lambda: both.reset_batch(states[0], np.array([True]))):
        with pytest.raises(TypeError, match="holds BlueIsDone, which has no reset_batch and done_batch"):
            call()


def test_overriding_the_dict_form_alone_ends_the_batch_form():
    class Mine(GoalCondition):
        def is_done(self, agents, state, shared_info):
            return dict.fromkeys(agents, True)

    class Resets(TimeoutCondition):
        def reset(self, agents, initial_state, shared_info):
            super().reset(agents, initial_state, shared_info)

    for condition in (Mine(), Resets(1)):
        assert third_party_part(condition) is condition
    assert all(third_party_part(ours) is None for ours, _ in pairs(1))


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TimeoutCondition, NoTouchTimeoutCondition])
@pytest.mark.parametrize("seconds", [-1, math.nan])
def test_a_time_that_is_none_is_refused(kind, seconds):
    with pytest.raises(ValueError, match=f"timeout_seconds is {seconds}, expected seconds, 0 or more"):
        kind(seconds)


@pytest.mark.parametrize("kind", [AnyCondition, AllCondition])
@pytest.mark.parametrize(
    ("given_conditions", "error", "message"),
    [
        ((), ValueError, "has no conditions, expected one or more"),
        (([],), ValueError, "has no conditions, expected one or more"),
        ((GoalCondition(), 3), TypeError, "holds 3, expected RLGym conditions, one by one or as one list"),
        ((GoalCondition,), TypeError, "holds .*expected RLGym conditions, one by one"),
    ],
)
def test_what_is_no_list_of_conditions_is_refused(kind, given_conditions: Any, error, message):
    with pytest.raises(error, match=f"{kind.__name__} {message}"):
        kind(*given_conditions)


@pytest.mark.parametrize("kind", [TimeoutCondition, NoTouchTimeoutCondition])
def test_matches_that_never_began_are_refused(kind):
    one, three = blank_state(1, 1, 1), blank_state(1, 1, 3)
    condition = kind(1)
    with pytest.raises(RuntimeError, match="has 1 matches that never began, expected reset"):
        condition.done_batch(one)
    condition.reset_batch(one, np.array([True]))
    with pytest.raises(ValueError, match=r"given 3 matches and knew 1 before.*only 2 do"):
        condition.reset_batch(three, np.array([True, True, False]))
    condition.reset_batch(three, np.ones(3, np.bool_))
    assert not condition.done_batch(three).any()
