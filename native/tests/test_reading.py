"""Rows show the whole state, and setting one back changes nothing else."""

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import World, bits, playing, random_controls, resting, stand


def go_on(worlds, steps=38, seed=7):
    """Step worlds by the same random controls; return how many bits of rows differ after each step."""
    random, differ = np.random.default_rng(seed), []
    for _ in range(steps):
        controls = random_controls(random, worlds[0].count, worlds[0].cars)
        for world in worlds:
            world.step(controls, 8)
        differ.append((bits(worlds[0].buffer) != bits(worlds[1].buffer)).any(axis=1))
    return np.array(differ)


def test_a_nudge_to_what_is_shown_leaves_300_ticks_of_play_equal_to_the_bit():
    plain, nudged = (playing(16, 2, 2, seed=3) for _ in range(2))
    random = np.random.default_rng(1)
    for _ in range(38):
        nudged.matches.nudge(nudged.all, nudged.buffer.copy(), nudged.buffer)
        controls = random_controls(random, 16, 4)
        for world in (plain, nudged):
            world.step(controls, 8)
        assert (bits(plain.buffer) == bits(nudged.buffer)).all()


def test_a_shown_ball_put_back_flies_and_bounces_to_the_bit():
    first = playing(32, 0, 0, seed=5, ticks=40)
    second = World(32, 0, 0)
    second.put(first.buffer)
    assert (bits(first.buffer) == bits(second.buffer)).all()
    for _ in range(40):
        first.step(ticks=8)
        second.step(ticks=8)
    assert (bits(first.buffer) == bits(second.buffer)).all()


def test_put_shows_a_shown_row_again_and_the_next_tick_is_equal_for_cars_in_the_air():
    first = playing(64, 1, 1, seed=11, ticks=120)
    second = World(64, 1, 1)
    second.put(first.buffer)
    # What no row has: cooldowns of bumps.
    kept = np.ones(first.layout.size, bool)
    column, _ = first.layout.fields["car_bump_victim"]
    for car in range(2):
        kept[first.layout.car_start + car * first.layout.car_stride + column] = False
    same = bits(first.buffer) == bits(second.buffer)
    assert same[:, kept].all()
    flying = (first.state["car_wheels_with_contact"].sum((1, 2)) == 0) & (
        first.state["car_demo_respawn_timer"] == 0
    ).all(1)
    assert flying.sum() >= 8
    first.step(np.zeros((64, 2, 1, 8), np.float32))
    second.step(np.zeros((64, 2, 1, 8), np.float32))
    bodies = [column for name, (column, shape) in first.layout.fields.items() if name == "car_position"]
    at = first.layout.car_start + bodies[0]
    assert (bits(first.buffer[flying, at : at + 3]) == bits(second.buffer[flying, at : at + 3])).all()


def test_most_put_matches_go_on_as_they_were():
    """Not all: the field's normal, cooldowns of bumps and cars on pads are in no row."""
    first = playing(64, 1, 1, seed=2, ticks=240)
    second = World(64, 1, 1)
    second.put(first.buffer)
    apart = np.abs(first.state["car_position"] - second.state["car_position"])
    assert (apart == 0).all()
    random = np.random.default_rng(3)
    for _ in range(8):
        controls = random_controls(random, 64, 2)
        first.step(controls, 8)
        second.step(controls, 8)
    apart = np.linalg.norm(first.state["car_position"] - second.state["car_position"], axis=-1).max(axis=1)
    assert np.median(apart) <= 0.02
    assert (apart < 1).mean() > 0.75


def test_shown_bodies_are_capped_and_rounded_as_the_next_tick_begins():
    world = playing(32, 2, 2, seed=9)
    speeds = np.linalg.norm(world.state["car_linear_velocity"], axis=-1)
    spins = np.linalg.norm(world.state["car_angular_velocity"], axis=-1)
    assert speeds.max() <= 2300.02 and spins.max() <= 5.5002
    hundredths = world.state["car_position"].astype(np.float64) * 100
    assert np.abs(hundredths - np.round(hundredths)).max() < 0.05
    rotations = world.state["car_rotation"].reshape(-1, 3, 3).astype(np.float64)
    assert np.abs(rotations @ rotations.transpose(0, 2, 1) - np.eye(3)).max() < 1e-5


def test_derived_fields_follow_from_the_others_to_the_bit():
    world = playing(64, 2, 2, seed=4, ticks=0)
    random, seen = np.random.default_rng(0), set()
    for _ in range(120):
        world.step(random_controls(random, 64, 4), 8)
        state = {name.removeprefix("car_"): view for name, view in world.state.items()}
        on_ground = state["wheels_with_contact"].sum(-1) >= 3
        used = (state["has_flipped"] > 0) | (state["has_double_jumped"] > 0)
        has_flip = (state["air_time_since_jump"] < np.float32(1.25)) & ~used
        expected = {
            "on_ground": on_ground,
            "is_demoed": state["demo_respawn_timer"] > 0,
            "is_boosting": state["boost_active_time"] > 0,
            "is_supersonic": state["supersonic_time"] > 0,
            "is_flipping": (state["has_flipped"] > 0) & (state["flip_time"] <= np.float32(0.65)),
            "has_flip": has_flip,
            "can_flip": has_flip & ~on_ground & (state["is_holding_jump"] == 0),
        }
        for name, value in expected.items():
            assert (state[name] == value.astype(np.float32)).all(), name
            seen |= {(name, bool(one)) for one in np.unique(value)}
        assert (state["goal_scored"] == (np.abs(state["ball_position"][:, 1]) > 5215.5)).all()
    assert {name for name, value in seen if value} >= set(expected) - {"is_demoed"}


def test_frames_count_ticks_as_int32_and_other_numbers_stay_the_callers():
    world = resting(2)
    world.state["frame"][:] = (2**24 + 1, 2**31 - 4)
    world.state["clock"][:] = 12.5
    world.state["car_player_id"][:] = (7, 2**30 + 1)
    world.put()
    world.step(ticks=8)
    assert world.state["frame"].tolist() == [2**24 + 9, -(2**31) + 4]
    assert (world.state["clock"] == 12.5).all() and (world.state["car_player_id"] == (7, 2**30 + 1)).all()


def test_a_layout_that_lacks_fields_writes_only_its_own_and_nudges_only_those():
    full = resting(1, 1, 0)
    full.step(np.ones((1, 1, 1, 8), np.float32), 60)
    small = rs.Layout(
        1, 0, size=20, match_columns={"ball_position": 2}, car_columns={"position": 0, "linear_velocity": 3},
        car_start=8, car_stride=7,
    )  # fmt: skip
    world = World(layout=small)
    world.buffer[:] = -5
    world.state["ball_position"][:] = (0, 0, 93.15)
    world.state["car_position"][:], world.state["car_linear_velocity"][:] = (500, 0, 17), (300, 0, 0)
    world.put()
    world.step(np.ones((1, 1, 1, 8), np.float32), 30)
    own = np.zeros(20, bool)
    own[2:5] = own[8:14] = True
    assert (world.buffer[0, ~own] == -5).all()
    assert world.state["car_position"][0, 0, 0] > 550
    turned = playing(1, 1, 0, seed=1, layout=rs.Layout(1, 0))
    states = turned.buffer.copy()
    turned.matches.nudge([0], states, turned.buffer)
    assert (bits(turned.buffer) == bits(states)).all()


def test_a_nudge_moves_only_what_it_is_told_and_keeps_waiting_controls():
    world = resting(1, 1, 1)
    controls = np.zeros((1, 2, 1, 8), np.float32)
    controls[..., 0] = 1
    world.step(controls, 1, np.full((1, 2), 5))
    states = world.buffer.copy()
    moved = rs.views(world.layout, states)
    moved["car_position"][0, :, 2] += 300
    moved["ball_position"][0, 2] += 300
    world.matches.nudge([0], states, world.buffer, ball=False, cars=np.array([[True, False]]))
    assert world.state["car_position"][0, 0, 2] > 300 > world.state["car_position"][0, 1, 2]
    assert world.state["ball_position"][0, 2] < 100
    world.step(np.zeros((1, 2, 1, 8), np.float32), 10, np.full((1, 2), 10))
    assert world.state["car_controls"][0, :, 0].tolist() == [1, 1]


def test_a_ball_without_speed_hangs_until_it_is_touched_and_a_moving_one_falls():
    world = resting(2, 0, 0)
    world.state["ball_position"][:] = (0, 0, 1000)
    world.state["ball_linear_velocity"][1] = (0.02, 0, 0)
    world.put()
    world.step(ticks=60)
    assert world.state["ball_position"][0, 2] == 1000 and world.state["ball_position"][1, 2] < 950


@pytest.mark.parametrize("hitbox", range(7))
def test_every_hitbox_stands_still(hitbox):
    world = resting(1, 1, 0)
    world.state["car_hitbox"][:] = hitbox
    world.put()
    world.step(ticks=240)
    assert world.state["car_on_ground"][0, 0] == 1 and 16.9 < world.state["car_position"][0, 0, 2] < 18.9


def test_pads_stand_in_the_layouts_order():
    order = np.random.default_rng(0).permutation(34).tolist()
    places = [rs.pad_positions()[number] for number in order]
    world = resting(34, 1, 0, layout=rs.Layout(1, 0, pads=order))
    for match, (x, y, _, _) in enumerate(places):
        stand(world.state, 0, (x, y, 17), match=match)
    world.state["car_boost_amount"][:] = 0
    world.put()
    events = world.step(ticks=2)
    assert (np.argmax(world.state["pad_timer"], axis=1) == np.arange(34)).all()
    assert ((world.state["pad_timer"] > 0).sum(axis=1) == 1).all()
    taken = events[events["kind"] == rs.PAD]
    assert taken["other"].tolist() == taken["match"].tolist() == list(range(34)) and (taken["car"] == 0).all()
    boost = [100 if is_big else 12 for *_, is_big in places]
    assert np.allclose(world.state["car_boost_amount"][:, 0], boost)
    again = World(34, 1, 0, layout=world.layout)
    again.put(world.buffer)
    assert (again.state["pad_timer"] == world.state["pad_timer"]).all()


def test_switched_off_pads_are_shown_as_taken_and_give_nothing():
    world = resting(1, 1, 0)
    x, y, *_ = rs.pad_positions()[3]
    stand(world.state, 0, (x, y, 17))
    world.matches.set_mutators(0, {"boost_pads_enabled": 0})
    for _ in range(2):
        world.put()
        assert not (world.step(ticks=8)["kind"] == rs.PAD).any()
        assert (world.state["pad_timer"] > 1e5).all() and world.state["car_boost_amount"][0, 0] == 33


@pytest.mark.parametrize("sizes", [(0, 0), (0, 1), (4, 0), (0, 4), (4, 4), (1, 3)])
def test_all_team_sizes_play(sizes):
    world = resting(2, *sizes)
    world.matches.kickoff(world.all, world.buffer)
    blue_y = world.state["car_position"][:, : sizes[0], 1]
    assert (blue_y < 0).all() and (world.state["car_position"][:, sizes[0] :, 1] > 0).all()
    random = np.random.default_rng(0)
    for _ in range(20):
        world.step(random_controls(random, 2, world.cars), 8)
    assert np.isfinite(world.buffer).all()
    assert world.matches.statistics().shape == (2, world.cars, 6)
