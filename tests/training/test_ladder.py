"""The rating of a policy in training."""

import pytest

from training.selfplay.ladder import Ladder


def test_a_rating_begins_at_25_and_follows_the_goals() -> None:
    ladder = Ladder()
    ladder.count(0, 0, 0, seed=1)
    assert ladder.rating == 25
    ladder.count(0, 9, 1, seed=1)
    better = ladder.rating
    assert better > 27
    ladder.count(0, 0, 20, seed=2)
    assert ladder.rating < 25


def test_a_snapshot_keeps_the_rating_that_the_policy_had() -> None:
    ladder = Ladder()
    ladder.count(0, 20, 0, seed=1)
    ladder.keep(1)
    then = ladder.rating
    ladder.count(1, 20, 0, seed=2)
    assert ladder.marks[2][0] == then < ladder.rating
    ladder.keep(0)
    assert ladder.marks[1] == ladder.marks[0]


def test_half_of_the_goals_leave_ratings_near_each_other() -> None:
    ladder = Ladder()
    ladder.count(0, 200, 200, seed=3)
    assert ladder.rating == pytest.approx(25, abs=4)


def test_a_ladder_goes_on_from_its_marks() -> None:
    one, other = Ladder(), Ladder()
    one.count(0, 5, 2, seed=1)
    one.keep(1)
    other.restore([list(mark) for mark in one.marks])
    for ladder in (one, other):
        ladder.count(1, 3, 1, seed=4)
    assert one.marks == other.marks
