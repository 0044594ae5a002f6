"""Events and statistics of scenes made by hand."""

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import fly, resting, stand

GOALS, ASSISTS, SAVES, SHOTS, DEMOLITIONS, TOUCHES = range(6)


def collect(world, ticks):
    """Step tick by tick without controls; return events with their tick of the scene."""
    found = []
    for tick in range(ticks):
        for event in world.step():
            found.append((tick, event))
    return found


def of_kind(events, kind):
    return [(tick, event) for tick, event in events if event["kind"] == kind]


def hit(world, car, *, ball_y=0.0, speed=2200.0):
    """Let a car drive into the ball before its nose, towards its y direction."""
    side = 1 if car < world.layout.blue else -1
    fly(world.state, (0, ball_y, 93.15), (0, 0, 0))
    stand(world.state, car, (0, ball_y - side * 260, 17), yaw=side * np.pi / 2, velocity=(0, side * speed, 0))


def test_a_touch_has_its_place_in_the_world_and_relative_to_the_ball():
    world = resting(1, 1, 1)
    hit(world, 0)
    world.put()
    tick, touch = of_kind(collect(world, 40), rs.TOUCH)[0]
    assert (touch["match"], touch["car"], touch["other"]) == (0, 0, -1) and 0 < tick < 20
    place, arm = touch["numbers"][:3], touch["numbers"][3:]
    assert np.linalg.norm(arm) == pytest.approx(91.25, abs=25) and arm[1] < 0
    assert place - arm == pytest.approx((0, 0, 93.15), abs=0.01)


def test_a_step_counts_the_ticks_with_contact_and_stamps_the_tick_of_each():
    world = resting(1, 1, 1)
    hit(world, 0)
    world.put()
    events = world.step(ticks=30)
    touches = events[events["kind"] == rs.TOUCH]
    assert len(touches) == world.state["car_ball_touches"][0, 0] >= 1
    assert len(set(touches["tick"])) == len(touches) and (touches["tick"] < 30).all()
    assert world.matches.statistics()[0, :, TOUCHES].tolist() == [len(touches), 0]
    assert len(world.step(ticks=1)[:0]) == 0
    world.step(ticks=60)
    assert world.state["car_ball_touches"][0, 0] == 0 and (world.matches.events()["kind"] != rs.TOUCH).all()


def test_a_bump_names_bumper_and_victim():
    world = resting(1, 1, 1)
    stand(world.state, 0, (0, -400, 17), yaw=np.pi / 2, velocity=(0, 1200, 0))
    stand(world.state, 1, (0, 0, 17), yaw=0)
    fly(world.state, (3000, 3000, 93.15), (0, 0, 0))
    world.put()
    events = collect(world, 60)
    bumps = of_kind(events, rs.BUMP)
    assert [(event["car"], event["other"]) for _, event in bumps] == [(0, 1)]
    assert bumps[0][1]["numbers"][:3] == pytest.approx((0, -45, 35), abs=45)
    assert not of_kind(events, rs.DEMOLITION) and world.matches.statistics()[..., DEMOLITIONS].sum() == 0


def test_the_victim_is_shown_while_its_bump_cools_down():
    world = resting(1, 1, 1)
    stand(world.state, 0, (0, -400, 17), yaw=np.pi / 2, velocity=(0, 1200, 0))
    stand(world.state, 1, (0, 0, 17), yaw=0)
    world.put()
    assert world.state["car_bump_victim"][0].tolist() == [-1, -1]
    shown = []
    for _ in range(90):
        world.step()
        shown.append(world.state["car_bump_victim"][0, 0])
    assert shown.count(1) in (30, 31) and shown[-1] == -1


def test_a_demolition_is_counted_for_the_bumper_and_the_victim_comes_back():
    world = resting(1, 1, 1)
    stand(world.state, 0, (0, -600, 17), yaw=np.pi / 2, velocity=(0, 2290, 0))
    world.state["car_supersonic_time"][0, 0] = 0.5
    stand(world.state, 1, (0, 0, 17), yaw=0)
    fly(world.state, (3000, 3000, 93.15), (0, 0, 0))
    world.put()
    events = collect(world, 60)
    ((tick, demolition),) = of_kind(events, rs.DEMOLITION)
    assert (demolition["car"], demolition["other"]) == (0, 1) and not of_kind(events, rs.BUMP)
    assert demolition["numbers"][:3] == pytest.approx((0, -45, 35), abs=45)
    assert world.matches.statistics()[0, :, DEMOLITIONS].tolist() == [1, 0]
    assert world.state["car_is_demoed"][0].tolist() == [0, 1]
    assert world.state["car_demo_respawn_timer"][0, 1] == pytest.approx(3 - (59 - tick) / 120, abs=0.01)
    collect(world, 360 - (59 - tick))
    assert world.state["car_is_demoed"][0].tolist() == [0, 0]


def test_a_landing_tells_how_many_wheels_touch_and_a_bounce_where():
    world = resting(1, 1, 0)
    stand(world.state, 0, (2000, 0, 300))
    fly(world.state, (0, 0, 500), (0, 0, -100))
    world.put()
    events = collect(world, 200)
    landings, bounces = of_kind(events, rs.LANDING), of_kind(events, rs.BOUNCE)
    assert landings[0][1]["car"] == 0 and 1 <= landings[0][1]["numbers"][0] <= 4
    place, normal = bounces[0][1]["numbers"][:3], bounces[0][1]["numbers"][3:]
    assert place == pytest.approx((0, 0, 0), abs=8) and normal == pytest.approx((0, 0, 1), abs=1e-3)
    assert bounces[0][1]["car"] == bounces[0][1]["other"] == -1


def test_a_ball_that_rolls_or_lies_does_not_bounce():
    world = resting(2, 0, 0)
    fly(world.state, (0, 0, 93.15), (1000, 0, 0))
    world.put()
    assert not of_kind(collect(world, 100), rs.BOUNCE)


def test_a_goal_is_credited_to_the_scorer_and_the_mate_who_passed():
    world = resting(1, 2, 1)
    stand(world.state, 0, (0, -260, 17), yaw=np.pi / 2, velocity=(0, 1000, 0))
    fly(world.state, (0, 0, 93.15), (0, 0, 0))
    stand(world.state, 1, (3000, -3000, 17))
    stand(world.state, 2, (-3000, -3000, 17))
    world.put()
    assert of_kind(collect(world, 30), rs.TOUCH)
    world.matches.nudge(
        [0], *_moved(world, car=1, place=(0, 3600, 17), velocity=(0, 2200, 0), ball=(0, 3860, 93.15))
    )
    events = collect(world, 150)
    ((_, goal),) = of_kind(events, rs.GOAL)
    assert (goal["car"], goal["other"]) == (1, 0)
    assert goal["numbers"][0] == 0 and goal["numbers"][1] > 1500
    counts = world.matches.statistics()[0]
    assert counts[:, GOALS].tolist() == [0, 1, 0] and counts[:, ASSISTS].tolist() == [1, 0, 0]
    assert world.state["goal_scored"][0] == 1


def _moved(world, *, car, place, velocity, ball):
    states = world.buffer.copy()
    state = rs.views(world.layout, states)
    stand(state, car, place, yaw=np.pi / 2, velocity=velocity)
    fly(state, ball, (0, 0, 0))
    return states, world.buffer


def test_an_own_goal_without_a_touch_of_the_other_team_has_no_scorer():
    world = resting(1, 1, 1)
    fly(world.state, (0, 5000, 300), (0, 1500, 0))
    world.put()
    ((_, goal),) = of_kind(collect(world, 60), rs.GOAL)
    assert (goal["car"], goal["other"], goal["numbers"][0]) == (-1, -1, 0)
    assert world.matches.statistics()[..., GOALS].sum() == 0


def test_a_shot_is_credited_36_ticks_after_the_touch_and_a_save_to_the_defender():
    world = resting(1, 1, 1)
    hit(world, 0, ball_y=3000, speed=2000)
    stand(world.state, 1, (0, 4900, 700), yaw=-np.pi / 2)  # falls into the ball's way
    world.put()
    events = collect(world, 300)
    touch = of_kind(events, rs.TOUCH)
    last = max(tick for tick, event in touch if event["car"] == 0)
    ((tick, shot),) = of_kind(events, rs.SHOT)
    assert (shot["car"], shot["other"]) == (0, -1) and tick - last in (35, 36) and shot["numbers"][0] >= 1750
    ((saved, save),) = of_kind(events, rs.SAVE)
    assert save["car"] == 1 and saved in [tick for tick, event in touch if event["car"] == 1]
    counts = world.matches.statistics()[0]
    assert counts[:, SHOTS].tolist() == [1, 0] and counts[:, SAVES].tolist() == [0, 1]


def test_a_slow_ball_is_no_shot():
    world = resting(1, 1, 1)
    hit(world, 0, ball_y=2000, speed=700)
    world.put()
    assert not of_kind(collect(world, 200), rs.SHOT)


def test_a_kickoff_forgets_who_touched_the_ball():
    world = resting(1, 1, 1)
    hit(world, 0)
    world.put()
    assert of_kind(collect(world, 30), rs.TOUCH)
    world.matches.kickoff([0], world.buffer)
    states = world.buffer.copy()
    fly(rs.views(world.layout, states), (0, 5000, 300), (0, 1500, 0))
    world.matches.nudge([0], states, world.buffer)
    ((_, goal),) = of_kind(collect(world, 60), rs.GOAL)
    assert goal["car"] == -1


def test_events_of_many_matches_are_ordered_by_match_and_tick():
    world = resting(5, 1, 1)
    for match in range(5):
        fly(world.state, (0, 0, 300 + 100 * match), (0, 0, -500), match)
    world.put()
    events = world.step(ticks=400)
    keys = list(zip(events["match"].tolist(), events["tick"].tolist(), strict=True))
    assert keys == sorted(keys) and set(events["match"].tolist()) == set(range(5))
    assert events.dtype == rs.EVENT and world.matches.events().tobytes() == events.tobytes()
