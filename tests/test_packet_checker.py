"""The checker finds nothing in good packets, and every single field that is made wrong."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.game.simulation import CAR
from rlgym_bridge.sim.simulator import ROCKETSIM3
from tests.packet_checker import PacketChecker, Rules
from tests.support.imported_modules import imports
from tests.support.odd_packets import CHANGES, enters, find
from tests.support.packet_streams import Packets, Stream, bump, phase_of, play, ram
from tests.support.simulators import both
from tests.support.stepped_match import kicked_off, put_car, seats, to_phase
from tests.support.watched_matches import watching

BEFORE, AFTER = 40, 60  # packets read around the one that is changed


@pytest.fixture(scope="module")
def played() -> Stream:
    return play()


@pytest.fixture(scope="module")
def rammed() -> Stream:
    return ram()


@pytest.fixture(scope="module")
def untouched(played: Stream) -> Packets:
    """The packets of the match, to look at only."""
    return played.frozen()


def read(packets: Sequence[Any], edits: frozenset[int] = frozenset(), **options) -> PacketChecker:
    checker = PacketChecker(**options)
    for number, packet in enumerate(packets):
        if number in edits:
            checker.edited()
        checker.see(packet)
    return checker


def test_the_packets_of_a_good_match_are_in_order(untouched: Packets, rammed: Stream) -> None:
    read(untouched, field=field_info()).check()
    read(rammed.packets(), rammed.edits).check()


@pytest.mark.parametrize("name", CHANGES)
def test_a_single_wrong_field_is_found_and_named(name: str, played: Stream, untouched: Packets) -> None:
    field, condition, change = CHANGES[name]
    at = find(untouched, condition)
    first = max(0, at - BEFORE)
    read(untouched[first : at + AFTER]).check()
    packets = played.packets(first, at + AFTER)
    frame = packets[at - first].match_info.frame_num
    change(packets, at - first)
    violations = read(packets).violations
    assert any(field in sentence for sentence in violations), violations
    near = [int(one.split(":")[0].removeprefix("frame ")) for one in violations]
    assert min(near) - frame in (0, 1) or name == "two players with one id"


@pytest.mark.parametrize(("phase", "next_phase"), [(1, 2), (4, 5)], ids=["Countdown", "GoalScored"])
def test_a_phase_that_ends_early_is_found(
    phase: int, next_phase: int, played: Stream, untouched: Packets
) -> None:
    end = find(untouched, enters(next_phase))
    assert phase_of(untouched[end - 1]) == phase
    packets = played.packets(max(0, end - 500), end)
    packets[-1].match_info.match_phase = flat.MatchPhase(next_phase)
    violations = read(packets).violations
    assert any("match_info.match_phase" in one and "ticks, expected one of" in one for one in violations)


def timers(packets: Packets) -> list[float]:
    return [packet.players[1].demolished_timeout for packet in packets]


def lasts(packets: Packets, back: int) -> None:
    for packet in packets[back : back + 3]:
        packet.players[1].demolished_timeout = 0.0


def is_short(packets: Packets, back: int) -> None:
    packets[back - 1].players[1].demolished_timeout = -1.0


def stands(packets: Packets, back: int) -> None:
    packets[back - 50].players[1].demolished_timeout = packets[back - 51].players[1].demolished_timeout


def is_nobodys(packets: Packets, back: int) -> None:
    for packet in packets:
        packet.players[0].score_info.demolitions = 0


def gives_boost(packets: Packets, back: int) -> None:
    packets[back].players[1].boost = 80.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lasts, "demolished_timeout is 0, expected -1, 360 ticks after the demolition"),
        (is_short, "demolished_timeout is -1 after 359 ticks"),
        (stands, "players[1].demolished_timeout"),
        (is_nobodys, "score_info.demolitions"),
        (gives_boost, "players[1].boost is 80, expected 33.3333 after a demolition"),
    ],
)
def test_a_demolition_that_is_wrong_is_found(change: Any, message: str, rammed: Stream) -> None:
    packets = rammed.packets()
    change(packets, max(i for i, timeout in enumerate(timers(packets)) if timeout >= 0.0) + 1)
    assert message in read(packets, rammed.edits).violations[0]


def test_a_demolished_car_may_be_faster_than_a_car(rammed: Stream) -> None:
    packets = rammed.packets()
    for packet in packets[timers(packets).index(3.0) :]:
        if packet.players[1].demolished_timeout >= 0.0:
            packet.players[1].physics.velocity.x = 2322.0
            packet.players[1].physics.angular_velocity.z = 5.7
    read(packets, rammed.edits).check()


@both
def test_a_bump_shows_supersonic_at_the_speed_before_it(name: str) -> None:
    bumped, rules = bump(name), Rules(rocketsim3=name == ROCKETSIM3)
    packets = bumped.packets()
    at = next(i for i, one in enumerate(packets) if one.players[0].is_supersonic and speed_of(one) < 1700.0)
    read(packets, bumped.edits, rules=rules).check()
    packets[at + 1].players[0].is_supersonic = True
    found = read(packets, bumped.edits, rules=rules).violations
    assert found[0].startswith(
        f"frame {packets[at + 1].match_info.frame_num}: players[0].is_supersonic is True"
    )
    packets[at].players[1].physics.location.x += 300.0  # too far away for a bump
    found = read(packets, bumped.edits, rules=rules).violations
    assert any(f"frame {packets[at].match_info.frame_num}: players[0].is_supersonic" in one for one in found)


@both
@pytest.mark.parametrize("early", [True, False], ids=["on below 2200 uu/s", "off above 2200 uu/s"])
def test_a_car_alone_is_supersonic_by_its_speed(early: bool, name: str) -> None:
    stream, rules = bump(name), Rules(rocketsim3=name == ROCKETSIM3)
    packets = stream.packets(0, 50)
    starts = next(i for i, one in enumerate(packets) if one.players[0].is_supersonic)
    assert 2200.0 <= speed_of(packets[starts]) < 2220.0
    packets[starts - early].players[0].is_supersonic = early
    violations = read(packets, stream.edits, rules=rules).violations
    assert (
        len(violations) == 1 and f"players[0].is_supersonic is {early}, expected {not early}" in violations[0]
    )


def speed_of(packet: Any) -> float:
    velocity = packet.players[0].physics.velocity
    return math.hypot(velocity.x, velocity.y, velocity.z)


def test_an_edit_that_nobody_told_of_is_found(rammed: Stream) -> None:
    assert read(rammed.packets()).violations


def test_the_error_names_the_first_twenty_and_counts_the_others(played: Stream) -> None:
    packets = played.packets(600, 630)
    for packet in packets:
        packet.players[0].boost = 101.0
    checker = read(packets)
    with pytest.raises(AssertionError, match=r"30 violations .*\n.*boost is 101.0, expected 0..100") as error:
        checker.check()
    assert str(error.value).count("\n") == 21
    assert "... and 10 more" in str(error.value)


@pytest.mark.parametrize("keep", [2, 3, 7])
def test_lost_packets_are_in_order_where_allowed(untouched: Packets, rammed: Stream, keep: int) -> None:
    read(untouched[::keep], lossy=True).check()
    read(rammed.frozen()[1::keep], lossy=True).check()
    assert "frame_num" in read(untouched[:20:keep]).violations[0]


def test_a_stream_may_be_joined_at_any_packet(untouched: Packets) -> None:
    for first in range(0, len(untouched), 97):
        read(untouched[first : first + 30]).check()


# --- dialects ------------------------------------------------------------------------------------


def test_pad_timers_are_read_by_the_dialect(played: Stream) -> None:
    packets = played.packets(900, 1700)
    for packet in packets:
        for number, pad in enumerate(packet.boost_pads):
            if not pad.is_active:
                big = field_info().boost_pads[number].is_full_boost
                pad.timer = (10.0 if big else 4.0) - pad.timer
    read(packets, dialect=ProtocolVariant({"pad_timer": "remaining"}).complete()).check()
    read(packets, dialect=ProtocolVariant()).check()
    assert "timer" in read(packets).violations[0]


def test_a_dialect_may_hide_the_ball_after_a_goal(played: Stream, untouched: Packets) -> None:
    goal = find(untouched, enters(Phase.GOAL_SCORED))
    packets = played.packets(goal - 20, goal + 400)
    for packet in packets[20:]:
        packet.balls = []
    packets[-1].match_info.match_phase = flat.MatchPhase.Ended  # it stays away when the match ends
    hidden = ProtocolVariant({"ball_after_goal": "hidden"}).complete()
    read(packets, dialect=hidden).check()
    read(packets, dialect=ProtocolVariant()).check()
    assert "balls" in read(packets).violations[0]
    assert "balls" in read(untouched[goal - 20 : goal + 20], dialect=hidden).violations[0]


def test_a_dialect_may_hold_frames_in_a_replay(played: Stream, untouched: Packets) -> None:
    replay, stood = find(untouched, enters(Phase.REPLAY)), 0
    packets = played.packets(replay - 20, replay + 1100)
    for before, packet in itertools.pairwise(packets):
        stood += phase_of(before) == phase_of(packet) == Phase.REPLAY
        packet.match_info.frame_num -= stood
        packet.match_info.seconds_elapsed = packet.match_info.frame_num / 120
    read(packets, dialect=ProtocolVariant({"idle_frames": "repeated"}).complete()).check()
    read(packets, dialect=ProtocolVariant()).check()
    assert "frame_num" in read(packets).violations[0]


def test_a_clock_of_whole_seconds_is_read_by_the_dialect(played: Stream, untouched: Packets) -> None:
    packets = played.packets(0, 1200)
    for packet in packets:
        packet.match_info.game_time_remaining = math.ceil(packet.match_info.game_time_remaining - 1e-5)
    whole = ProtocolVariant({"clock": "whole"}).complete()
    read(packets, dialect=whole).check()
    read(packets, dialect=ProtocolVariant()).check()
    assert "game_time_remaining" in read(packets).violations[0]
    assert "whole seconds" in read(untouched[:1200], dialect=whole).violations[0]


# --- what it stands on -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent / "packet_checker").glob("*.py")), ids=lambda path: path.name
)
def test_the_checker_uses_neither_server_nor_decoder(path: Path) -> None:
    allowed = ("rlgym_bridge.game", "rlgym_bridge.protocol_variant", "tests.packet_checker")
    ours = {name for name in imports(path) if name.startswith(("rlgym_bridge", "tests", "RocketSim"))}
    assert all(name.startswith(allowed) for name in ours), ours


@pytest.mark.odd_packets("a match that shows 101 boost")
def test_a_match_that_shows_nonsense_is_noticed_by_the_watch() -> None:
    with watching() as watch:
        match = Match(seats())
        to_phase(match, Phase.KICKOFF)
        match.advance()
        simulation = match.simulation
        boost, car = CAR["boost_amount"], simulation.cars[0]
        simulation.cars[0] = (*car[:boost], 101.0, *car[boost + 1 :])
        match.packet()
    assert watch.packets > 480
    with pytest.raises(AssertionError, match=r"players\[0\].boost"):
        watch.check()


def test_tests_may_set_cars_and_leave_packets_out() -> None:
    with watching() as watch:
        match = kicked_off()
        put_car(match, 0, (0, -2000, 500), boost=100.0)
        for _ in range(5):
            match.advance()
        match.packet()
    watch.check()
