"""The rating of a policy in training."""

import numpy as np
import pytest

from rlgym_bridge.training.selfplay.ladder import Ladder
from rlgym_bridge.training.selfplay.snapshots import Snapshots


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


def test_versions_of_near_ratings_are_met_more_often() -> None:
    ladder = Ladder()
    ladder.restore([(40.0, 1.0), (10.0, 1.0), (39.0, 1.0), (55.0, 1.0), (42.0, 1.0)])
    shares = ladder.weigh_by_rating()
    assert shares.sum() == pytest.approx(1) and shares.min() >= 0.05
    assert shares[[1, 3]].min() > 2 * shares[[0, 2]].max()
    ladder.restore([(4000.0, 1.0), (10.0, 1.0), (20.0, 1.0)])
    assert ladder.weigh_by_rating() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("by_rating", [False, True])
def test_an_iteration_meets_one_version_however_often_it_asks(by_rating: bool) -> None:
    snapshots, random = Snapshots(4, np.zeros(2, np.float32)), np.random.default_rng(0)
    for version in range(1, 4):
        snapshots.ladder.count(0, 20, 0, seed=version)
        snapshots.offer(np.full(2, version, np.float32), random)
    drawn = [snapshots.draw(steps, random, by_rating) for steps in range(200) for _ in range(2)]
    assert drawn[::2] == drawn[1::2]
    met = np.bincount(drawn[::2], minlength=4)
    assert (met > 0).all()
    assert not by_rating or met[3] > 1.5 * met[0], "the newest one is nearer than the first"
