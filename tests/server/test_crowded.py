"""Messages without end, and more visitors than the server has room for, cost the others nothing."""

import contextlib
import errno
import itertools
import select
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from rlbot import flat

from rlgym_bridge.server.game.packer import framed
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net import clients as server_clients
from rlgym_bridge.server.net.admission import Caller, Standing
from tests.support.processes import child
from tests.support.raw_client import RawClient, agent, connect, settle
from tests.support.short_waits import shorten_farewell
from tests.support.stepped_match import HERE, match_of, player


@pytest.fixture
def one_message_a_turn(monkeypatch):
    monkeypatch.setattr(server_clients, "_AT_ONCE_SECONDS", 1e-9)


@pytest.fixture
def no_message_takes_long(monkeypatch):
    """Give the server a clock that no pause of this process moves on."""
    seconds = itertools.count(step=1e-8)
    clock = SimpleNamespace(perf_counter=lambda: next(seconds), sleep=time.sleep)
    monkeypatch.setattr(server_clients, "time", clock)


def flooded(lobby, monkeypatch, number):
    """Return a client whose pings have arrived and are not answered, and the numbers that are handled."""
    handled = []
    take = lobby.clients.handlers[flat.PingRequest]

    def count(client, message):
        handled.append(message.cookie)
        take(client, message)

    monkeypatch.setitem(lobby.clients.handlers, flat.PingRequest, count)
    client = connect(lobby)
    pings = (flat.InterfacePacket(flat.PingRequest(cookie=cookie)).pack() for cookie in range(number))
    client.socket.sendall(b"".join(len(ping).to_bytes(2, "big") + ping for ping in pings))
    return client, handled


def test_a_flood_waits_for_the_next_tick(lobby, monkeypatch, one_message_a_turn, no_message_takes_long):
    monkeypatch.setattr(server_clients, "TICK_SECONDS", 1e6)  # ticks come by `begin_tick` alone
    lobby.clients.begin_tick()
    client, handled = flooded(lobby, monkeypatch, 30)
    for _ in range(10):
        lobby.clients.pump(0.001)
    assert handled == [0]
    quiet = connect(lobby, flat.PingRequest(cookie=77))
    assert quiet.receive().cookie == 77
    for tick in range(1, 30):
        lobby.clients.begin_tick()
        lobby.clients.pump(0.001)
        assert handled.count(77) == 1 and len(handled) == tick + 2
    assert [client.receive().cookie for _ in range(30)] == list(range(30))


def test_without_ticks_a_flood_is_heard_all_the_same(lobby, monkeypatch, one_message_a_turn):
    client, handled = flooded(lobby, monkeypatch, 12)
    while len(handled) < 12:
        lobby.clients.pump(1.0)
    assert [client.receive().cookie for _ in range(12)] == list(range(12))


def test_all_who_flood_get_their_turns(lobby, monkeypatch, one_message_a_turn):
    lobby.clients.begin_tick()
    crowd = [flooded(lobby, monkeypatch, 5)[0] for _ in range(6)]
    settle(lobby)
    for client in crowd:
        assert [client.receive().cookie for _ in range(5)] == list(range(5))


def test_a_flood_that_ends_is_heard_to_its_last_message(lobby, monkeypatch, one_message_a_turn):
    client, handled = flooded(lobby, monkeypatch, 8)
    client.socket.shutdown(socket.SHUT_WR)
    while lobby.clients.everyone:
        lobby.clients.pump(0.01)
    assert handled == list(range(8))


def test_a_dismissed_client_is_not_heard_any_more(lobby, monkeypatch, one_message_a_turn):
    client, handled = flooded(lobby, monkeypatch, 8)
    lobby.clients.pump(0.01)
    (served,) = lobby.clients.everyone
    lobby.clients.dismiss(served, "a test ends")
    count = len(handled)
    settle(lobby)
    assert len(handled) == count and client.receive() is not None


def test_floods_fill_a_connection_and_not_the_memory(lobby, monkeypatch):
    monkeypatch.setattr(server_clients, "TICK_SECONDS", 1e6)
    monkeypatch.setattr(server_clients, "_AT_ONCE_SECONDS", 1e-9)
    lobby.clients.begin_tick()
    client = connect(lobby)
    client.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        while True:
            client.send(flat.PingRequest(cookie=1))
            lobby.clients.pump(0.0)
    (served,) = lobby.clients.everyone
    assert len(served.link._received) <= 2 * 65536


ROOT = HERE.parent.parent


def in_its_own_process(what, **options):
    """Start `tests.support.crowded_server`; skip where a process may not open as many files as it needs."""
    resource = pytest.importorskip("resource", reason="open files are limited on POSIX only")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"this user may have {hard} open files, expected 4,096")
    words = [sys.executable, "-m", "tests.support.crowded_server", what]
    pipe = subprocess.PIPE
    return child(words, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, **options)


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("serve", id="before a match", marks=pytest.mark.slow),
        pytest.param("play", id="during a match"),
    ],
)
def test_goodbyes_of_400_clients_leave_the_server_at_work(what):
    with in_its_own_process(what) as process:
        out, errors = process.communicate(timeout=120)
    assert (out, process.returncode) == ("match ended\n", 0), errors


def test_a_server_waits_for_a_free_handle_without_spinning():
    with in_its_own_process("starve") as process:
        port = int(process.stdout.readline())
        crowd = [RawClient(port) for _ in range(80)]
        time.sleep(0.5)
        for one in crowd:
            one.socket.close()
        RawClient(port).send(flat.StopCommand(shutdown_server=True))
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert int(out) < 1000  # a server that spins looks around 100,000 times a second
    assert "no client can be accepted" in errors and "expected a free handle" in errors


@pytest.fixture
def room_for_four(monkeypatch):
    monkeypatch.setattr(server_clients, "_MOST_CONNECTIONS", 4)


def test_the_longest_lingering_client_makes_room(lobby, room_for_four):
    lingering = [connect(lobby, flat.DisconnectSignal()) for _ in range(4)]
    for one in lingering:
        assert isinstance(one.receive(), flat.DisconnectSignal)
    newcomer = connect(lobby, flat.PingRequest(cookie=3))
    assert newcomer.receive().cookie == 3


def test_a_client_that_pauses_gets_all_of_its_messages(lobby):
    client = connect(lobby, flat.ConnectionSettings(""), flat.InitComplete())
    messages = [framed(flat.MatchComm(number, 0, False, None, b"x" * 60_000)) for number in range(120)]
    (served,) = lobby.clients.everyone
    for message in messages:
        lobby.send_packet(message)
    sent = len(messages) - served.link.dropped
    assert served.link.waiting
    numbers = []
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(lambda: numbers.extend(client.receive().index for _ in range(sent)))
        while not reading.done():
            lobby.clients.pump(0.01)
    assert reading.result() is None
    assert numbers == list(range(sent))


@pytest.fixture
def newcomers(monkeypatch):
    """Take newcomers for processes of this standing; the first of the list is changed by tests."""
    standing = [None]
    found = lambda wanted: dict.fromkeys(wanted, Caller(standing[0])) if standing[0] else {}  # noqa: E731
    monkeypatch.setattr("rlgym_bridge.server.net.admission.find_own", found)
    return standing


def crowd_of_four(lobby):
    """Return four clients that have said one word each."""
    crowd = [connect(lobby, flat.PingRequest(cookie=3)) for _ in range(4)]
    assert [one.receive().cookie for one in crowd] == [3] * 4
    return crowd


def test_one_client_too_many_is_turned_away_and_the_log_says_so(lobby, room_for_four, newcomers, caplog):
    crowd = crowd_of_four(lobby)
    fifth = connect(lobby)
    assert fifth.receive() is None
    assert "more than 4 connections" in caplog.text and "turned away" in caplog.text
    assert len(lobby.clients.everyone) == len(crowd)


def test_a_process_of_the_match_gets_the_place_of_a_stranger(lobby, room_for_four, newcomers):
    crowd = crowd_of_four(lobby)
    crowd[0].send(flat.ConnectionSettings(""))  # it has said what it is, and may stay for longer
    settle(lobby)
    newcomers[0] = Standing.OWN
    entered = []
    for number, gone in enumerate((1, 2, 3, 0)):
        entered.append(connect(lobby, flat.PingRequest(cookie=number)))
        assert entered[-1].receive().cookie == number
        assert crowd[gone].receive() is None
    assert connect(lobby).receive() is None  # all four places are of the match's own processes


def test_a_car_is_not_taken_from_a_client_for_a_newcomer(lobby, room_for_four, newcomers):
    lobby.open_match(seat_players(match_of(*[player(0)] * 4)))
    crowd = [connect(lobby, agent()) for _ in range(4)]
    newcomers[0] = Standing.OWN
    assert connect(lobby).receive() is None
    assert all(one.seats for one in lobby.clients.everyone) and len(crowd) == 4


def test_many_newcomers_are_turned_away_one_after_the_other(lobby, room_for_four, newcomers, monkeypatch):
    monkeypatch.setattr(server_clients, "_MOST_AT_DOOR", 2)
    crowd = crowd_of_four(lobby)
    street = [RawClient(lobby.clients.listener.getsockname()[1]) for _ in range(9)]
    for one in street:
        one.socket.setblocking(False)
    deadline = time.monotonic() + 30.0
    left = list(street)
    while left and time.monotonic() < deadline:
        lobby.clients.pump(0.01)
        assert len(lobby.clients._at_door) <= 2
        for one in list(left):
            with contextlib.suppress(BlockingIOError):
                assert one.receive() is None
                left.remove(one)
    assert not left and len(lobby.clients.everyone) == len(crowd)


def test_a_flood_of_newcomers_is_turned_away_by_few_searches(lobby, room_for_four, monkeypatch):
    searches = []
    monkeypatch.setattr(
        "rlgym_bridge.server.net.admission.find_own", lambda wanted: searches.append(wanted) or {}
    )
    crowd = crowd_of_four(lobby)
    street = [RawClient(lobby.clients.listener.getsockname()[1]) for _ in range(96)]
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(lambda: [one.receive() for one in street])
        while not reading.done():
            lobby.clients.pump(0.01)
    assert reading.result() == [None] * 96
    assert len(searches) < 96 / 4 and all(len(wanted) <= 16 for wanted in searches)
    assert len(lobby.clients.everyone) == len(crowd)


def test_a_crowd_that_comes_at_once_is_accepted_in_a_few_looks(lobby):
    address = lobby.clients.listener.getsockname()
    crowd = [socket.socket() for _ in range(200)]  # Windows keeps so many
    try:
        for one in crowd:
            one.setblocking(False)
            assert one.connect_ex(address) in (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
        _, connected, _ = select.select([], crowd, [], 0.5)  # a second later the system would ask again
        assert len(connected) == len(crowd)
        looks = 0
        while len(lobby.clients.everyone) < len(crowd) and looks < len(crowd) / 3:
            lobby.clients.pump(0.5)
            looks += 1
        assert len(lobby.clients.everyone) == len(crowd)
    finally:
        for one in crowd:
            one.close()


def test_a_look_for_newcomers_ends_while_more_of_them_wait(lobby, monkeypatch):
    monkeypatch.setattr(server_clients, "_AT_ONCE_SECONDS", 0.0)
    crowd = [RawClient(lobby.clients.listener.getsockname()[1]) for _ in range(3)]
    for number in range(1, 4):
        lobby.clients.pump(0.5)
        assert len(lobby.clients.everyone) == number <= len(crowd)


def test_silent_clients_make_room_for_those_who_come(lobby, room_for_four):
    speaking = connect(lobby, flat.PingRequest(cookie=3))
    silent = [connect(lobby) for _ in range(3)]
    newcomer = connect(lobby, flat.PingRequest(cookie=4))
    assert (speaking.receive().cookie, newcomer.receive().cookie) == (3, 4)
    assert silent[0].receive() is None  # the one that has waited longest


def test_goodbyes_do_not_hold_up_the_end_of_a_match(lobby, monkeypatch):
    shorten_farewell(monkeypatch)
    port = lobby.clients.listener.getsockname()[1]
    strangers = [connect(lobby, flat.DisconnectSignal())]

    def keep_coming():
        while not ended.wait(0.01) and len(strangers) < 1000:
            strangers.append(RawClient(port))
            strangers[-1].send(flat.DisconnectSignal())

    ended = threading.Event()
    with ThreadPoolExecutor(1) as street:
        coming = street.submit(keep_coming)
        lobby.close_match()
        assert not coming.done()
        ended.set()
        settle(lobby)
