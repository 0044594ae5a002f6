"""State setting: what a client sets is what the next packet shows."""

import logging
import math
import tempfile

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.simulated_match import Match
from tests.support.raw_client import agent, connect, settle
from tests.support.simulators import ROUNDING, TICK_IN_3
from tests.support.stepped_match import (
    controls,
    go_on,
    kicked_off,
    match_of,
    place_of,
    player,
    put_car,
    result_of,
    seats,
    to_phase,
)

pytestmark = pytest.mark.usefixtures("played_in")


def vector(x=None, y=None, z=None):
    return flat.Vector3Partial(x, y, z)


def car_state(location=None, velocity=None, rotation=None, spin=None, boost=None):
    physics = flat.DesiredPhysics(location, rotation, velocity, spin)
    return flat.DesiredCarState(physics, boost)


def ball_state(location=None, velocity=None, rotation=None, spin=None):
    return flat.DesiredBallState(flat.DesiredPhysics(location, rotation, velocity, spin))


def put(match, cars=(), balls=(), **info):
    """Set a state; return the next packet."""
    match_info = flat.DesiredMatchInfo(**info) if info else None
    assert match.set_state(flat.DesiredGameState(list(balls), list(cars), match_info))
    return go_on(match)


FLYING = car_state(
    vector(500.0, -600.0, 900.0), vector(300.0, 0.0, -20.0), flat.RotatorPartial(0.3, 1.0, -0.5),
    vector(0.5, 1.0, 1.5), 42.0,
)  # fmt: skip
LOFTED = ball_state(vector(100.0, 200.0, 1500.0), vector(-10.0, 20.0, 30.0), None, vector(1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    "phase", [Phase.COUNTDOWN, Phase.KICKOFF, Phase.ACTIVE, Phase.GOAL_SCORED, Phase.REPLAY]
)
@pytest.mark.odd_packets("bodies are put elsewhere in the countdown")
@pytest.mark.protocol("state.next-packet")
def test_the_next_packet_shows_what_was_set_in_every_phase(phase, played_in):
    within = ROUNDING[played_in]
    match = Match(seats())
    to_phase(match, min(phase, Phase.KICKOFF))
    if phase >= Phase.ACTIVE:
        put(match, [car_state(vector(0.0, -130.0, 20.0), vector(0.0, 1000.0, 0.0))])
        to_phase(match, Phase.ACTIVE)
    if phase > Phase.ACTIVE:
        put(match, balls=[ball_state(vector(0.0, 5300.0, 100.0))])
        to_phase(match, phase)
    packet = put(match, [FLYING], [LOFTED])
    assert packet.match_info.match_phase == phase
    car, ball = packet.players[0], packet.balls[0].physics
    assert place_of(car.physics.location) == pytest.approx((500.0, -600.0, 900.0), abs=within["position"])
    assert place_of(car.physics.velocity) == pytest.approx((300.0, 0.0, -20.0), abs=within["linear_velocity"])
    assert place_of(car.physics.angular_velocity) == pytest.approx(
        (0.5, 1.0, 1.5), abs=within["angular_velocity"]
    )
    rotation = car.physics.rotation
    assert (rotation.pitch, rotation.yaw, rotation.roll) == pytest.approx(
        (0.3, 1.0, -0.5), abs=ROUNDING[played_in]["rotation"]
    )
    assert car.boost == 42.0
    assert place_of(ball.location) == pytest.approx((100.0, 200.0, 1500.0), abs=within["position"])
    assert place_of(ball.velocity) == pytest.approx((-10.0, 20.0, 30.0), abs=within["linear_velocity"])
    assert place_of(ball.angular_velocity) == pytest.approx((1.0, 2.0, 3.0), abs=within["angular_velocity"])


@pytest.mark.protocol("state.null-keeps")
def test_what_is_null_keeps_its_value(played_in):
    untouched, match = kicked_off(seed=3), kicked_off(seed=3)
    for one in (untouched, match):
        one.hold(1, controls(throttle=1.0, boost=True))
        go_on(one, 30)
    moved = car_state(vector(y=1000.0), rotation=flat.RotatorPartial(roll=0.1))
    packet = put(match, [flat.DesiredCarState(), moved], [ball_state(vector(z=500.0))])
    expected = go_on(untouched)
    assert packet.players[0].pack() == expected.players[0].pack()
    car, before = packet.players[1].physics, expected.players[1].physics
    assert place_of(car.location) == pytest.approx((before.location.x, 1000.0, before.location.z))
    assert place_of(car.velocity) == place_of(before.velocity)
    assert (car.rotation.pitch, car.rotation.yaw) == pytest.approx(
        (before.rotation.pitch, before.rotation.yaw), abs=ROUNDING[played_in]["rotation"]
    )
    assert car.rotation.roll == pytest.approx(0.1, abs=ROUNDING[played_in]["rotation"])
    assert packet.players[1].boost == expected.players[1].boost
    assert place_of(packet.balls[0].physics.location) == (0.0, 0.0, 500.0)


@pytest.mark.parametrize(("asked", "given"), [(12.9, 12.0), (-5.0, 0.0), (1000.0, 100.0)])
@pytest.mark.protocol("state.boost")
def test_boost_is_cut_to_whole_numbers_of_a_tank(asked, given):
    assert put(kicked_off(), [car_state(boost=asked)]).players[0].boost == given


def test_boost_that_is_taken_away_does_not_count_as_used(played_in):
    match = kicked_off()
    put(match, [car_state(boost=100.0)])
    match.hold(0, controls(boost=True, throttle=1.0))
    go_on(match, 60)
    used = match.simulation.boost_used[0]
    assert used == pytest.approx((0.5 - TICK_IN_3[played_in]) * 100 / 3, rel=0.02)
    match.hold(0, controls())
    go_on(match, 30)
    used = match.simulation.boost_used[0]
    put(match, [car_state(boost=0.0)])
    go_on(match, 30)
    assert match.simulation.boost_used[0] == used


@pytest.mark.odd_packets("bodies are put elsewhere in the countdown")
def test_what_is_set_in_the_countdown_stays_at_go():
    match = Match(seats())
    go_on(match, 100)
    put(match, [car_state(vector(1000.0, -1000.0, 17.0), boost=77.0)])
    while match.frame < 478:
        go_on(match)
    before = put(match, balls=[LOFTED])
    at_go = go_on(match)
    assert (before.match_info.match_phase, at_go.match_info.match_phase) == (Phase.COUNTDOWN, Phase.KICKOFF)
    car, other = at_go.players
    assert place_of(car.physics.location)[:2] == pytest.approx((1000.0, -1000.0), abs=0.1)
    assert (car.boost, other.boost) == (77.0, pytest.approx(100 / 3))
    assert at_go.balls[0].physics.location.z == pytest.approx(1500.0, abs=1.0)
    assert at_go.balls[0].physics.velocity.x == pytest.approx(-10.0, abs=0.1)


def test_the_next_kickoff_is_as_every_kickoff():
    match = kicked_off()
    put(match, [FLYING], [ball_state(vector(0.0, 5300.0, 100.0))])
    to_phase(match, Phase.GOAL_SCORED)
    assert to_phase(match, Phase.COUNTDOWN).players[0].boost == pytest.approx(100 / 3)
    packet = to_phase(match, Phase.KICKOFF)
    assert packet.players[0].boost == pytest.approx(100 / 3)
    assert place_of(packet.balls[0].physics.location) == pytest.approx((0.0, 0.0, 93.15))


def test_a_ball_set_into_the_goal_is_a_goal():
    match = kicked_off()
    put(match, balls=[ball_state(vector(0.0, 5300.0, 100.0))])
    assert to_phase(match, Phase.GOAL_SCORED, limit=3).teams[0].score == 1


@pytest.mark.odd_packets("bodies are put elsewhere in the countdown")
def test_a_ball_set_into_the_goal_in_the_countdown_scores():
    match = Match(seats())
    go_on(match, 100)
    put(match, balls=[ball_state(vector(0.0, 5300.0, 100.0), vector(0.0, 0.0, -1.0))])
    to_phase(match, Phase.KICKOFF)
    assert to_phase(match, Phase.GOAL_SCORED, limit=3).teams[0].score == 1


def test_cars_that_are_moved_and_not_changed_keep_what_they_did():
    match = kicked_off(team_size=2)
    put(match, [car_state(vector(0.0, -150.0, 17.0), vector(0.0, 1400.0, 0.0), boost=0.0)])
    to_phase(match, Phase.ACTIVE)
    match.hold(0, controls(jump=True))
    before = go_on(match, 3).players[0]
    car = put(match, [car_state(velocity=vector(y=500.0))]).players[0]
    assert before.air_state == car.air_state == flat.AirState.Jumping
    assert car.physics.velocity.y == pytest.approx(500.0, abs=0.01)


def jumped(match):
    match.hold(0, controls(jump=True))
    go_on(match, 30)
    match.hold(0, controls())
    packet = go_on(match, 2)
    assert packet.players[0].has_jumped and packet.players[0].air_state == flat.AirState.InAir


def test_a_car_set_into_the_air_can_dodge_without_limit():
    match = kicked_off()
    jumped(match)
    car = put(match, [car_state(vector(0.0, -2000.0, 1800.0))]).players[0]
    assert (car.air_state, car.has_jumped, car.dodge_timeout) == (flat.AirState.InAir, False, -1.0)
    assert go_on(match, 170).players[0].air_state == flat.AirState.InAir  # more than the 1.25 s after a jump
    match.hold(0, controls(jump=True, pitch=-1.0))
    assert go_on(match).players[0].air_state == flat.AirState.Dodging


def test_a_car_set_on_the_floor_stands_there_at_once():
    match = kicked_off()
    jumped(match)
    stand = car_state(vector(0.0, -2000.0, 17.0), vector(0.0, 0.0, 0.0), flat.RotatorPartial(0.0, 1.0, 0.0))
    car = put(match, [stand]).players[0]
    assert (car.air_state, car.has_jumped) == (flat.AirState.OnGround, False)
    assert go_on(match).players[0].air_state == flat.AirState.OnGround


def test_a_dodge_under_way_goes_on():
    match = kicked_off()
    jumped(match)
    match.hold(0, controls(jump=True, pitch=-1.0))
    go_on(match, 5)
    car = put(match, [car_state(vector(z=1500.0))]).players[0]
    assert (car.air_state, car.has_dodged, car.has_jumped) == (flat.AirState.Dodging, True, True)
    assert go_on(match).players[0].dodge_elapsed > car.dodge_elapsed


def test_a_set_velocity_makes_a_car_supersonic_or_not_at_once():
    match = kicked_off()
    assert put(match, [car_state(velocity=vector(2250.0, 0.0, 0.0))]).players[0].is_supersonic
    assert not put(match, [car_state(velocity=vector(500.0, 0.0, 0.0))]).players[0].is_supersonic


def test_a_demolished_car_stays_as_it_is():
    match = kicked_off(seed=2)
    put_car(match, 0, (0.0, -3000.0, 17.0), (0.0, 2300.0, 0.0), yaw=math.pi / 2)
    put_car(match, 1, (0.0, -2700.0, 17.0))
    while match.packet().players[1].demolished_timeout < 0.0:
        go_on(match)
    before = match.packet().players[1]
    after = put(match, [flat.DesiredCarState(), FLYING]).players[1]
    assert 0.0 < after.demolished_timeout < before.demolished_timeout
    assert after.physics.location.z == pytest.approx(before.physics.location.z)
    back = go_on(match, 360).players[1]
    assert (back.demolished_timeout, back.boost) == (-1.0, pytest.approx(100 / 3))


@pytest.mark.parametrize("gravity", [-100.0, 1e-7, 300.0])
@pytest.mark.protocol("state.gravity")
def test_gravity_is_set_until_0_brings_the_matchs_own_back(gravity, played_in):
    match = kicked_off()
    packet = put(match, balls=[ball_state(vector(z=1000.0), vector(z=1.0))], world_gravity_z=gravity)
    assert packet.match_info.world_gravity_z == pytest.approx(gravity)
    fall = go_on(match).balls[0].physics.velocity.z - 1.0
    assert fall == pytest.approx(
        gravity / 120, rel=0.01, abs=max(1e-3, ROUNDING[played_in]["linear_velocity"])
    )  # the ball has some drag
    assert put(match, world_gravity_z=0.0).match_info.world_gravity_z == -650.0
    before = go_on(match).balls[0].physics.velocity.z
    assert go_on(match).balls[0].physics.velocity.z - before == pytest.approx(-650 / 120, rel=0.02)


def test_a_ball_set_to_no_velocity_hangs_until_moved():
    match = kicked_off()
    put(match, balls=[ball_state(vector(z=1000.0), vector(0.0, 0.0, 0.0), spin=vector(0.0, 0.0, 0.0))])
    assert go_on(match, 60).balls[0].physics.location.z == 1000.0
    put(match, balls=[ball_state(velocity=vector(z=1e-6))])
    assert go_on(match, 60).balls[0].physics.location.z < 950.0


@pytest.mark.protocol("state.game-speed")
def test_a_game_speed_is_set_until_0_brings_back_the_own():
    match = kicked_off()
    assert put(match, game_speed=0.5).match_info.game_speed == match.game_speed == 0.5
    assert put(match, game_speed=2.0).match_info.game_speed == 2.0
    assert put(match, game_speed=0.0).match_info.game_speed == match.game_speed == 1.0


def test_an_impossible_game_speed_is_left_out_with_one_warning(caplog):
    match = kicked_off()
    for _ in range(2):
        assert put(match, [car_state(boost=50.0)], game_speed=-1.0).match_info.game_speed == 1.0
    assert caplog.text.count("game_speed is -1, expected 0.01 to 100") == 1
    assert match.packet().players[0].boost == 50.0


NOT_FINITE = {
    "location": flat.DesiredGameState([], [car_state(vector(0.0, 0.0, math.nan), boost=1.0)]),
    "velocity": flat.DesiredGameState([], [car_state(velocity=vector(x=math.inf), boost=1.0)]),
    "rotation": flat.DesiredGameState([], [car_state(rotation=flat.RotatorPartial(yaw=math.nan), boost=1.0)]),
    "spin": flat.DesiredGameState([], [car_state(spin=vector(y=-math.inf), boost=1.0)]),
    "boost": flat.DesiredGameState([LOFTED], [car_state(boost=math.nan)]),
    "ball": flat.DesiredGameState([ball_state(vector(x=math.nan))], [car_state(boost=1.0)]),
    "gravity": flat.DesiredGameState([], [car_state(boost=1.0)], flat.DesiredMatchInfo(math.inf)),
    "game speed": flat.DesiredGameState([], [car_state(boost=1.0)], flat.DesiredMatchInfo(None, math.nan)),
    "beyond the world": flat.DesiredGameState([], [car_state(vector(x=3e38), boost=1.0)]),
}


@pytest.mark.parametrize("part", NOT_FINITE)
def test_a_state_that_is_not_finite_sets_nothing(part):
    match, untouched = kicked_off(), kicked_off()
    assert match.set_state(NOT_FINITE[part]) is False
    assert go_on(match).pack() == go_on(untouched).pack()


@pytest.mark.odd_packets("bodies are put out of the arena")
def test_numbers_that_no_match_has_are_cut_and_play_goes_on():
    match, far = kicked_off(), vector(1e6, -1e6, 1e6)
    packet = put(
        match, [car_state(far, far, None, far)], [ball_state(far, far, None, far)], world_gravity_z=-1e6
    )
    for body in (packet.players[0].physics, packet.balls[0].physics):
        assert np.abs(place_of(body.location)).max() == 20_000.0
        assert np.abs(place_of(body.velocity)).max() <= 100_000.0
        assert np.abs(place_of(body.angular_velocity)).max() <= 1_000.0
    assert -650_000.0 < packet.match_info.world_gravity_z < -600_000.0
    for boost in (1.0, 2.0):  # all is put anew, wherever it is by now
        packet = put(match, [car_state(boost=boost)])
        assert (
            packet.players[0].boost == boost
            and np.isfinite(place_of(packet.players[0].physics.location)).all()
        )


@pytest.mark.protocol("state.too-many")
def test_more_balls_and_cars_than_there_are_do_no_harm():
    packet = put(kicked_off(), [flat.DesiredCarState()] * 2 + [FLYING] * 3, [LOFTED, ball_state(vector(9.0))])
    assert place_of(packet.balls[0].physics.location) == pytest.approx((100.0, 200.0, 1500.0))
    assert len(packet.players) == 2


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.protocol("state.allowed")
def test_states_are_taken_only_where_the_match_allows_it(lobby, caplog, allowed):
    caplog.set_level(logging.WARNING)
    lobby.open_match(seat_players(match_of(player(0), enable_state_setting=allowed)))
    taken = []
    lobby.orders.take_state = lambda state: taken.append(state) or True
    client = connect(lobby, agent())
    client.send(*[flat.DesiredGameState([LOFTED])] * 3)
    settle(lobby)
    assert len(taken) == (3 if allowed else 0)
    assert caplog.text.count("does not have enable_state_setting") == (0 if allowed else 1)


def test_a_client_that_sets_nan_is_warned_of_once(lobby, caplog):
    lobby.open_match(seat_players(match_of(player(0), enable_state_setting=True)))
    match = kicked_off()
    lobby.orders.take_state = match.set_state
    connect(lobby, agent(), *[NOT_FINITE["location"]] * 3)
    assert caplog.text.count("a value that is not finite or beyond 1e6: nothing is set") == 1


def test_of_a_flood_of_states_the_latest_are_set(caplog):
    match = kicked_off()
    states = [flat.DesiredGameState([ball_state(vector(z=100.0 + number))]) for number in range(500)]
    first = flat.DesiredGameState([ball_state(vector(x=77.0))])
    assert all(match.set_state(state) for state in (first, *states))
    match.advance()
    ball = match.packet().balls[0].physics.location
    assert (ball.x, ball.z) == (0.0, pytest.approx(599.0))
    assert caplog.text.count("more than 8 states are set in a tick: the latest ones count") == 1


@pytest.mark.odd_packets("bodies are put elsewhere in the countdown")
@pytest.mark.protocol("state.next-packet")
def test_a_bot_process_sees_on_the_next_packet_what_it_has_set(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    places = {}

    def note(payload):
        packet = flat.CorePacket.unpack(payload).message
        places[packet.match_info.frame_num] = packet.balls[0].physics.location.z

    result_of(match_of(player(0, "setter"), enable_state_setting=True), max_kickoff=1.0, on_packet=note)
    for frame in (490, 500, 510):  # the setter answers these with a height of 1000 + frame
        assert places[frame + 1] == pytest.approx(1000.0 + frame)
        assert places[frame + 2] != pytest.approx(1000.0 + frame)
