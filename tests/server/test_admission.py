"""In a match only those drive and give orders whom it has started, or who are let in."""

import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rlbot import flat

from rlgym_bridge.server.game.roster import AgentSeat, seat_players
from rlgym_bridge.server.lineup import BotReport, find_troubles
from rlgym_bridge.server.net import admission as callers
from rlgym_bridge.server.net.admission import Admission, Caller, Standing, ends_of, find_caller, find_own
from rlgym_bridge.server.net.connected_client import Client
from rlgym_bridge.server.net.launch import BotProcess
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.orders import Loadouts
from rlgym_bridge.server.net.wire import listen
from tests.support.processes import child
from tests.support.raw_client import RawClient, agent, settle
from tests.support.short_waits import shorten_farewell
from tests.support.stepped_match import match_of, player, result_of

_CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.recv(1)"

_DAEMON = (
    "import subprocess, sys; "
    f"subprocess.Popen([sys.executable, '-c', {_CONNECT!r}, sys.argv[1]], start_new_session=True)"
)


@contextmanager
def guarded_lobby(monkeypatch: pytest.MonkeyPatch, standing: Standing, **car: Any) -> Iterator[Lobby]:
    """Open the lobby of a match that takes all clients for processes of one kind."""
    caller = Caller(standing, "process 4711, stray\x1b[2J")
    monkeypatch.setattr("rlgym_bridge.server.net.admission.find_own", lambda _: {})
    monkeypatch.setattr("rlgym_bridge.server.net.admission.find_caller", lambda _: caller)
    lobby = Lobby(listen("127.0.0.1", 0))
    lobby.admission.is_guarded = True
    lobby.open_match(seat_players(match_of(player(0, **car))))
    try:
        yield lobby
    finally:
        lobby.clients.close()
        lobby.admission.close()


def join(lobby: Lobby, *messages: Any) -> RawClient:
    """Connect, say something, and wait until it is known who that is and all is answered."""
    client = RawClient(lobby.clients.listener.getsockname()[1])
    client.send(*messages)
    settle(lobby)
    while lobby.admission._waiting:
        lobby.clients.pump(0.01)
    settle(lobby)
    return client


@pytest.fixture(autouse=True)
def goodbyes_are_short(monkeypatch):
    shorten_farewell(monkeypatch)


def takes_seat(lobby: Lobby) -> bool:
    return bool(lobby.clients.everyone[0].seats)


def test_a_stranger_gets_no_seat_and_may_watch(monkeypatch, caplog):
    with guarded_lobby(monkeypatch, Standing.SAME_USER) as lobby:
        client = join(lobby, agent(), flat.InitComplete())
        assert not takes_seat(lobby) and lobby.is_taken(lobby.accounts[0].seat) is False
        assert [type(client.receive()) for _ in range(2)] == [flat.MatchConfiguration, flat.FieldInfo]
        assert [one.ready for one in lobby.clients.everyone] == [True]
    (line,) = [one.getMessage() for one in caplog.records if "refused" in one.getMessage()]
    assert "(process 4711, stray\\x1b[2J) asks for" in line and "--allow-clients" in line
    assert "expected the bot that the match starts" in line


@pytest.mark.parametrize("standing", [Standing.OWN, Standing.UNKNOWN])
def test_a_bot_that_the_match_started_gets_its_seat(standing, monkeypatch):
    with guarded_lobby(monkeypatch, standing) as lobby:
        client = join(lobby, agent(), flat.InitComplete())
        assert takes_seat(lobby)
        kinds = [type(client.receive()) for _ in range(3)]
    assert kinds == [flat.MatchConfiguration, flat.ControllableTeamInfo, flat.FieldInfo]


@pytest.mark.parametrize(
    ("standing", "seated"),
    [(Standing.SAME_USER, True), (Standing.OTHER_MACHINE, True), (Standing.STRANGER, False)],
)
def test_a_seat_of_a_bot_started_by_hand_is_for_this_user(standing, seated, monkeypatch):
    with guarded_lobby(monkeypatch, standing, run_command="") as lobby:
        join(lobby, agent())
        assert takes_seat(lobby) is seated


@pytest.mark.parametrize(("standing", "obeyed"), [(Standing.OWN, True), (Standing.SAME_USER, False)])
def test_orders_of_strangers_are_ignored_with_a_warning(standing, obeyed, monkeypatch, caplog):
    states: list[object] = []
    with guarded_lobby(monkeypatch, standing) as lobby:
        lobby.orders.sets_states = True
        lobby.orders.take_state = lambda state: states.append(state) or True
        join(lobby, flat.DesiredGameState(), flat.StopCommand())
        assert (lobby.orders.latest is not None, len(states)) == (obeyed, int(obeyed))
    warned = [one.getMessage() for one in caplog.records if "ignored" in one.getMessage()]
    assert len(warned) == (0 if obeyed else 2)


@pytest.mark.parametrize(("standing", "obeyed"), [(Standing.OWN, True), (Standing.SAME_USER, False)])
def test_a_stranger_sets_no_loadout_in_play(standing, obeyed, monkeypatch, caplog):
    calls: list[tuple[int, int]] = []
    roster = seat_players(match_of(player(0), enable_state_setting=True))
    with guarded_lobby(monkeypatch, standing) as lobby:
        lobby.open_match(roster)
        loadouts = Loadouts(roster, lambda *call: calls.append(call), lobby.admission, int)
        lobby.clients.handlers.update(loadouts.handlers)
        dominus = flat.SetLoadout(0, flat.PlayerLoadout(car_id=403))
        join(lobby, flat.ConnectionSettings(""), flat.InitComplete(), dominus)
    assert calls == [(0, 1)] * obeyed
    assert ("sets a loadout: ignored, expected that of a process" in caplog.text) is not obeyed


def started(seats: list[AgentSeat], number: int) -> BotProcess:
    """Return a bot process as the match has started it, with this number and mark."""
    return BotProcess(seats, Path(), SimpleNamespace(pid=number), mark=f"{callers.MARK}/{number}")  # type: ignore[arg-type]


@contextmanager
def two_bots(monkeypatch: pytest.MonkeyPatch, caller: list[Caller], ids: Sequence[str]) -> Iterator[Lobby]:
    """Open the lobby of a match that has started process 100 for blue and 200 for orange."""
    with guarded_lobby(monkeypatch, Standing.OWN) as lobby:
        monkeypatch.setattr(
            "rlgym_bridge.server.net.admission.find_own", lambda wanted: dict.fromkeys(wanted, caller[0])
        )
        roster = seat_players(match_of(player(0, agent_id=ids[0]), player(1, agent_id=ids[1])))
        lobby.open_match(roster)
        lobby.admission.processes = [started([seat], 100 + 100 * seat.index) for seat in roster.cars]
        yield lobby


@pytest.mark.parametrize(
    "caller",
    [
        Caller(Standing.OWN, "", (102, 101, 100, 1)),
        Caller(Standing.OWN, "", (777,), f"{callers.MARK}/100"),  # its parents have ended
    ],
)
def test_a_bot_gets_its_own_car_and_not_its_opponents(caller, monkeypatch, caplog):
    with two_bots(monkeypatch, [caller], ["test/mine", "test/theirs"]) as lobby:
        crowd = [join(lobby, agent(whose)) for whose in ("theirs", "mine")]
        assert len(crowd) == 2 and [[seat.index for seat in one.seats] for one in lobby.clients.everyone] == [
            [],
            [0],
        ]
        assert [one.foreign_ids for one in lobby.admission.processes] == [["test/theirs"], []]
    assert "asks for 'Bot (2)' (agent_id 'test/theirs', orange): refused" in caplog.text


def test_a_bot_that_plays_its_twin_gets_one_car(monkeypatch):
    caller = [Caller(Standing.OWN, "", (100,))]
    with two_bots(monkeypatch, caller, ["test/twin", "test/twin"]) as lobby:
        crowd = [join(lobby, agent("twin")) for _ in range(2)]
        caller[0] = Caller(Standing.OWN, "", (200,))
        crowd.append(join(lobby, agent("twin")))
        assert len(crowd) == 3 and [[seat.index for seat in one.seats] for one in lobby.clients.everyone] == [
            [0],
            [],
            [1],
        ]
        assert not any(one.foreign_ids for one in lobby.admission.processes)


@pytest.mark.parametrize(
    ("caller", "seated"),
    [
        (Caller(Standing.OWN, "", (777, 1)), False),  # without parents and mark it may be of any bot
        (Caller(Standing.OWN, "", (os.getpid(), 1)), True),
        (Caller(Standing.UNKNOWN), True),
    ],
)
def test_a_car_is_for_its_bot_or_for_this_process(caller, seated, monkeypatch):
    with two_bots(monkeypatch, [caller], ["test/mine", "test/theirs"]) as lobby:
        client = join(lobby, agent("theirs"))
        assert takes_seat(lobby) is seated and client.receive()


def test_a_bot_that_connects_as_its_opponent_gets_no_car():
    match = match_of(player(0, "thief", "Thief"), player(1, name="Victim"))
    thief, victim = result_of(match, seconds=1.0, max_overtime=0.1, max_kickoff=2.0).bots
    assert thief.foreign_ids == ("test/ball",) and "connected as 'test/ball' too" in thief.troubles
    assert find_troubles(thief, BotReport(missed=0)) == ["connected as 'test/ball' too"]
    assert victim.troubles == () and victim.replies > 100 and victim.boost_used > 0


def test_a_server_for_match_managers_looks_at_nobody(monkeypatch):
    with guarded_lobby(monkeypatch, Standing.STRANGER) as lobby:
        lobby.admission.is_guarded = False
        join(lobby, agent(), flat.StopCommand())
        assert takes_seat(lobby) and lobby.orders.latest is not None
        assert lobby.admission._near is None


def test_those_who_have_gone_are_not_looked_for(monkeypatch):
    go_on = threading.Event()
    searched: list[Any] = []

    def find_own(wanted: Any) -> dict[Any, Caller]:
        searched.append(wanted)
        go_on.wait(5.0)
        return {}

    with guarded_lobby(monkeypatch, Standing.SAME_USER) as lobby:
        monkeypatch.setattr("rlgym_bridge.server.net.admission.find_own", find_own)
        crowd = [RawClient(lobby.clients.listener.getsockname()[1]) for _ in range(12)]
        for client in crowd:
            client.send(agent())
        while len(lobby.admission._waiting) < len(crowd) or not searched:
            lobby.clients.pump(0.01)
        for client in crowd[1:-1]:
            client.socket.close()
        while len(lobby.clients.everyone) > 2:
            lobby.clients.pump(0.01)
        go_on.set()
        while lobby.admission._waiting:
            lobby.clients.pump(0.01)
    assert len(searched) == 2


@contextmanager
def accepted_from(command: str, parent_ends: bool = False) -> Iterator[socket.socket]:
    """Yield the server's end of a connection that another process makes, or its child once it has ended."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20.0)
        port = str(server.getsockname()[1])
        with child([sys.executable, "-c", command, port]) as process:
            connection, _ = server.accept()
            with connection:
                if parent_ends:
                    process.wait(20.0)
                yield connection


def test_a_connection_is_traced_to_a_process_that_was_started():
    with accepted_from(_CONNECT) as connection:
        ends = ends_of(connection)
        nowhere = (("192.0.2.7", 1234), ends[1])
        all_found, searched = find_own({ends, nowhere}), find_caller(ends)
    assert set(all_found) == {ends}
    found = all_found[ends]
    assert found.standing is searched.standing is Standing.OWN
    assert "process " in found.process


@pytest.mark.parametrize(("marked", "standing"), [(True, Standing.OWN), (False, Standing.SAME_USER)])
def test_a_bot_whose_parents_have_ended_is_known_by_its_mark(marked, standing, monkeypatch):
    if marked:
        monkeypatch.setenv(callers.MARK_VARIABLE, callers.MARK)
    with accepted_from(_DAEMON, parent_ends=True) as connection:
        ends = ends_of(connection)
        assert find_own({ends}) == {} and find_caller(ends).standing is standing


def test_a_connection_from_nowhere_here_is_of_another_machine(monkeypatch):
    def refuse(_: str) -> None:
        raise NotImplementedError

    here = (("127.0.0.1", 1), ("127.0.0.1", 2))
    assert find_caller((("192.0.2.7", 1234), ("192.0.2.1", 23234))).standing is Standing.OTHER_MACHINE
    assert find_caller(here).standing is Standing.STRANGER
    monkeypatch.setattr(callers.psutil, "net_connections", refuse)
    assert find_caller(here).standing is Standing.UNKNOWN


def test_a_client_that_asks_often_takes_little_memory():
    admission = Admission(lambda connection, heard: None)
    admission.is_guarded = True
    near, far = socket.socketpair()
    client = Client(type("Link", (), {"socket": near, "name": "x"})())  # type: ignore[arg-type]
    admission._waiting[client] = []
    for _ in range(1000):
        assert not admission.knows(client, lambda: None)
    assert len(admission._waiting[client]) == 8
    near.close()
    far.close()
