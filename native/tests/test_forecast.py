"""Copies of matches that are played on, while the matches stay as they are."""

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import bits, playing, random_controls


@pytest.mark.parametrize(("blue", "orange", "threads"), [(1, 1, 1), (3, 2, 2), (0, 0, 1)])
def test_a_forecast_is_what_the_match_comes_to_by_these_controls(blue, orange, threads):
    world = playing(4, blue, orange, seed=7, threads=threads)
    random = np.random.default_rng(1)
    for ticks in (1, 8, 60):
        controls = random_controls(random, 4, world.cars, ticks)
        chosen = [3, 0, 2]
        ahead = world.buffer[chosen].copy()
        world.matches.forecast(chosen, np.ascontiguousarray(controls[chosen]), ahead)
        world.step(controls, ticks, np.zeros((4, world.cars), np.int64))
        assert (bits(ahead) == bits(world.buffer[chosen])).all()


def test_a_forecast_of_a_match_changes_nothing():
    world, other = (playing(3, 2, 2, seed=2) for _ in range(2))
    late = np.full((3, 4), 5)
    for one in (world, other):
        one.step(random_controls(np.random.default_rng(4), 3, 4, 8), 8, late)
    before, events = world.buffer.copy(), world.matches.events().tobytes()
    world.matches.forecast([0, 2], np.ones((2, 4, 30, 8), np.float32), before[[0, 2]].copy())
    assert (bits(world.buffer) == bits(before)).all() and world.matches.events().tobytes() == events
    for one in (world, other):
        one.step(ticks=100)
    assert (bits(world.buffer) == bits(other.buffer)).all()


@pytest.mark.parametrize(
    ("matches", "controls", "states", "words"),
    [
        ([0], (1, 2, 0, 8), 1, "ticks is 0, expected 1 to 72000"),
        ([0], (1, 3, 4, 8), 1, r"controls is float32\[1, 3, 4, 8\], expected .*float32\[1, 2, 4, 8\]"),
        ([0, 1], (1, 2, 4, 8), 2, r"expected .*float32\[2, 2, 4, 8\]"),
        ([0], (1, 2, 4, 8), 2, r"states is float32\[2, \d+\], expected"),
        ([5], (1, 2, 4, 8), 1, "a number in matches is 5, expected 0 to 1"),
    ],
)
def test_a_forecast_refuses_what_does_not_fit(matches, controls, states, words):
    world = playing(2)
    with pytest.raises(ValueError, match=words):
        world.matches.forecast(
            matches, np.zeros(controls, np.float32), np.zeros((states, world.layout.size), np.float32)
        )


def test_a_forecast_refuses_controls_that_are_none():
    world = playing(1)
    controls = np.zeros((1, 2, 3, 8), np.float32)
    controls[0, 1, 2, 1] = 1.5
    with pytest.raises(ValueError, match=r"match 0, car 1: steer is 1.5, expected a number from -1 to 1"):
        world.matches.forecast([0], controls, world.buffer.copy())
    with pytest.raises(rs.MatchError, match="it has no state yet"):
        rs.Matches(1, world.layout).forecast([0], controls * 0, world.buffer.copy())
