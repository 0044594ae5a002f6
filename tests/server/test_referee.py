"""Phases and clock, without an arena."""

import math

import pytest

from rlgym_bridge.game import BLUE, ORANGE, Phase
from rlgym_bridge.server.game.referee import Course, Referee


def ticks(referee, count, touched=False, goal_for=None, on_floor=False):
    for _ in range(count):
        referee.advance(touched, goal_for, on_floor)


def in_play(**course):
    """A referee at the touch that starts the clock."""
    referee = Referee(Course(**course))
    ticks(referee, 480)
    ticks(referee, 1, touched=True)
    assert referee.phase == Phase.ACTIVE
    return referee


@pytest.mark.protocol("phases.countdown")
def test_a_countdown_lasts_480_ticks():
    referee = Referee(Course())
    ticks(referee, 479)
    assert referee.phase == Phase.COUNTDOWN
    ticks(referee, 1)
    assert referee.phase == Phase.KICKOFF


@pytest.mark.protocol("phases.clock-starts", "phases.kickoff")
def test_the_clock_stands_still_until_the_first_touch():
    referee = Referee(Course())
    ticks(referee, 480 + 1000)
    assert (referee.phase, referee.clock) == (Phase.KICKOFF, 300 * 120)
    ticks(referee, 1, touched=True)
    assert (referee.phase, referee.clock) == (Phase.ACTIVE, 300 * 120)
    ticks(referee, 120)
    assert referee.clock == 299 * 120


@pytest.mark.protocol("phases.goal-scored", "phases.replay")
def test_a_goal_stops_the_clock_until_the_next_touch():
    referee = in_play()
    ticks(referee, 99)
    ticks(referee, 1, goal_for=ORANGE)
    assert (referee.phase, referee.score) == (Phase.GOAL_SCORED, [0, 1])
    ticks(referee, 359, touched=True, goal_for=ORANGE)  # the ball is in the net
    assert referee.score == [0, 1]
    assert referee.phase == Phase.GOAL_SCORED
    ticks(referee, 1)
    assert referee.phase == Phase.REPLAY
    ticks(referee, 1080)
    assert referee.phase == Phase.COUNTDOWN
    ticks(referee, 480 + 50)
    assert (referee.phase, referee.clock) == (Phase.KICKOFF, 300 * 120 - 100)


@pytest.mark.protocol("phases.replay")
def test_replays_are_skipped_when_the_match_says_so():
    referee = in_play(skip_replays=True)
    ticks(referee, 1, goal_for=BLUE)
    ticks(referee, 360)
    assert referee.phase == Phase.COUNTDOWN


@pytest.mark.protocol("phases.zero")
def test_at_zero_the_ball_is_played_until_it_meets_the_floor():
    referee = in_play(regulation=1.0)
    referee.score = [1, 0]
    ticks(referee, 119, on_floor=True)
    assert referee.clock == 1
    assert referee.waits_for_floor
    ticks(referee, 500)
    assert (referee.phase, referee.clock) == (Phase.ACTIVE, 0)
    ticks(referee, 1, on_floor=True)
    assert (referee.phase, referee.ended_by, referee.winner) == (Phase.ENDED, "time", "blue")


@pytest.mark.parametrize(("score", "phase"), [([1, 0], Phase.ENDED), ([1, 1], Phase.COUNTDOWN)])
def test_a_ball_held_up_at_zero_counts_as_down_after_max_hang(score, phase):
    referee = in_play(regulation=1.0, max_hang=2.0)
    referee.score = score
    ticks(referee, 120 + 239)
    assert (referee.phase, referee.clock) == (Phase.ACTIVE, 0)
    ticks(referee, 1)
    assert referee.phase == phase and referee.overtime == (phase == Phase.COUNTDOWN)


@pytest.mark.protocol("phases.zero")
def test_a_goal_after_the_buzzer_counts_and_decides():
    referee = in_play(regulation=1.0)
    ticks(referee, 150)
    ticks(referee, 1, goal_for=BLUE)
    assert referee.phase == Phase.GOAL_SCORED
    ticks(referee, 360)
    assert (referee.phase, referee.ended_by, referee.score) == (Phase.ENDED, "time", [1, 0])


@pytest.mark.protocol("phases.tying-goal")
def test_a_tying_goal_after_the_buzzer_leads_to_overtime():
    referee = in_play(regulation=1.0)
    referee.score = [1, 0]
    ticks(referee, 150)
    ticks(referee, 1, goal_for=ORANGE)
    ticks(referee, 360)
    assert (referee.phase, referee.overtime) == (Phase.REPLAY, False)
    ticks(referee, 1080)
    assert (referee.phase, referee.overtime) == (Phase.COUNTDOWN, True)


@pytest.mark.protocol("phases.overtime")
def test_a_tie_at_zero_goes_straight_to_overtime():
    referee = in_play(regulation=1.0)
    ticks(referee, 120, on_floor=True)
    assert (referee.phase, referee.overtime) == (Phase.COUNTDOWN, True)


def overtime(**course):
    referee = in_play(regulation=1.0, **course)
    ticks(referee, 120, on_floor=True)
    ticks(referee, 480)
    assert (referee.phase, referee.clock) == (Phase.KICKOFF, 0)
    ticks(referee, 1, touched=True)
    return referee


@pytest.mark.protocol("phases.overtime")
def test_in_overtime_the_clock_counts_up_to_the_first_goal():
    referee = overtime()
    ticks(referee, 36_000, on_floor=True)
    assert (referee.phase, referee.clock) == (Phase.ACTIVE, 36_000)
    ticks(referee, 1, goal_for=ORANGE)
    ticks(referee, 359)
    assert referee.phase == Phase.GOAL_SCORED
    ticks(referee, 1)
    assert (referee.phase, referee.ended_by, referee.winner) == (Phase.ENDED, "overtime goal", "orange")


def test_overtime_without_a_goal_is_a_draw_after_max_overtime():
    referee = overtime(max_overtime=2.0)
    ticks(referee, 239)
    assert referee.phase == Phase.ACTIVE
    ticks(referee, 1)
    assert (referee.phase, referee.ended_by, referee.winner) == (
        Phase.ENDED, "max overtime: draw", "draw",
    )  # fmt: skip


@pytest.mark.protocol("phases.max-score")
def test_the_goal_that_reaches_max_score_ends_the_match():
    referee = in_play(max_score=1)
    ticks(referee, 1, goal_for=BLUE)
    ticks(referee, 360)
    assert (referee.phase, referee.ended_by) == (Phase.ENDED, "max score")


@pytest.mark.protocol("packet.unlimited")
def test_without_a_match_length_the_clock_counts_up_for_ever():
    referee = in_play(regulation=None)
    ticks(referee, 100_000, on_floor=True)
    assert (referee.phase, referee.clock) == (Phase.ACTIVE, 100_000)


@pytest.mark.parametrize(("limit", "phase"), [(2.0, Phase.ENDED), (math.inf, Phase.KICKOFF)])
def test_an_untouched_kickoff_lasts_for_max_kickoff(limit, phase):
    referee = Referee(Course(max_kickoff=limit))
    ticks(referee, 480 + 239)
    assert referee.phase == Phase.KICKOFF
    ticks(referee, 1)
    assert referee.phase == phase


@pytest.mark.protocol("phases.ended")
def test_nothing_follows_the_end():
    referee = in_play()
    referee.end("stopped")
    ticks(referee, 5000, touched=True, goal_for=BLUE, on_floor=True)
    assert (referee.phase, referee.score, referee.ended_by) == (Phase.ENDED, [0, 0], "stopped")
