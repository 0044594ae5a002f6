"""Flights of balls that follow from their shown numbers alone."""

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import World, bits

PARTS = {
    "ball_position": slice(1, 4),
    "ball_linear_velocity": slice(4, 7),
    "ball_angular_velocity": slice(7, 10),
}


def balls(count, seed):
    """Return balls all over the field `(count, 10)`, many of them on the floor, at walls and in corners."""
    random = np.random.default_rng(seed)
    found = np.ones((count, 10), np.float32)
    found[:, 1:4] = random.uniform((-3950, -5000, 93), (3950, 5000, 1940), (count, 3))
    found[:, 4:7], found[:, 7:] = random.uniform(-2500, 2500, (count, 3)), random.uniform(-5, 5, (count, 3))
    low, near = random.random(count) < 0.4, random.random(count) < 0.4
    found[low, 3], found[low, 6] = 93.15, 0
    found[near, 1] = np.sign(found[near, 1]) * random.uniform(3300, 3950, near.sum())
    found[near, 2] = np.sign(found[near, 2]) * random.uniform(4300, 5000, near.sum())
    return found


def shown(given):
    """Return a world of these balls, and the balls as it shows them."""
    world = World(len(given), 0, 0)
    world.state["gravity"][:] = 1
    world.state["ball_rotation"][:] = np.eye(3)
    for name, part in PARTS.items():
        world.state[name][:] = given[:, part]
    world.put()
    world.step(ticks=1)  # shown as RocketSim rounds them
    seen = given.copy()
    for name, part in PARTS.items():
        seen[:, part] = world.state[name]
    world.put()
    return world, seen


def test_a_tick_is_rocketsims_over_open_floor_and_elsewhere():
    world, seen = shown(balls(20_000, 1))
    forecast = rs.BallFlights([1]).forecast(seen)[:, 0]
    world.step(ticks=1)
    now = np.concatenate([world.state[name] for name in PARTS], 1)
    inside = np.linalg.norm(forecast - now, axis=1) > 0.02  # of a ramp's foot, where no match has a ball
    assert (bits(forecast) == bits(now)).all(1).mean() > 0.999 and inside.mean() < 1e-3


def test_equal_balls_have_equal_flights_whatever_was_asked_before():
    given = balls(3000, 2)
    one, other = rs.BallFlights([1, 30, 120]), rs.BallFlights([1, 30, 120])
    for seed in range(3, 6):
        other.forecast(balls(3000, seed))
    answer = one.forecast(given)
    assert (bits(other.forecast(given)) == bits(answer)).all()
    assert (bits(one.forecast(given)) == bits(answer)).all()
    assert (bits(rs.BallFlights([120]).forecast(given[:7])[:, 0]) == bits(answer[:7, 2])).all()


def test_a_flight_goes_on_from_any_of_its_ticks():
    given = balls(500, 7)
    flights = rs.BallFlights(range(1, 301))
    course = flights.forecast(given)
    for tick in (1, 8, 100):
        later = given.copy()
        later[:, 1:] = course[:, tick - 1]
        expected = bits(course[:, tick:])
        assert (bits(flights.forecast(later)[:, :-tick]) == expected).all()
        assert (bits(rs.BallFlights(range(1, 301)).forecast(later)[:, :-tick]) == expected).all()


@pytest.mark.parametrize("ticks", [[], [0], [1201], [5, -1], [2**70]])
def test_ticks_that_are_out_of_range_are_refused(ticks):
    with pytest.raises(ValueError, match=r"ticks is empty|a number in ticks is -?\d+, expected 1 to 1200"):
        rs.BallFlights(ticks)


def test_what_is_no_ball_is_refused():
    flights, given = rs.BallFlights([3]), balls(4, 8)
    for column, value, words in (
        (0, 1e4, "gravity of ball 2 has 10000"), (3, np.nan, "position of ball 2 has NaN"),
        (6, np.inf, "velocity of ball 2 has inf"), (9, -2000, "spin of ball 2 has -2000"),
    ):  # fmt: skip
        wrong = given.copy()
        wrong[2, column] = value
        with pytest.raises(ValueError, match=words):
            flights.forecast(wrong)
    for wrong in (given[:, :9].copy(), given.astype(np.float64), given[0], np.asfortranarray(given)):
        with pytest.raises(ValueError, match="balls is "):
            flights.forecast(wrong)
    assert flights.forecast(given[:0]).shape == (0, 1, 9)
