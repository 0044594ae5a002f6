"""Packets against the states that they were made from."""

import math
import random

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.game import BALL_RADIUS, HITBOXES, PAD_POSITIONS, Phase
from rlgym_bridge.rotations import angles_of, rotation_of
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from tests.support.simulators import TICK_IN_3
from tests.support.stepped_match import (
    as_received,
    ball_of,
    car_of,
    controls,
    go_on,
    input_of,
    kicked_off,
    put_ball,
    put_car,
    put_car_high,
    random_controls,
)

pytestmark = pytest.mark.usefixtures("played_in")


def matrix(rotation):
    """The rotation matrix (forward, right, up as columns) of RLBot's angles."""
    cp, sp = math.cos(rotation.pitch), math.sin(rotation.pitch)
    cy, sy = math.cos(rotation.yaw), math.sin(rotation.yaw)
    cr, sr = math.cos(rotation.roll), math.sin(rotation.roll)
    return np.array([
        [cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy],
        [cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy],
        [sp, -cp * sr, cp * cr],
    ])  # fmt: skip


def vector(value):
    return np.array([value.x, value.y, value.z])


def jump_off(match, slot=0, hold=30):
    """Let a car jump and hold the button, from its first tick on; return the packets."""
    match.hold(slot, controls(jump=True))
    packets = [go_on(match) for _ in range(hold)]
    match.hold(slot, controls())
    return packets


@pytest.mark.protocol("packet.physics")
def test_positions_speeds_and_angles_are_those_of_the_simulator():
    match, generator = kicked_off(), random.Random(1)
    for tick in range(700):
        if tick % 8 == 0:
            for slot in (0, 1):
                match.hold(slot, random_controls(generator))
        packet = go_on(match)
        shown = [*packet.players, *packet.balls]
        for one, body in zip(shown, [car_of(match, 0), car_of(match, 1), ball_of(match)], strict=True):
            np.testing.assert_array_equal(vector(one.physics.location), body.position)
            np.testing.assert_array_equal(vector(one.physics.velocity), body.linear_velocity)
            np.testing.assert_array_equal(vector(one.physics.angular_velocity), body.angular_velocity)
            np.testing.assert_allclose(matrix(one.physics.rotation), body.rotation, atol=2e-6)


@pytest.mark.parametrize("off", [0.1, 1e-2, 1e-3, 3e-4, 1e-5, 1e-8, 0.0])
@pytest.mark.parametrize("way", [-1, 1])
@pytest.mark.protocol("packet.rotation")
def test_near_vertical_the_angles_are_as_exact_as_elsewhere(off, way):
    generator = random.Random(0)
    for _ in range(50):
        exact = rotation_of(way * (math.pi / 2 - off), *(generator.uniform(-3.1, 3.1) for _ in range(2)))
        rounded = np.float32(exact)
        shown = matrix(flat.Rotator(*angles_of(rounded.tolist())))
        np.testing.assert_allclose(shown.ravel(), rounded, atol=5e-7)


@pytest.mark.protocol("packet.rotation")
def test_angles_turn_back_into_the_same_matrix():
    generator, match = random.Random(0), kicked_off()
    for _ in range(20):
        angles = [generator.uniform(-1.4, 1.4), generator.uniform(-3.1, 3.1), generator.uniform(-3.1, 3.1)]
        put_car(match, 0, (0, 0, 1000), rotation=rotation_of(*angles))
        shown = go_on(match).players[0].physics.rotation
        np.testing.assert_allclose(matrix(shown), car_of(match, 0).rotation, atol=1e-5)
        assert shown.pitch == pytest.approx(angles[0], abs=1e-4)


@pytest.mark.parametrize(
    ("stick", "direction"),
    [
        ({"pitch": -1.0}, (1.0, 0.0)),
        ({"pitch": 1.0}, (-1.0, 0.0)),
        ({"yaw": 1.0}, (0.0, 1.0)),
        ({"roll": 1.0}, (0.0, 1.0)),
        ({"yaw": -1.0}, (0.0, -1.0)),
        ({"pitch": -1.0, "yaw": 1.0}, (math.sqrt(0.5), math.sqrt(0.5))),
        ({"yaw": 1.0, "roll": -1.0}, (0.0, 0.0)),
    ],
)
@pytest.mark.protocol(
    "inputs.dodge", "packet.dodge-dir", "packet.dodge-elapsed", "packet.jump-flags", "packet.dodge-timeout"
)
def test_a_dodge_shows_and_keeps_its_direction(stick, direction):
    match = kicked_off()
    jump_off(match, hold=5)
    assert go_on(match, 5).players[0].dodge_timeout > 1.0
    match.hold(0, controls(jump=True, **stick))
    car = go_on(match).players[0]
    assert car.has_dodged and car.dodge_timeout == -1.0
    assert (car.dodge_dir.x, car.dodge_dir.y) == pytest.approx(direction, abs=1e-6)
    assert car.dodge_elapsed == pytest.approx(car_of(match, 0).flip_time)
    match.hold(0, controls())
    car = go_on(match, 400).players[0]
    assert not car.has_dodged
    assert car.dodge_elapsed == 0.0
    assert (car.dodge_dir.x, car.dodge_dir.y) == pytest.approx(direction, abs=1e-6)


@pytest.mark.parametrize(
    ("before", "pitch", "name", "ticks"),
    [(None, 0.0, "Jumping", 24), ("jump", 0.0, "DoubleJumping", 13), ("fall", -1.0, "Dodging", 79)],
)
@pytest.mark.protocol("packet.jumping", "packet.double-jumping", "packet.dodging")
def test_jumps_and_dodges_show_from_their_first_tick_on(before, pitch, name, ticks):
    match = kicked_off()
    if before == "jump":
        jump_off(match, hold=5)
        go_on(match, 5)
    elif before == "fall":
        put_car(match, 0, (0, 0, 1500))
    match.hold(0, controls(jump=True, pitch=pitch))
    shown = [go_on(match).players[0] for _ in range(ticks + 1)]
    states = [flat.AirState.InAir if one is shown[-1] else getattr(flat.AirState, name) for one in shown]
    assert [one.air_state for one in shown] == states
    assert all(one.has_double_jumped is (before == "jump") for one in shown)


@pytest.mark.protocol("packet.flip-reset")
def test_a_car_that_fell_holds_a_flip_reset():
    match = kicked_off()
    put_car(match, 0, (0, 0, 1500))
    car = go_on(match, 10).players[0]
    assert car.air_state == flat.AirState.InAir
    assert not (car.has_jumped or car.has_double_jumped or car.has_dodged)
    assert car.dodge_timeout == -1.0


@pytest.mark.protocol("packet.dodge-timeout")
def test_the_dodge_timeout_counts_from_the_jumps_end(played_in):
    match = kicked_off()
    put_ball(match, (3000, 0, 93.15))
    packets = jump_off(match, hold=24)
    assert {packet.players[0].dodge_timeout for packet in packets} == {-1.0}
    put_car_high(match)
    timeouts = [go_on(match).players[0].dodge_timeout for _ in range(200)]
    assert timeouts[0] == pytest.approx(1.25 - 1 / 120 + TICK_IN_3[played_in], abs=1e-5)
    assert timeouts[60] == pytest.approx(timeouts[0] - 0.5, abs=1e-4)
    assert timeouts.index(-1.0) in (148, 149, 150, 151)
    assert set(timeouts[151:]) == {-1.0}


@pytest.mark.protocol("packet.pad-order", "field.pads")
def test_pads_are_listed_by_y_then_x_in_packet_and_field_info():
    pads = field_info().boost_pads
    places = [(pad.location.y, pad.location.x) for pad in pads]
    assert places == sorted(places)
    assert {(x, y) for y, x in places} == set(PAD_POSITIONS)
    assert [number for number, pad in enumerate(pads) if pad.is_full_boost] == [3, 4, 15, 18, 29, 30]


@pytest.mark.protocol("packet.pad-order")
def test_the_pad_a_car_stands_on_is_the_one_that_goes(played_in):
    match = kicked_off()
    for number, pad in enumerate(field_info().boost_pads):
        put_ball(match, (0, 0, 1500))
        put_car(match, 0, (pad.location.x, pad.location.y, 17.0), boost=0.0)
        shown = go_on(match).boost_pads
        assert [one.is_active for one in shown] == [other > number for other in range(34)]
        assert shown[number].timer == pytest.approx(TICK_IN_3[played_in], abs=1e-6)


# RocketSim subtracts 1/120 in float32: 1200 of them leave a big pad a rest of 7e-5 s.
AWAY = {ROCKETSIM2: (1201, 480), ROCKETSIM3: (1199, 479)}


@pytest.mark.parametrize(("number", "big"), [(3, True), (7, False)])
@pytest.mark.protocol("packet.pad-timer", "packet.pad-back")
def test_a_pad_counts_the_seconds_since_it_was_taken(number, big, played_in):
    ticks = AWAY[played_in][not big]
    match = kicked_off()
    place = field_info().boost_pads[number].location
    put_car(match, 0, (place.x, place.y, 17.0), boost=0.0)
    go_on(match)
    put_car(match, 0, (0, 1500, 17.0))
    for waited in range(1, ticks):
        pad = go_on(match).boost_pads[number]
        assert not pad.is_active
        assert pad.timer == pytest.approx(waited / 120 + TICK_IN_3[played_in], abs=1e-3)
    pad = go_on(match).boost_pads[number]
    assert (pad.is_active, pad.timer) == (True, 0.0)


@pytest.mark.protocol("packet.touch")
def test_a_touch_keeps_the_time_of_its_first_packet():
    match = kicked_off()
    put_car(match, 0, (0, -300, 17.03), velocity=(0, 1200, 0), yaw=math.pi / 2)
    packet = go_on(match)
    assert packet.players[0].latest_touch is None
    while packet.players[0].latest_touch is None:
        packet = go_on(match)
    touch = packet.players[0].latest_touch
    assert touch.game_seconds == packet.match_info.seconds_elapsed
    (hit,) = match.simulation.events.contacts
    assert touch.game_seconds == pytest.approx(match.frame / 120)
    np.testing.assert_allclose(vector(touch.location), hit[:3], atol=1e-3)
    from_centre = vector(touch.location) - vector(packet.balls[0].physics.location)
    assert np.linalg.norm(from_centre) == pytest.approx(BALL_RADIUS, abs=10.0)
    assert np.linalg.norm(vector(touch.normal)) == pytest.approx(1.0)
    assert touch.normal.y > 0.5  # from the contact to the middle of the ball, which lies ahead
    put_car(match, 0, (3000, 0, 17.03))
    later = go_on(match, 200).players[0].latest_touch
    assert later.game_seconds >= touch.game_seconds
    kept = later.game_seconds
    assert go_on(match, 100).players[0].latest_touch.game_seconds == kept
    assert packet.players[1].latest_touch is None


def demolished():
    """A match in which car 1 has just been demolished by car 0, and that packet."""
    match = kicked_off()
    put_ball(match, (3000, 0, 93.15))
    put_car(match, 1, (0, 0, 17.03), boost=80.0)
    put_car(match, 0, (0, -300, 17.03), velocity=(0, 2290, 0), yaw=math.pi / 2)
    match.hold(0, controls(throttle=1.0, boost=True))
    match.hold(1, controls(steer=0.5, throttle=0.1))
    for _ in range(30):
        packet = go_on(match)
        if packet.players[1].demolished_timeout >= 0:
            return match, packet
    raise AssertionError("no demolition")


@pytest.mark.protocol("packet.demolished")
def test_a_demolished_car_is_back_after_360_ticks():
    match, packet = demolished()
    assert packet.players[1].demolished_timeout == 3.0
    assert packet.players[0].demolished_timeout == -1.0
    assert packet.players[0].score_info.demolitions == 1
    for waited in range(1, 360):
        timeout = go_on(match).players[1].demolished_timeout
        assert timeout == pytest.approx(3.0 - waited / 120, abs=1e-3)
    back = go_on(match).players[1]
    assert back.demolished_timeout == -1.0
    assert back.boost == pytest.approx(100 / 3)
    assert abs(back.physics.location.x) in (2304.0, 2688.0)
    assert back.physics.location.y == pytest.approx(4608.0, abs=0.01)


@pytest.mark.protocol("packet.last-input")
def test_last_input_is_what_the_simulator_applied():
    match, generator = demolished()[0], random.Random(4)
    for tick in range(1200):
        if tick % 5 == 0:
            for slot in (0, 1):
                match.hold(slot, random_controls(generator))
        packet = go_on(match)
        for slot, one in enumerate(packet.players):
            car = car_of(match, slot)
            if car.is_demoed:  # RocketSim 2.2.1 keeps what came before, and RocketSim 3 what is held now
                continue
            expected = car.controls
            np.testing.assert_array_equal(np.array(input_of(one.last_input), np.float32), expected)


@pytest.mark.protocol("packet.supersonic")
def test_supersonic_begins_at_2200_and_ends_below_2100():
    match = kicked_off()
    put_car(match, 0, (0, -4000, 17.03), velocity=(0, 2150, 0), yaw=math.pi / 2)
    put_ball(match, (3000, 0, 93.15))
    match.hold(0, controls(throttle=1.0, boost=True))
    shown = []
    for tick in range(120):
        if tick == 40:
            match.hold(0, controls(throttle=-1.0))
        car = go_on(match).players[0]
        shown.append((np.linalg.norm(vector(car.physics.velocity)), car.is_supersonic))
    faster, slower = shown[:40], shown[40:]
    assert all(supersonic == (speed >= 2200.0) for speed, supersonic in faster)
    assert all(supersonic == (speed >= 2100.0) for speed, supersonic in slower)
    assert any(supersonic for _, supersonic in faster) and any(speed < 2100.0 for speed, _ in slower)


BODIES = (23, 29, 24, 22, 28, 30)


@pytest.mark.parametrize(("hitbox", "body"), list(enumerate(BODIES)))
@pytest.mark.protocol("packet.hitbox")
def test_each_body_shows_the_hitbox_that_the_game_reports(hitbox, body):
    car = as_received(kicked_off(bodies=(body, 23)).packet()).players[0]
    box = HITBOXES[hitbox]
    assert (car.hitbox.length, car.hitbox.width, car.hitbox.height) == pytest.approx(box[1:4])
    assert (car.hitbox_offset.x, car.hitbox_offset.y, car.hitbox_offset.z) == pytest.approx(
        (box.offset_x, 0.0, box.offset_z)
    )


@pytest.mark.protocol("packet.sentinels", "packet.gravity", "packet.ball")
def test_fields_without_meaning_have_their_sentinels():
    packet = as_received(kicked_off().packet())
    car, ball, info = packet.players[0], packet.balls[0], packet.match_info
    assert (car.dodge_timeout, car.demolished_timeout) == (-1.0, -1.0)
    assert (car.rumble_item, car.time_until_next_item, car.max_time_until_next_item) == (None, 0.0, 0.0)
    assert (car.is_bot, car.accolades, car.last_input.use_item) == (True, [], False)
    assert (ball.charge_level, ball.target_speed, ball.shape.diameter) == (-1, 0.0, 182.5)
    assert (info.world_gravity_z, info.game_speed, info.is_unlimited_time) == (-650.0, 1.0, False)
    assert packet.tiles == []


@pytest.mark.protocol("steady.frames", "packet.seconds")
def test_every_packet_shows_the_next_frame_and_its_time():
    match = kicked_off()
    for _ in range(3):
        before, packet = match.packet().match_info, go_on(match)
        assert packet.match_info.frame_num == before.frame_num + 1
        assert packet.match_info.seconds_elapsed == np.float32(packet.match_info.frame_num / 120)


@pytest.mark.protocol("field.goals")
def test_goals_face_the_field_from_the_back_walls():
    blue, orange = field_info().goals
    assert (blue.team_num, blue.location.y, blue.direction.y) == (0, -5120.0, 1.0)
    assert (orange.team_num, orange.location.y, orange.direction.y) == (1, 5120.0, -1.0)
    assert [(round(goal.width), round(goal.height)) for goal in (blue, orange)] == [(1786, 643)] * 2


@pytest.mark.protocol("phases.goal-line", "packet.score", "packet.teams")
def test_score_and_phase_change_in_the_packet_of_the_goal():
    match = kicked_off()
    put_car(match, 0, (0, 4700, 17.03), velocity=(0, 1500, 0), yaw=math.pi / 2)
    put_ball(match, (0, 4900, 93.15), (0, 1000, 0))
    packet = go_on(match)
    while packet.match_info.match_phase != flat.MatchPhase.GoalScored:
        assert abs(packet.balls[0].physics.location.y) < 5217
        packet = go_on(match)
    assert packet.balls[0].physics.location.y > 5215.5
    assert [team.score for team in packet.teams] == [1, 0]
    assert packet.players[0].score_info.goals == 1
    assert packet.players[0].score_info.score >= 100
    assert match.referee.phase == Phase.GOAL_SCORED
