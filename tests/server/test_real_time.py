"""In real time nothing of the server's own stands between a packet and its answers, or makes a tick late."""

import math
import time
from types import SimpleNamespace

import pytest
from rlbot import flat

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server.net import clients as server_clients
from rlgym_bridge.server.net.pace import Lockstep, RealTime
from tests.support.raw_client import connect, settle


def test_a_flood_is_not_heard_when_the_tick_is_due(lobby, monkeypatch):
    monkeypatch.setattr(server_clients, "TICK_SECONDS", 1e6)  # ticks come by `begin_tick` alone
    handled = []
    lobby.clients.handlers[flat.PingRequest] = lambda client, message: handled.append(message.cookie)
    client = connect(lobby)
    lobby.clients.begin_tick()
    lobby.clients.hear_until = time.perf_counter()
    client.send(*(flat.PingRequest(cookie=cookie) for cookie in range(5)))
    for _ in range(5):
        lobby.clients.pump(0.001)
    assert not handled
    lobby.clients.begin_tick()
    settle(lobby)
    assert handled == list(range(5))


def test_answers_are_taken_even_when_the_tick_is_due(lobby, monkeypatch):
    monkeypatch.setattr(server_clients, "TICK_SECONDS", 1e6)
    heard = []
    lobby.clients.handlers[flat.PlayerInput] = lambda client, message: heard.append(message.player_index)
    client = connect(lobby)
    (served,) = lobby.clients.everyone
    served.cars = frozenset({0})
    lobby.clients.begin_tick()
    lobby.clients.hear_until = 0.0
    client.send(*[flat.PlayerInput(0, flat.ControllerState())] * 3)
    lobby.clients.pump(0.5)
    assert heard == [0]
    served.cars = frozenset()


def test_a_wait_hears_messages_until_shortly_before_the_tick(lobby, monkeypatch):
    heard_until = []
    monkeypatch.setattr(lobby.clients, "pump", lambda _: heard_until.append(lobby.clients.hear_until))
    began = time.perf_counter()
    RealTime().wait(lobby, began)
    (until,) = set(heard_until)
    assert until - began == pytest.approx(TICK_SECONDS - 0.0005, abs=1e-6)
    lobby.clients.begin_tick()
    assert lobby.clients.hear_until == math.inf


def scripted_lobby(answers_after: int) -> tuple[SimpleNamespace, list[str]]:
    """Return a lobby whose one bot answers in a certain wait for clients, and what happened so far."""
    happened: list[str] = []

    def pump(timeout: float) -> None:
        if lobby.awaited and happened.count("waits") == answers_after:
            lobby.awaited = 0
            happened.append("answers")
        elif timeout > 0.0:
            happened.append("waits")
            time.sleep(timeout)

    lobby = SimpleNamespace(
        awaited=1, has_skippers=False, send_due=lambda: float("inf"), wait_for_scripts=lambda: 0.0
    )
    lobby.clients, lobby.orders = SimpleNamespace(pump=pump), SimpleNamespace(latest=None)
    return lobby, happened


def test_the_report_waits_for_the_answers():
    lobby, happened = scripted_lobby(answers_after=0)
    RealTime().wait(lobby, time.perf_counter(), lambda: happened.append("report"))
    assert happened[:2] == ["answers", "report"] and happened.count("report") == 1


def test_the_report_waits_half_a_tick_for_silent_bots():
    lobby, _ = scripted_lobby(answers_after=99)
    began = time.perf_counter()
    after = []
    RealTime().wait(lobby, began, lambda: after.append(time.perf_counter() - began))
    assert len(after) == 1 and after[0] > 0.9 * 0.5 / 120


def test_a_server_that_is_behind_reports_all_the_same():
    lobby, happened = scripted_lobby(answers_after=0)
    pace = RealTime()
    pace.wait(lobby, time.perf_counter())
    lobby.awaited = 1
    pace.wait(lobby, time.perf_counter() + 0.2, lambda: happened.append("report"))
    assert happened.count("report") == 1


def test_a_server_that_is_behind_hears_what_has_come():
    lobby, happened = scripted_lobby(answers_after=0)
    pace = RealTime()
    pace.wait(lobby, time.perf_counter())
    time.sleep(0.04)
    for _ in range(3):  # of five ticks to catch up with
        happened.clear()
        lobby.awaited = 1
        pace.wait(lobby, time.perf_counter())
        assert happened == ["answers"]


def test_in_lockstep_the_report_is_made_while_bots_decide():
    lobby, happened = scripted_lobby(answers_after=0)
    Lockstep().wait(lobby, time.perf_counter(), lambda: happened.append("report"))
    assert happened == ["report", "answers"]


def test_a_tick_is_computed_ahead_where_all_have_answered():
    lobby, happened = scripted_lobby(answers_after=0)
    pace, began = RealTime(), time.perf_counter()
    due = began + TICK_SECONDS / 0.02
    pace.wait(lobby, began, speed=0.02, ahead=0.4)
    assert "answers" in happened and time.perf_counter() < due - 0.1
    pace.hold(lobby)
    assert time.perf_counter() >= due


def test_no_tick_is_computed_ahead_of_an_answer():
    lobby, _ = scripted_lobby(answers_after=99)
    pace, began = RealTime(), time.perf_counter()
    pace.wait(lobby, began, speed=0.1, ahead=0.08)
    assert time.perf_counter() >= began + TICK_SECONDS / 0.1
