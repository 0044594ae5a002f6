"""Each point of the dialect: what it changes in the packets of one and the same play, and nothing else."""

import random
from functools import cache

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, TICK_SECONDS, Phase
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant
from rlgym_bridge.rotations import rotation_of
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.referee import Course, Referee
from rlgym_bridge.server.game.rules import DEMOLITIONS_ON_CONTACT, Physics
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.simulator import ROCKETSIM3
from tests.support.simulators import TICK_IN_3, usual
from tests.support.stepped_match import (
    as_received,
    car_of,
    chase,
    controls,
    go_on,
    kicked_off,
    match_of,
    player,
    put_ball,
    put_car,
    put_car_high,
    result_of,
    seats,
    to_phase,
)

pytestmark = [pytest.mark.usefixtures("played_in"), usual]

CHOICES = [(name, value) for name, point in POINTS.items() for value in point.values[1:]]
AIR = flat.AirState


def but(one, **fields):
    """Return a flatbuffer with other values in some fields."""
    return type(one)(*[fields.get(name, getattr(one, name)) for name in one.__match_args__])


GOAL = 520  # tick of the play in which the ball is put before the goal


def play(dialect: ProtocolVariant | None, whole: bool = True) -> list[flat.GamePacket]:
    """Play what every point is about: late kickoff, jumps, dodges, demolitions, goal, replay, end.

    Args:
        dialect: What the match speaks.
        whole: Play to the end, else until the goal.
    """
    match = Match(
        seats(2),
        Course(regulation=5.0),
        Physics(demo_mode=DEMOLITIONS_ON_CONTACT),
        seed=4,
        dialect=dialect,
    )
    generator = random.Random(5)
    packets = [as_received(match.packet())]  # the scores in it would change
    to_phase(match, Phase.KICKOFF)
    packets += [go_on(match) for _ in range(300)]
    for tick in range(3200 if whole else GOAL):
        if tick % 8 == 0:
            playing = match.referee.phase in PLAYING_PHASES  # no double jump goes on when the replay begins
            jump, dodge = playing and generator.random() < 0.5, generator.random() < 0.2
            for slot in range(4):
                one = chase(match, slot, jump=jump and slot < 3)
                match.hold(slot, but(one, pitch=-1.0) if dodge else one)
        if tick == 100:  # one demolishes another
            put_car(match, 2, (500.0, 300.0, 17.03))
            put_car(match, 0, (500.0, 0.0, 17.03), velocity=(0.0, 2290.0, 0.0), yaw=1.5708)
        if tick == 280:  # one jumps and stays up until the time for a dodge is over
            put_car(match, 1, (-2000.0, -2000.0, 17.03))
        if 280 <= tick < 500:
            match.hold(1, controls(jump=300 <= tick < 305))
        if tick == 310:
            put_car_high(match, 1)
        if tick == GOAL:
            put_ball(match, (0.0, 5000.0, 93.15), (0.0, 2000.0, 0.0))
        packets.append(go_on(match))
    phases = {Phase.COUNTDOWN, Phase.KICKOFF, Phase.ACTIVE}
    if whole:
        phases |= {Phase.GOAL_SCORED, Phase.REPLAY, Phase.ENDED}
    assert {int(packet.match_info.match_phase) for packet in packets} == phases
    return packets


@cache
def packed(simulator: str, name: str = "", value: str = "", whole: bool = True) -> list[bytes]:
    """The play with a value of a point, or standard, packed; in the simulator in which all play now."""
    return [packet.pack() for packet in play(ProtocolVariant({name: value} if name else {}), whole)]


def player_without(player: flat.PlayerInfo, name: str) -> flat.PlayerInfo:
    """Return what a packet says of a car without what a point is about."""
    if name.startswith("dodge_timeout"):
        return but(player, dodge_timeout=0.0)
    if name == "on_ground" and player.air_state == AIR.InAir:
        return but(player, air_state=AIR.OnGround)
    if name == "demolished_place" and player.demolished_timeout >= 0.0:
        return but(player, physics=flat.Physics())
    if name == "idle_frames":
        touch = player.latest_touch
        touch = None if touch is None else but(touch, game_seconds=0.0)
        return but(player, latest_touch=touch, accolades=[])  # repeated with the packet
    return player


def without(data: bytes, name: str) -> bytes:
    """Return a packet without what a point is about."""
    packet = flat.GamePacket.unpack(data)
    info, pads, balls = packet.match_info, packet.boost_pads, packet.balls
    if name == "pad_timer":
        pads = [but(pad, timer=0.0) for pad in pads]
    elif name == "ball_after_goal" and info.match_phase in (4, 5, 7):
        balls = []
    elif name == "idle_frames":
        info = but(info, frame_num=0, seconds_elapsed=0.0)
    elif name == "kickoff_ends" and info.match_phase == Phase.ACTIVE:
        info = but(info, match_phase=flat.MatchPhase.Kickoff)
    elif name == "clock":
        info = but(info, game_time_remaining=0.0)
    players = [player_without(player, name) for player in packet.players]
    return but(packet, players=players, boost_pads=pads, balls=balls, match_info=info).pack()


SEEN_LATE = ("ball_after_goal", "idle_frames")  # from the goal on


@pytest.mark.parametrize(
    ("name", "value", "whole"),
    [(*choice, choice[0] in SEEN_LATE) for choice in CHOICES]
    + [pytest.param(*one, True, marks=pytest.mark.slow) for one in CHOICES if one[0] not in SEEN_LATE],
)
def test_a_point_changes_its_own_field_and_nothing_else(
    name: str, value: str, whole: bool, played_in: str
) -> None:
    usual = packed(played_in)
    changed, packets = 0, packed(played_in, name, value, whole)
    assert len(packets) <= len(usual)
    for ours, standard in zip(packets, usual, strict=whole):
        if ours != standard:
            changed += 1
            assert without(ours, name) == without(standard, name)
    assert changed > 0


@pytest.mark.parametrize(("name", "value"), CHOICES)
def test_a_told_dialect_changes_nothing_that_is_decoded(name: str, value: str, played_in: str) -> None:
    usual, whole = Decoder(field_info(), shadow=False), name in SEEN_LATE
    ours = Decoder(field_info(), shadow=False, dialect=ProtocolVariant({name: value}))
    seen = set()
    for packet, other in zip(packed(played_in, name, value, whole), packed(played_in), strict=whole):
        state, expected = (
            decoder.update(flat.GamePacket.unpack(one)) for decoder, one in ((ours, packet), (usual, other))
        )
        phase = int(expected.phase[0])
        if phase in (*PLAYING_PHASES, Phase.GOAL_SCORED):
            seen.add(phase)
            assert int(state.phase[0]) == phase
            assert state.clock[0] == pytest.approx(expected.clock[0], abs=2.5 * TICK_SECONDS)
            assert state.goal_scored[0] >= expected.goal_scored[0]
            np.testing.assert_allclose(state.pad_timer, expected.pad_timer, atol=1e-4)
            np.testing.assert_allclose(state.car_position, expected.car_position, atol=1e-3)
    assert len(seen) == (3 if whole else 2)


@pytest.mark.protocol("packet.pad-timer")
def test_a_pad_may_count_the_seconds_until_it_is_back(played_in: str) -> None:
    left = 4.0 - TICK_IN_3[played_in]
    match = kicked_off(pad_timer="remaining")
    put_car(match, 0, (0.0, -2816.0, 17.0), boost=0.0)
    pad = go_on(match).boost_pads[7]
    assert (pad.is_active, pad.timer) == (False, pytest.approx(left, abs=1e-5))
    put_car(match, 0, (0.0, 1500.0, 17.0))
    for waited in range(1, round(120 * left)):
        assert go_on(match).boost_pads[7].timer == pytest.approx(left - waited / 120, abs=1e-4)
    pad = go_on(match).boost_pads[7]
    assert (pad.is_active, pad.timer) == (True, 0.0)


def timeouts_of_a_jump(held: int, ticks: int = 250, dodge_at: int | None = None, **dialect: str):
    """dodge_timeout of a car that jumps, stays in the air and perhaps dodges [ticks after the press]."""
    match = kicked_off(**dialect)
    put_ball(match, (3000.0, 0.0, 93.15))
    seen = []
    for tick in range(ticks):
        pressed = tick < held or tick == dodge_at
        match.hold(0, controls(jump=pressed, pitch=-1.0 if tick == dodge_at else 0.0))
        if tick == held:
            put_car_high(match)
        seen.append(go_on(match).players[0].dodge_timeout)
    return seen


@pytest.mark.parametrize(("held", "jumping"), [(1, 3), (12, 12), (24, 24), (60, 24)])
@pytest.mark.protocol("packet.dodge-timeout")
def test_the_dodge_timeout_may_add_the_time_jump_was_held(held: int, jumping: int, played_in: str) -> None:
    standard = timeouts_of_a_jump(held)
    ours = timeouts_of_a_jump(held, dodge_timeout="plus_hold")
    assert ours[:jumping] == standard[:jumping] == [-1.0] * jumping
    assert ours[jumping] == pytest.approx(1.25 + (jumping - 1) / 120 + TICK_IN_3[played_in], abs=1e-5)
    assert ours[jumping + 100] - standard[jumping + 100] == pytest.approx(jumping / 120, abs=1e-5)
    most = 149 + jumping + round(120 * TICK_IN_3[played_in])
    assert sum(value >= 0 for value in ours) == pytest.approx(most, abs=1)


@pytest.mark.parametrize(
    ("formula", "values"),
    [("after_jump", [1.25] * 24), ("plus_hold", [1.25 + tick / 120 for tick in range(1, 25)])],
)
def test_the_dodge_timeout_may_be_full_while_the_jump_pushes(
    formula: str, values: list[float], played_in: str
) -> None:
    seen = timeouts_of_a_jump(24, dodge_timeout=formula, dodge_timeout_jumping="full")
    assert seen[:24] == pytest.approx(values, abs=1e-5)
    assert seen[24] == pytest.approx(values[-1] - 1 / 120 + TICK_IN_3[played_in], abs=1e-5)


@pytest.mark.parametrize("expired", ["minus_one", "zero"])
def test_the_dodge_timeout_may_count_on_after_the_dodge(expired: str, played_in: str) -> None:
    full = 1.25 + TICK_IN_3[played_in]
    seen = timeouts_of_a_jump(
        5, dodge_at=20, dodge_timeout_used="counting", dodge_timeout_expired=expired
    )  # fmt: skip
    assert seen[5:150] == pytest.approx([full - waited / 120 for waited in range(1, 146)], abs=1e-4)
    assert set(seen[156:]) == {0.0 if expired == "zero" else -1.0}


def test_the_dodge_timeout_may_be_zero_when_time_is_up() -> None:
    seen = timeouts_of_a_jump(5, dodge_timeout_expired="zero")
    assert set(seen[156:]) == {0.0}
    assert set(timeouts_of_a_jump(5, dodge_at=20, dodge_timeout_expired="zero")[20:]) == {-1.0}


def test_on_the_floor_the_dodge_timeout_is_minus_one() -> None:
    dialect = {name: value for name, value in CHOICES if name.startswith("dodge_timeout")}
    match = kicked_off(**dialect)
    assert go_on(match, 10).players[0].dodge_timeout == -1.0
    match.hold(0, controls(jump=True))
    assert go_on(match).players[0].dodge_timeout > 1.25
    match.hold(0, controls())
    go_on(match, 300)
    assert car_of(match, 0).on_ground
    assert go_on(match).players[0].dodge_timeout == -1.0


def test_a_car_that_fell_has_no_dodge_timeout_in_any_dialect(played_in: str) -> None:
    match = kicked_off(**{name: value for name, value in CHOICES if name.startswith("dodge_timeout")})
    put_car(match, 0, (0.0, 0.0, 1700.0))
    assert go_on(match, 10).players[0].dodge_timeout == -1.0
    match.hold(0, controls(jump=True, pitch=-1.0))
    car = go_on(match, 5).players[0]
    assert car.has_dodged and (car.dodge_timeout == -1.0) is (not car.has_jumped)
    assert car.has_jumped is (played_in == ROCKETSIM3)  # there a dodge is a jump, too


@pytest.mark.protocol("packet.on-ground")
def test_on_ground_may_ask_for_all_four_wheels() -> None:
    three = 0
    match = kicked_off(on_ground="four_wheels")
    for seed in range(20):
        put_car(match, 0, (0.0, -2000.0, 60.0), boost=0.0, rotation=rotation_of(0.1 + 0.01 * seed, 0.0, 0.2))
        for _ in range(120):
            shown = go_on(match).players[0].air_state
            wheels = car_of(match, 0).wheels_with_contact.sum()
            assert shown == (AIR.OnGround if wheels == 4 else AIR.InAir)
            three += wheels == 3
    assert three > 0


@pytest.mark.protocol("packet.ball-after-goal")
def test_the_ball_may_be_gone_from_a_goal_to_the_next_countdown() -> None:
    match = kicked_off(ball_after_goal="hidden")
    put_ball(match, (0.0, 5000.0, 93.15), (0.0, 2000.0, 0.0))
    assert len(go_on(match).balls) == 1
    packet = to_phase(match, Phase.GOAL_SCORED)
    while packet.match_info.match_phase != flat.MatchPhase.Countdown:
        assert packet.balls == []
        packet = go_on(match)
    assert match.tick > 60 + 360 + 1080
    assert len(packet.balls) == 1


@pytest.mark.parametrize(("max_score", "balls"), [(1, 0), (0, 1)])
def test_a_match_ended_by_a_goal_has_no_ball(max_score: int, balls: int) -> None:
    match = kicked_off(course=Course(max_score=max_score), ball_after_goal="hidden")
    if max_score:
        put_ball(match, (0.0, 5000.0, 93.15), (0.0, 2000.0, 0.0))
        packet = to_phase(match, Phase.ENDED)
    else:
        match.referee.end("stopped")
        packet = go_on(match)
    assert len(packet.balls) == balls


@pytest.mark.protocol("steady.idle")
def test_frames_may_stand_still_in_a_replay() -> None:
    match = kicked_off(idle_frames="repeated")
    put_ball(match, (0.0, 5000.0, 93.15), (0.0, 2000.0, 0.0))
    packet = to_phase(match, Phase.REPLAY)
    frame, tick = packet.match_info.frame_num, match.tick
    assert frame == tick
    packets = [go_on(match) for _ in range(1079)]
    assert {packet.match_info.frame_num for packet in packets} == {frame}
    assert {packet.match_info.seconds_elapsed for packet in packets} == {packet.match_info.seconds_elapsed}
    assert {packet.match_info.match_phase for packet in packets} == {flat.MatchPhase.Replay}
    for more in (1, 2, 3):
        info = go_on(match).match_info
        assert (info.match_phase, info.frame_num) == (flat.MatchPhase.Countdown, frame + more)
        assert info.seconds_elapsed == pytest.approx((frame + more) / 120, abs=1e-5)
    assert match.tick == tick + 1079 + 3
    assert to_phase(match, Phase.KICKOFF).match_info.frame_num == frame + 1 + 480


def test_frames_may_stand_still_at_the_end() -> None:
    match = kicked_off(course=Course(max_score=1), idle_frames="repeated")
    put_ball(match, (0.0, 5000.0, 93.15), (0.0, 2000.0, 0.0))
    packet = to_phase(match, Phase.ENDED)
    assert packet.match_info.frame_num == match.tick
    assert {go_on(match).match_info.frame_num for _ in range(50)} == {packet.match_info.frame_num}


@pytest.mark.protocol("packet.demolished-place")
def test_a_demolished_car_may_be_shown_at_the_origin() -> None:
    match = kicked_off(demolished_place="origin")
    put_ball(match, (3000.0, 0.0, 93.15))
    put_car(match, 1, (500.0, 300.0, 17.03))
    put_car(match, 0, (500.0, 0.0, 17.03), velocity=(0.0, 2290.0, 0.0), yaw=1.5708)
    match.hold(0, controls(throttle=1.0, boost=True))
    packet = go_on(match)
    while packet.players[1].demolished_timeout < 0.0:
        assert packet.players[1].physics.location.x > 400.0
        packet = go_on(match)
    for waited in range(360):
        assert packet.players[1].demolished_timeout == pytest.approx(3.0 - waited / 120, abs=1e-3)
        assert packet.players[1].physics.pack() == flat.Physics().pack()
        packet = go_on(match)
    assert packet.players[1].demolished_timeout == -1.0
    assert abs(packet.players[1].physics.location.y) == pytest.approx(4608.0, abs=0.1)


@pytest.mark.parametrize(("ends", "phase"), [("at_touch", "Kickoff"), ("after_two_seconds", "Active")])
@pytest.mark.protocol("phases.kickoff")
def test_a_kickoff_may_turn_active_before_the_touch(ends: str, phase: str) -> None:
    match = kicked_off(kickoff_ends=ends)
    assert go_on(match, 239).match_info.match_phase == flat.MatchPhase.Kickoff
    packet = go_on(match)
    assert packet.match_info.match_phase == getattr(flat.MatchPhase, phase)
    packet = go_on(match, 200)
    assert packet.match_info.game_time_remaining == 300.0
    put_car(match, 0, (0.0, -250.0, 17.03), velocity=(0.0, 1500.0, 0.0), yaw=1.5708)
    while packet.players[0].latest_touch is None:
        assert packet.match_info.game_time_remaining == 300.0
        packet = go_on(match)
    assert packet.match_info.game_time_remaining == 300.0
    assert go_on(match, 120).match_info.game_time_remaining == 299.0


@pytest.mark.parametrize("regulation", [0.0, 300.0])
def test_an_untouched_kickoff_ends_alike_in_both_dialects(regulation: float) -> None:
    for ticks in (None, 240):
        referee = Referee(Course(regulation=regulation, max_kickoff=10.0), kickoff_ticks=ticks)
        for _ in range(480 + 1199):
            referee.advance(touched=False, goal_for=None, on_floor=True)
        assert (referee.phase in (Phase.KICKOFF, Phase.ACTIVE), referee.waits_for_floor) == (True, False)
        referee.advance(touched=False, goal_for=None, on_floor=True)
        assert referee.ended_by == "kickoff not touched"


def test_an_untouched_goal_counts_after_two_seconds_too() -> None:
    match = kicked_off(kickoff_ends="after_two_seconds")
    go_on(match, 300)
    put_ball(match, (0.0, 5000.0, 93.15), (0.0, 2000.0, 0.0))
    packet = to_phase(match, Phase.GOAL_SCORED)
    assert (packet.teams[0].score, packet.match_info.game_time_remaining) == (1, 300.0)
    packet = go_on(match, 360 + 1080 + 480 + 239)
    assert packet.match_info.match_phase == flat.MatchPhase.Kickoff


@pytest.mark.protocol("packet.clock")
def test_the_clock_may_show_whole_seconds() -> None:
    match = kicked_off(course=Course(regulation=2.0), clock="whole")
    put_car(match, 0, (0.0, -150.0, 17.03), velocity=(0.0, 500.0, 0.0), yaw=1.5708)
    to_phase(match, Phase.ACTIVE)
    shown = [go_on(match).match_info.game_time_remaining for _ in range(241)]
    assert shown[:240] == [2.0] * 119 + [1.0] * 120 + [0.0]
    put_ball(match, (0.0, 0.0, 93.15))
    to_phase(match, Phase.COUNTDOWN)
    to_phase(match, Phase.KICKOFF)
    put_car(match, 0, (0.0, -150.0, 17.03), velocity=(0.0, 500.0, 0.0), yaw=1.5708)
    packet = to_phase(match, Phase.ACTIVE)
    assert (packet.match_info.is_overtime, packet.match_info.game_time_remaining) == (True, 0.0)
    shown = [go_on(match).match_info.game_time_remaining for _ in range(121)]
    assert shown == [1.0] * 120 + [2.0]


def test_the_server_speaks_the_dialect_it_is_given() -> None:
    packets: list[bytes] = []
    dialect, match = (
        ProtocolVariant({"clock": "whole", "idle_frames": "repeated"}),
        match_of(player(0), player(1)),
    )
    result = result_of(match, seconds=2.0, max_overtime=0.0, on_packet=packets.append, dialect=dialect)
    infos = [flat.CorePacket.unpack(one).message.match_info for one in packets]
    assert {info.game_time_remaining for info in infos} >= {2.0, 1.0}
    assert all(info.game_time_remaining == int(info.game_time_remaining) for info in infos)
    assert result.ticks == len(packets)


def test_a_point_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="dialect has no point 'clocks'; there are pad_timer"):
        Match(seats(), dialect=ProtocolVariant({"clocks": "whole"}))
