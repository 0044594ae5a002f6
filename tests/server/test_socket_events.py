"""Waiting for sockets: owners, events, and how long it takes."""

import socket
from collections.abc import Iterator
from selectors import EVENT_READ, EVENT_WRITE

import pytest

from rlgym_bridge.server.net.wire import SocketEvents

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def sockets() -> Iterator[SocketEvents]:
    made = SocketEvents()
    yield made
    made.close()


@pytest.mark.parametrize("timeout", [-1.0, 0.0, 0.005, 0.03])
def test_without_events_a_wait_ends_and_gives_nothing(
    sockets: SocketEvents, pair: Pair, timeout: float
) -> None:
    sockets.watch(pair[0], EVENT_READ, "us")
    assert sockets.wait(timeout) == []


def test_what_can_be_read_and_written_comes_with_its_owner(sockets: SocketEvents, pair: Pair) -> None:
    sockets.watch(pair[0], EVENT_READ, "us")
    pair[1].send(b"x")
    assert sockets.wait(1.0) == [("us", EVENT_READ)]
    sockets.watch(pair[0], EVENT_READ | EVENT_WRITE, "others")
    assert sockets.wait(1.0) == [("others", EVENT_READ | EVENT_WRITE)]
    sockets.watch(pair[0], EVENT_WRITE, "us")
    assert sockets.wait(1.0) == [("us", EVENT_WRITE)]


def test_a_closed_connection_can_be_read(sockets: SocketEvents, pair: Pair) -> None:
    sockets.watch(pair[0], EVENT_READ, "us")
    pair[1].close()
    ((owner, events),) = sockets.wait(1.0)
    assert owner == "us" and events & EVENT_READ


def test_a_socket_that_is_watched_no_more_is_silent(sockets: SocketEvents, pair: Pair) -> None:
    sockets.watch(pair[0], EVENT_READ, "us")
    assert sockets
    sockets.watch(pair[0], 0, "us")
    pair[1].send(b"x")
    assert not sockets and sockets.wait(0.0) == []
