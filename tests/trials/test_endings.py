"""Whatever a server does, the probe ends, and says what it knows."""

import socket
import threading
from contextlib import closing

import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.live.agent_connections import NoServer, agents_of
from rlgym_bridge.protocol_variant import OWN_SERVER
from rlgym_bridge.server import Impairments, MatchResult, MatchServer
from rlgym_bridge.trials.findings import ProbeReport
from rlgym_bridge.trials.probe import Players, Probe, match_of_two
from tests.support.probe_packets import car, frame

AGENTS = agents_of(match_of_two())


def fed(packet_of, most: int = 6000) -> ProbeReport:
    """Show the probe packets made by hand until it is done."""
    probe = Probe((1, 2), flat.FieldInfo(), most)
    number = 0
    while not probe.done:
        probe.answer(packet_of(number))
        number += 1
        assert number <= most + 1
    assert probe.answer(packet_of(number))[0].desired((0, 1)) is None
    return probe.report()


@pytest.mark.parametrize("phase", [Phase.INACTIVE, Phase.COUNTDOWN, Phase.PAUSED, Phase.ENDED])
def test_a_match_that_never_begins_is_given_up(phase: int) -> None:
    report = fed(lambda number: frame(number, phase=phase).packet)
    assert report.notes == ["no kickoff came"]
    assert report.dialect == {} and not report.settled


def test_a_match_that_is_over_at_once_is_given_up() -> None:
    report = fed(lambda number: frame(number, phase=Phase.KICKOFF if number < 400 else Phase.ENDED).packet)
    assert "the match was over before all scenes were played" in report.notes
    assert report.packets < 500


def test_packets_without_the_probes_cars_are_counted() -> None:
    report = fed(lambda number: frame(number).packet if number == 9 else flat.GamePacket(), most=300)
    assert "300 packets lacked one of the probe's cars" in report.notes
    assert "ended after 300 packets, before all scenes were played" in report.notes


@pytest.mark.parametrize("numbers", [lambda _: 7, lambda number: 5000 - number, lambda number: number // 2])
def test_frames_that_stand_still_or_go_back_end_some_time(numbers) -> None:
    report = fed(lambda number: frame(numbers(number), phase=Phase.ACTIVE).packet)
    assert not report.settled
    assert "the server ignores state setting (enable_state_setting)" in report.notes


def test_a_frame_number_that_jumps_far_leaves_a_report() -> None:
    def jumping(number: int) -> flat.GamePacket:
        phase = Phase.ACTIVE if number < 1500 else Phase.REPLAY
        return frame(min(number, 1600) + (2**31 if number >= 300 else 0), phase=phase).packet

    report = fed(jumping)
    assert report.timing.packets_per_second == 120.0


def test_cars_full_of_nonsense_settle_nothing() -> None:
    nan = float("nan")

    def nonsense(number: int) -> flat.GamePacket:
        wrong = car(place=(nan, nan, nan), dodge_timeout=nan, boost=nan, demolished_timeout=nan)
        return frame(number, wrong, car("Else", 2), clock=nan).packet

    report = fed(nonsense)
    assert "dodge_timeout" in report.open
    assert report.toml("a server of nonsense", OWN_SERVER).count("not settled") >= 10


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def test_a_server_that_says_nothing_is_given_up(listener: socket.socket) -> None:
    with pytest.raises(NoServer, match="the server gave it no car"):
        Players(listener.getsockname(), AGENTS, patience=0.5)


def test_no_server_at_all_is_said(listener: socket.socket) -> None:
    address = listener.getsockname()
    listener.close()
    with pytest.raises(NoServer, match=r"no car for rlgym_bridge/engine/blue-0 at 127\.0\.0\.1"):
        Players(address, AGENTS, patience=0.5)


def framed(message: object) -> bytes:
    payload = flat.CorePacket(message).pack()
    return len(payload).to_bytes(2, "big") + payload


def test_a_server_that_goes_or_sends_junk_leaves_a_report(listener: socket.socket) -> None:
    hello = [
        framed(flat.MatchConfiguration()),
        framed(flat.FieldInfo()),
    ]

    def serve() -> None:
        connections = []
        for identifier in (1, 2):
            connection, _ = listener.accept()
            connections.append(connection)
            team = flat.ControllableTeamInfo(0, [flat.ControllableInfo(identifier - 1, identifier)])
            connection.sendall(b"".join([*hello, framed(team)]))
        connections[0].sendall(b"\x00\x03abc" + framed(frame(5, phase=Phase.COUNTDOWN).packet))
        for one in connections:
            one.recv(4096)
            one.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with closing(Players(listener.getsockname(), AGENTS, patience=5.0)) as players:
        assert players.ids == [1, 2]
        probe = Probe(players.ids, players.field)
        players.follow(probe, seconds=10.0)
        players.stop_match()
    thread.join(5.0)
    report = probe.report()
    assert report.packets == 1
    assert report.notes[0].startswith("the server went away")


def test_a_time_that_is_up_ends_the_play(listener: socket.socket) -> None:
    def serve() -> None:
        for identifier in (1, 2):
            connection, _ = listener.accept()
            kept.append(connection)
            team = flat.ControllableTeamInfo(0, [flat.ControllableInfo(identifier - 1, identifier)])
            connection.sendall(framed(flat.FieldInfo()) + framed(team))

    kept: list[socket.socket] = []
    threading.Thread(target=serve, daemon=True).start()
    with closing(Players(listener.getsockname(), AGENTS, patience=5.0)) as players:
        probe = Probe(players.ids, players.field)
        players.follow(probe, seconds=0.3)
    assert probe.report().notes == ["ended after 0.3 s", "no packet came"]
    for one in kept:
        one.close()


@pytest.mark.parametrize(
    "impairments", [Impairments(drop=5.0), Impairments(drop=30.0), Impairments(burst=3, drop=10.0)]
)
def test_lockstep_does_not_wait_for_a_lone_cars_packet(impairments: Impairments) -> None:
    results: list[MatchResult] = []
    with MatchServer(pace="lockstep", impairments=impairments) as server:
        thread = threading.Thread(target=lambda: results.append(server.play(match_of_two())), daemon=True)
        thread.start()
        with closing(Players((server.host, server.port), AGENTS, patience=10.0)) as players:
            players.follow(Probe(players.ids, players.field, most_packets=700), seconds=60.0)
            players.stop_match()
        thread.join(10.0)
    (result,) = results
    assert result.ticks > 700
    assert [bot.late for bot in result.bots] == [0, 0]
