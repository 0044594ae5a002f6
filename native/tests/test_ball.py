"""Forecasts of the ball, and mutators of it."""

import time

import bounces
import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import bits, fly, playing, resting


def parked(seed, matches=20):
    """Return matches whose cars lie asleep in a corner while the ball flies."""
    world = playing(matches, 3, 3, seed=seed, ticks=0)
    world.state["car_position"][:] = [(x, -5000, 17) for x in (-600, -300, 0, 150, 300, 600)]
    random = np.random.default_rng(seed)
    for match in range(matches):
        fly(
            world.state,
            random.uniform((-3000, -2000, 200), (3000, 3000, 1500)),
            random.uniform(-1500, 1500, 3),
            match,
        )
    world.state["ball_angular_velocity"][:] = random.uniform(-3, 3, (matches, 3))
    return world


@pytest.mark.parametrize("bounciness", [0.6, 0.85])
def test_a_forecast_is_the_ball_of_the_match_as_long_as_nobody_touches_it(bounciness):
    world = parked(3)
    for match in world.all:
        world.matches.set_mutators(match, {"ball_bounciness": bounciness})
    world.put()
    forecast = world.matches.forecast_ball(world.all, 720, 8)
    assert forecast.shape == (20, 90, 9)
    touched = np.zeros(20, bool)
    for frame in forecast.transpose(1, 0, 2):
        world.step(ticks=8)
        touched |= (world.state["car_ball_touches"] > 0).any(axis=1)
        ball = [world.state[f"ball_{name}"] for name in ("position", "linear_velocity", "angular_velocity")]
        assert (bits(np.concatenate(ball, axis=1)[~touched]) == bits(frame[~touched])).all()
    assert touched.sum() < 10


def test_a_forecast_changes_nothing():
    world, other = (playing(4, 1, 1, seed=2) for _ in range(2))
    world.matches.forecast_ball([0, 3, 1], 720)
    for one in (world, other):
        one.step(ticks=100)
    assert (bits(world.buffer) == bits(other.buffer)).all()


def test_a_forecast_of_six_seconds_takes_about_half_a_millisecond():
    world = parked(1, 64)
    world.put()
    best = min(_time(lambda: world.matches.forecast_ball(world.all, 720, 8)) for _ in range(3)) / 64
    assert best < 5e-3  # on busy machines; 0.4e-3 on quiet ones


def _time(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def dropped(bounciness, velocity=(0, 0, 0), spin=(0, 0, 0)):
    world = resting(1, 0, 0)
    if bounciness is not None:
        world.matches.set_mutators(0, {"ball_bounciness": bounciness})
    fly(world.state, (0, 0, 800), (0.02, 0, 0) if not any(velocity) else velocity)
    world.state["ball_angular_velocity"][:] = spin
    world.put()
    return world


@pytest.mark.parametrize("bounciness", [0.3, 0.6, 0.8, 0.95])
def test_a_dropped_ball_rebounds_with_its_bounciness(bounciness):
    world = dropped(bounciness)
    speeds = []
    for _ in range(400):
        world.step()
        speeds.append(world.state["ball_linear_velocity"][0, 2])
        if len(speeds) > 1 and speeds[-1] > 0 > speeds[-2]:
            break
    # In the tick of the bounce gravity and drag act too: 5.4 uu/s and a few thousandths.
    assert speeds[-1] / -speeds[-2] == pytest.approx(bounciness, abs=0.012)


def test_bounciness_of_0_6_is_rocketsims_own_to_the_bit():
    own, named = dropped(None, (700, 300, -500), (1, 2, 3)), dropped(0.6, (700, 300, -500), (1, 2, 3))
    other = dropped(0.7, (700, 300, -500), (1, 2, 3))
    for world in (own, named, other):
        world.step(ticks=400)
    assert (bits(own.buffer) == bits(named.buffer)).all()
    assert (own.buffer != other.buffer).any()


@pytest.fixture(scope="module")
def older_simulator():
    pytest.importorskip("RocketSim")
    bounces.load_old_meshes()


@pytest.mark.parametrize("bounciness", bounces.BOUNCINESS)
@pytest.mark.parametrize("surface", [name for name in bounces.SURFACES if name != "slope"])
def test_a_bounce_off_a_plane_is_that_of_rocketsim_2_2_1(surface, bounciness, older_simulator):
    apart = bounces.errors(surface, bounciness)
    assert len(apart) >= 55
    assert apart.max(axis=0) == pytest.approx([0, 0], abs=0.25)  # 0.20 uu/s measured
    assert apart[:, 1].max() < 0.003  # rad/s


@pytest.mark.parametrize("bounciness", bounces.BOUNCINESS)
def test_a_bounce_off_a_slope_is_as_near_as_that_of_0_6(bounciness, older_simulator):
    """There the simulators differ by their meshes, so errors grow as the push of the bounce does."""
    own, found = (bounces.errors("slope", value)[:, 0] for value in (0.6, bounciness))
    push = (1 + bounciness) / 1.6
    assert np.median(found) < 1.4 * push * np.median(own)
    assert found.max() < 1.4 * push * own.max()


@pytest.mark.parametrize("bounciness", [0.2, 0.4, 0.6, 1.2])
@pytest.mark.parametrize("surface", [name for name in bounces.SURFACES if name not in ("slope", "ceiling")])
def test_a_ball_bounces_once_and_leaves_without_another_push(surface, bounciness):
    places, velocities, spins = bounces.starts(surface)
    world = resting(len(places), 0, 0)
    for match in world.all:
        world.matches.set_mutators(match, {"ball_bounciness": bounciness})
    world.state["ball_position"][:], world.state["ball_linear_velocity"][:] = places, velocities
    world.state["ball_angular_velocity"][:] = spins
    world.put()
    count = np.zeros(world.count, int)
    for _ in range(bounces.AHEAD + 8):
        before = world.state["ball_linear_velocity"].copy()
        events = world.step()
        bounced = events["match"][events["kind"] == rs.BOUNCE]
        change = np.linalg.norm(world.state["ball_linear_velocity"] - before, axis=1)
        assert (np.delete(change, bounced) < 8).all()  # gravity and drag alone
        count[bounced] += 1
    assert (count == 1).all()


def test_mutators_act_from_the_next_put_on():
    world, other = dropped(None), dropped(None)
    world.matches.set_mutators(0, {"ball_bounciness": 0.95, "gravity": -100})
    for one in (world, other):
        one.step(ticks=300)
    assert (bits(world.buffer) == bits(other.buffer)).all()
    assert world.matches.mutators(0)["ball_bounciness"] == np.float32(0.95)
    for one in (world, other):
        one.put()
        one.step(ticks=300)
    assert (bits(world.buffer) != bits(other.buffer)).any()


def test_gravity_of_the_row_multiplies_that_of_the_mutators():
    heights = []
    for gravity in (1, 2):
        world = dropped(None, (0, 0, 100))
        world.state["gravity"][:] = gravity
        world.put()
        world.step(ticks=60)
        heights.append(800 + 100 * 0.5 - world.state["ball_position"][0, 2])
    assert heights[1] / heights[0] == pytest.approx(2, rel=0.03)
