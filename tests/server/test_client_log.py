"""Whatever clients send, the server's log stays short and says what it left out."""

import logging
from collections.abc import Iterator

import pytest
from rlbot import flat

from rlgym_bridge.server import client_log
from rlgym_bridge.server.client_log import begin_limits, end_limits
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net.lobby import Lobby
from tests.support.raw_client import RawClient
from tests.support.stepped_match import match_of, player

_AT_ONCE = 20


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Stop the clock of the log's limits; a test moves it on."""
    now = [0.0]
    monkeypatch.setattr(client_log.time, "monotonic", lambda: now[0])
    begin_limits()
    yield now
    end_limits()


@pytest.fixture(autouse=True)
def all_is_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rlgym_bridge")


def lines(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [one.getMessage() for one in caplog.records if words in one.getMessage()]


def test_a_repeated_line_is_counted_and_not_written(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    log = client_log.client_log("rlgym_bridge.server.test")
    for number in range(_AT_ONCE + 500):
        log.info("client %d left", number)
    log.info("another line")
    assert lines(caplog, "left") == [f"client {number} left" for number in range(_AT_ONCE)]
    assert lines(caplog, "another line") == ["another line"]
    clock[0] += 1.0
    for number in range(2):
        log.info("client %d left", number)
    assert lines(caplog, "left")[_AT_ONCE:] == ["client 0 left (500 more lines like this one were left out)"]
    begin_limits()
    end_limits()
    assert caplog.records[-1].getMessage() == "1 more lines like 'client %d left' were left out"


def test_a_long_text_is_cut_and_what_follows_it_stays(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    log = client_log.client_log("rlgym_bridge.server.test")
    log.error("agent %r: %s; %d are open", "x" * 60_000, ValueError("y" * 60_000), 7)
    (line,) = lines(caplog, "are open")
    assert len(line) < 7_000 and line.endswith("; 7 are open") and line.startswith(f"agent '{'x' * 300}...'")


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        ("does not close between", [flat.ConnectionSettings("x" * 60_000, False, False, False)]),
        ("no free seat for", [flat.ConnectionSettings("x" * 60_000, close_between_matches=True)]),
        ("cannot start the match", [flat.StartCommand("x" * 60_000)] * 3),
        ("left: ", []),
    ],
)
def test_a_flood_of_long_messages_writes_few_short_lines(
    words: str,
    messages: list[object],
    lobby: Lobby,
    clock: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def read_match(match: flat.MatchConfiguration | str) -> flat.MatchConfiguration:
        raise ValueError(f"{match} cannot be read")

    lobby.orders.read_match = read_match
    lobby.open_match(seat_players(match_of(player(0))))
    for _ in range(_AT_ONCE + 4):
        client = RawClient(lobby.clients.listener.getsockname()[1])
        client.send(*messages)
        for _ in range(10):
            lobby.clients.pump(0.002)
        client.socket.close()
        while lobby.clients.everyone:
            lobby.clients.pump(0.01)
    assert len(lines(caplog, words)) == _AT_ONCE
    assert max(len(line) for line in lines(caplog, "")) < 7_000
    caplog.clear()
    begin_limits()
    end_limits()
    assert lines(caplog, "more lines like")
