"""A client that sends without end costs the others nothing."""

import itertools
import socket
import time
from types import SimpleNamespace

import pytest
from rlbot import flat

from rlgym_bridge.server.net import clients as server_clients
from tests.support.raw_client import connect, settle


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
