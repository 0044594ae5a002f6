"""Imperfect worlds: late inputs, packets lost, held back, late, and frames not rendered."""

import hashlib
import itertools
import json
import tempfile
import time

import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.game import Phase
from rlgym_bridge.server import Impairments, MatchServer
from rlgym_bridge.server.game.packer import framed
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net.connected_client import Client
from rlgym_bridge.server.net.impairments import Lines, SlowInputs
from rlgym_bridge.server.net.pace import Lockstep, RealTime
from tests.support.raw_client import agent, connect, settle
from tests.support.short_waits import shorten_countdown
from tests.support.stepped_match import (
    controls,
    go_on,
    kicked_off,
    match_of,
    player,
    put_ball,
    result_of,
    seats,
    to_phase,
)


@pytest.fixture(autouse=True)
def logs_of_bots_in_the_tests_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"latency": -1}, "latency is -1, expected whole ticks, 0 to 1,200"),
        ({"latency": 1.5}, "latency is 1.5, expected whole ticks"),
        ({"latency": 1201}, "latency is 1201, expected whole ticks, 0 to 1,200"),
        ({"jitter": -0.1}, "jitter is -0.1, expected milliseconds, 0 to 10,000"),
        ({"jitter": float("nan")}, "jitter is nan, expected milliseconds"),
        ({"drop": 100.0}, "drop is 100.0, expected percent, 0 or more and below 100"),
        ({"burst": 61}, r"burst is 61, expected a whole number of packets, 0 \(off\) to 60"),
        ({"fps": 144}, r"fps is 144, expected whole frames a second, 0 \(off\) to 120"),
    ],
)
def test_an_impossible_world_says_what_is_expected(values, message):
    with pytest.raises(ValueError, match=message):
        Impairments(**values)


def test_jitter_in_lockstep_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="waits for every answer, so that a late packet changes nothing"):
        MatchServer(pace="lockstep", impairments=Impairments(jitter=5.0))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["match", "--pace", "lockstep", "--jitter", "5"], "--jitter is 5 ms at lockstep pace, expected 0"),
        (["server", "0", "--drop", "120"], "--drop is 120.0, expected percent"),
        (["match", "--server", "rlbot", "--fps", "60"], "only the embedded server takes --fps"),
    ],
)
def test_the_commands_refuse_such_worlds_with_exit_code_2(capsys, words, message):
    assert main(words) == 2
    assert message in capsys.readouterr().err


def shown_throttles(impairments, given):
    """Return the throttle that each packet shows where these are sent, one a tick; None lets go."""
    match = kicked_off()
    slow, shown = SlowInputs(match, impairments), []
    for throttle in given:
        slow.release(0) if throttle is None else slow.hold(0, controls(throttle=throttle))
        slow.arrive()
        shown.append(go_on(match).players[0].last_input.throttle)
    return shown


@pytest.mark.protocol("inputs.at-once")
def test_inputs_act_as_many_ticks_later_as_the_latency_says():
    shown = shown_throttles(Impairments(latency=3), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
    assert shown == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2, 0.3])


def test_a_bot_that_left_lets_go_of_its_controls():
    shown = shown_throttles(Impairments(latency=2), (1.0, 1.0, None, None, None, None))
    assert shown == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]


def test_inputs_of_spread_latency_keep_their_order():
    shown = shown_throttles(Impairments(latency_spread=3), [number / 100 for number in range(100)])
    throttles = [round(100 * throttle) for throttle in shown]
    late = [number - throttle for number, throttle in enumerate(throttles)]
    assert throttles == sorted(throttles) and set(late) == {0, 1, 2, 3}


def test_inputs_and_rendering_go_by_ticks_not_frames():
    match = kicked_off(idle_frames="repeated")
    put_ball(match, (0.0, 5100.0, 300.0), (0.0, 3000.0, 0.0))
    to_phase(match, Phase.REPLAY)
    go_on(match, 5)
    slow, frame, rendered = SlowInputs(match, Impairments(latency=3)), match.frame, []
    slow.hold(0, controls(throttle=0.5))
    for _ in range(8):
        rendered.append(Impairments(fps=60).renders(match.tick))
        slow.arrive()
        match.advance()
        match.packet()
    assert match.frame == frame and sum(rendered) == 4
    assert match._inputs[0].throttle == 0.5


def test_a_slow_input_of_nan_is_told_at_once_and_never_acts():
    match = kicked_off()
    slow = SlowInputs(match, Impairments(latency=1))
    assert slow.hold(0, controls(throttle=0.5))
    assert not slow.hold(0, controls(throttle=float("nan")))
    for _ in range(3):
        slow.arrive()
        packet = go_on(match)
    assert packet.players[0].last_input.throttle == 0.5


def frames_of_first_throttle(**impairments):
    """Play with a bot that drives from frame 200 on; return the first frames that show it."""
    found = []

    def note(payload):
        packet = flat.CorePacket.unpack(payload).message
        if packet.players[0].last_input.throttle > 0.0:
            found.append(packet.match_info.frame_num)

    world = Impairments(**impairments)
    result = result_of(match_of(player(0, "starter")), max_kickoff=0.1, on_packet=note, impairments=world)
    assert result.bots[0].late == 0
    return found[0]


def test_latency_2_makes_an_input_act_two_ticks_later():
    assert (frames_of_first_throttle(), frames_of_first_throttle(latency=2)) == (201, 203)


def a_client(car):
    client = Client(None)
    client.sit([seats()[car]])
    return client


def sent(impairments, clients, packets=2000, seed=1):
    """Send numbered packets, one a tick; return which reach each client together, by tick."""
    lines = Lines(impairments, seed)
    arrived = [[] for _ in clients]
    for number in range(packets):
        lines.put(clients, number.to_bytes(2, "big"), now=float(number))
        for one, client in zip(arrived, clients, strict=True):
            one.append([int.from_bytes(data, "big") for data in lines.take(client, float(number))])
    return arrived


def test_each_client_loses_its_own_percentage_of_packets():
    first, second = sent(Impairments(drop=20.0), [a_client(0), a_client(1)])
    for ticks in (first, second):
        assert all(packets in ([], [tick]) for tick, packets in enumerate(ticks))
        assert ticks.count([]) == pytest.approx(400, abs=60)
    both = sum(a == b == [] for a, b in zip(first, second, strict=True))
    assert both == pytest.approx(80, abs=30)


def test_losses_depend_on_seed_and_car_alone():
    one, other = sent(Impairments(drop=20.0), [a_client(0), a_client(1)])
    assert sent(Impairments(drop=20.0), [a_client(1), a_client(0)]) == [other, one]
    assert sent(Impairments(drop=20.0), [a_client(0)], seed=2) != [one]


def test_packets_wait_for_a_full_burst_though_some_are_lost():
    (ticks,) = sent(Impairments(burst=3), [a_client(0)], packets=8)
    assert ticks == [[], [], [0, 1, 2], [], [], [3, 4, 5], [], []]
    (ticks,) = sent(Impairments(burst=3, drop=50.0), [a_client(0)])
    assert {len(packets) for packets in ticks} == {0, 3}
    arrived = [number for packets in ticks for number in packets]
    assert arrived == sorted(arrived)


def test_late_packets_keep_their_order_within_the_jitter():
    lines, client = Lines(Impairments(jitter=20.0), seed=1), a_client(0)
    late, sent_at = [], {}
    for number in range(2000):
        now = 0.001 * number
        sent_at[number] = now
        lines.put([client], number.to_bytes(2, "big"), now)
        for data in lines.take(client, now):
            arrived = int.from_bytes(data, "big")
            assert arrived == len(late)
            late.append(now - sent_at[arrived])
    assert max(late) <= 0.021
    assert sum(late) / len(late) > 0.010  # those behind a late one wait for it


@pytest.mark.parametrize("fps", [1, 7, 60, 100, 119, 120])
@pytest.mark.protocol("steady.slow-game")
def test_as_many_frames_are_rendered_as_the_client_renders(fps):
    frames = [frame for frame in range(360) if Impairments(fps=fps).renders(frame)]
    assert frames[0] == 0
    assert [sum(120 * s <= frame < 120 * (s + 1) for frame in frames) for s in range(3)] == [fps] * 3
    steps = {after - before for before, after in itertools.pairwise(frames)}
    assert max(steps) - min(steps) <= 1 or fps == 1


def seated(lobby, impairments):
    """Offer a seat in an imperfect impairments; return the client in it and its account."""
    lobby.open_match(seat_players(match_of(player(0))), Lines(impairments, seed=1))
    lobby.take_input = lambda *_: True
    client = connect(lobby, agent(), flat.InitComplete())
    for _ in range(3):  # configuration, seat, field
        client.receive()
    return client, lobby.accounts[0]


def tick(lobby, client, answers):
    """Send a packet, answer it so many times, and go on; return for how many cars was waited."""
    lobby.send_packet(framed(flat.GamePacket()))
    awaited = lobby.awaited
    client.send(*[flat.PlayerInput(0, flat.ControllerState())] * answers)
    settle(lobby)
    assert lobby.awaited == (0 if answers else awaited)
    lobby.book_late()
    return awaited


def test_a_burst_is_one_thing_to_answer(lobby):
    client, account = seated(lobby, Impairments(burst=3))
    assert [tick(lobby, client, answers) for answers in (0, 0, 1, 0, 0, 0, 0)] == [0, 0, 1, 0, 0, 1, 0]
    assert (account.replies, account.late, account.misses) == (1, 1, 1)


def test_a_packet_that_is_lost_is_nobodys_late_answer(lobby):
    client, account = seated(lobby, Impairments(drop=60.0))
    awaited = []
    for _ in range(30):
        lobby.send_packet(framed(flat.GamePacket()))
        awaited.append(lobby.awaited)
        if lobby.awaited:
            client.send(flat.PlayerInput(0, flat.ControllerState()))
            settle(lobby)
        lobby.book_late()
    assert 0 < sum(awaited) < 30
    assert (account.replies, account.late) == (sum(awaited), 0)


def test_a_late_answer_counts_for_the_tick_of_its_packet(lobby):
    client, account = seated(lobby, Impairments(fps=60))
    assert tick(lobby, client, answers=0) == 1
    lobby.send_packet(b"")
    client.send(flat.PlayerInput(0, flat.ControllerState()))
    settle(lobby)
    lobby.book_late()
    assert (lobby.awaited, account.replies, account.late, account.misses) == (0, 1, 1, 0)


def test_lockstep_does_not_wait_where_nothing_was_sent(lobby):
    client, _ = seated(lobby, Impairments(burst=60))
    pace, started = Lockstep(), time.perf_counter()
    for _ in range(59):
        pace.wait(lobby, lobby.send_packet(framed(flat.GamePacket())))
        lobby.book_late()
    assert time.perf_counter() - started < 0.25  # in real time it would be half a second
    assert tick(lobby, client, answers=1) == 1


def test_lockstep_takes_real_time_where_no_bot_answers_any_more(lobby):
    client, account = seated(lobby, Impairments(burst=2))
    for _ in range(6):
        tick(lobby, client, answers=0)
    assert account.misses == 3
    pace, started = Lockstep(), time.perf_counter()
    for _ in range(10):
        pace.wait(lobby, lobby.send_packet(framed(flat.GamePacket())))
    assert time.perf_counter() - started > 9 / 120


def test_late_packets_leave_between_two_ticks_in_real_time(lobby):
    client, account = seated(lobby, Impairments(jitter=30.0))
    client.socket.settimeout(0.5)
    pace = RealTime()
    for _ in range(24):
        pace.wait(lobby, lobby.send_packet(framed(flat.GamePacket())))
        lobby.book_late()
    pace.wait(lobby, lobby.send_packet(b""))
    for _ in range(4):
        pace.wait(lobby, lobby.send_packet(b""))
    assert [type(client.receive()).__name__ for _ in range(24)] == ["GamePacket"] * 24
    assert 0 < account.late <= 24


def test_real_reply_times_count_from_when_a_packet_left(monkeypatch):
    shorten_countdown(monkeypatch)
    world = Impairments(jitter=100.0)
    result = result_of(match_of(player(0)), pace="realtime", max_kickoff=1.0, impairments=world)
    (bot,) = result.bots
    assert 30 < bot.replies < result.ticks  # several packets leave together and get one answer
    assert bot.reply_p50_ms < 20.0
    assert bot.late <= bot.replies


def played(seed, **impairments):
    """Play a seeded 1v1 in lockstep; return a digest of all its packets, and the result."""
    sha = hashlib.sha256()
    result = result_of(
        match_of(player(0, "ram"), player(1, "ram")), seed=seed, seconds=4.0, max_overtime=0.5,
        on_packet=sha.update, impairments=Impairments(**impairments),
    )  # fmt: skip
    assert all(bot.late == 0 for bot in result.bots)
    return sha.hexdigest(), result


@pytest.mark.slow
def test_seeded_lockstep_runs_lose_the_same_packets():
    impairments = {"drop": 10.0, "latency": 2, "burst": 2}
    first, result = played(5, **impairments)
    assert played(5, **impairments)[0] == first
    assert played(5, drop=11.0, latency=2, burst=2)[0] != first
    for bot in result.bots:
        assert bot.replies == pytest.approx(0.9 * result.ticks / 2, rel=0.05)


@pytest.mark.parametrize(
    ("impairments", "share"),
    [
        (["--drop", "10", "--burst", "3", "--latency", "2"], 0.3),
        pytest.param(["--fps", "60"], 0.5, marks=pytest.mark.slow),
    ],
)
def test_two_chasers_play_to_the_end_in_an_imperfect_world(tmp_path, monkeypatch, impairments, share):
    monkeypatch.chdir(tmp_path)
    assert main(
        ["match", "--blue", "chaser", "--orange", "chaser", "--pace", "lockstep", "--seconds", "5",
         "--max-overtime", "0", *impairments, "-q", "--json", "out.json"]
    ) == 0  # fmt: skip
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["ended_by"] in ("time", "overtime goal", "max overtime: draw")
    assert result["ticks"] > 480 + 5 * 120
    for bot in result["bots"]:
        assert bot["late"] == 0
        assert bot["replies"] == pytest.approx(share * result["ticks"], rel=0.05)
        assert bot["touches"] > 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"impairments": {"latency": 3}}, "impairments is .*, expected Impairments, or None"),
        ({"dialect": "clock=whole"}, "dialect is 'clock=whole', expected ProtocolVariant, or None"),
        ({"constants": 3}, "constants is 3, expected Mapping, or None"),
        ({"seed": -1}, "seed is -1, expected a whole number, 0 or more"),
        ({"seed": "x"}, "seed is 'x', expected a whole number, 0 or more"),
    ],
)
def test_a_server_names_an_argument_of_another_type(values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MatchServer(**values)


def test_only_the_packets_of_its_team_suffer():
    blue, orange = sent(Impairments(drop=50.0, team=1), [a_client(0), a_client(1)])
    assert blue == [[tick] for tick in range(2000)]
    assert orange.count([]) == pytest.approx(1000, abs=100)
    blue, orange = sent(Impairments(fps=60, team=0), [a_client(0), a_client(1)], packets=6)
    assert blue == [[0], [], [2], [], [4], []] and orange == [[tick] for tick in range(6)]
    assert Impairments(fps=60, team=0).renders(1)


def test_only_the_inputs_of_its_team_act_later():
    match = kicked_off()
    slow = SlowInputs(match, Impairments(latency=2, team=1))
    throttles = []
    for throttle in (0.1, 0.2, 0.3):
        for car in (0, 1):
            slow.hold(car, controls(throttle=throttle))
        slow.arrive()
        throttles += [car.last_input.throttle for car in go_on(match).players]
    assert throttles == pytest.approx([0.1, 0.0, 0.2, 0.0, 0.3, 0.1])
