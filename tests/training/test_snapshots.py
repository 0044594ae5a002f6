"""Older versions of the policy, and the rating of the policy in training."""

import numpy as np
import pytest

from rlgym_bridge.training.selfplay.snapshots import Snapshots


def versions(most: int = 8) -> Snapshots:
    return Snapshots(most, np.zeros(2, np.float32))


def offer(snapshots: Snapshots, version: int = 1) -> None:
    snapshots.offer(np.full(2, version, np.float32), np.random.default_rng(version))


def test_a_rating_begins_at_0_and_follows_the_goals() -> None:
    one = versions()
    one.count(0, 0, 0, seed=1)
    assert one.rating == 0
    one.count(0, 9, 1, seed=1)
    assert 40 < one.rating < 80
    one.count(0, 0, 20, seed=2)
    assert one.rating < 0


def test_ten_goals_for_each_conceded_are_400_points() -> None:
    one = versions()
    for seed in range(50):
        one.count(0, 10, 1, seed=seed)
    assert one.rating == pytest.approx(400, abs=40)
    one.count(0, 200, 200, seed=3)
    assert one.rating == pytest.approx(0, abs=40)


def test_a_snapshot_keeps_the_rating_that_the_policy_had() -> None:
    one = versions(2)
    one.count(0, 20, 0, seed=1)
    offer(one)
    then = one.rating
    one.count(1, 20, 0, seed=2)
    assert one.ratings == [0, then] and then < one.rating
    for version in range(2, 20):
        offer(one, version)
    assert len(one.rows) == len(one.ratings) == 2 and one.rating in one.ratings


@pytest.mark.parametrize("former", [False, True])
def test_ratings_go_on_from_a_checkpoint(former: bool) -> None:
    one, other = versions(), versions()
    one.count(0, 5, 2, seed=1)
    offer(one)
    state = one.state() | {"snapshots": type("Tensor", (), {"numpy": lambda _: np.stack(one.rows)})()}
    if former:  # openskill's mean and deviation: 25 for the untrained policy, 4.17 its beta
        state["ratings"] = [[25 + points / 29.48, 2.0] for points in state["ratings"]]
    other.restore(state)
    assert other.ratings == pytest.approx(one.ratings, rel=1e-3)
    for each in (one, other):
        each.count(1, 3, 1, seed=4)
    assert other.rating == pytest.approx(one.rating, rel=1e-3) and len(other.rows) == 2


def test_versions_of_near_ratings_are_met_more_often() -> None:
    one = versions()
    one.rating, one.ratings = 1000.0, [200.0, 990.0, 1600.0, 1050.0]
    shares = one.weigh_by_rating()
    assert shares.sum() == pytest.approx(1) and shares.min() >= 0.05
    assert shares[[1, 3]].min() > 2 * shares[[0, 2]].max()
    one.rating, one.ratings = 1e5, [0.0, 300.0]
    assert one.weigh_by_rating() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("by_rating", [False, True])
def test_an_iteration_meets_one_version_however_often_it_asks(by_rating: bool) -> None:
    snapshots, random = versions(4), np.random.default_rng(0)
    for version in range(1, 4):
        snapshots.count(0, 20, 0, seed=version)
        offer(snapshots, version)
    drawn = [snapshots.draw(steps, random, by_rating) for steps in range(200) for _ in range(2)]
    assert drawn[::2] == drawn[1::2]
    met = np.bincount(drawn[::2], minlength=4)
    assert (met > 0).all()
    assert not by_rating or met[3] > 1.5 * met[0], "the newest one is nearer than the first"
