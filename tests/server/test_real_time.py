"""In real time nothing of the server's own stands between a packet and its answers, or makes a tick late."""

import time
from types import SimpleNamespace

from rlgym_bridge.server.pace import Lockstep, RealTime


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

    lobby = SimpleNamespace(awaited=1, awaits_engine=False, send_due=lambda: float("inf"))
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


def test_in_lockstep_the_report_is_made_while_bots_decide():
    lobby, happened = scripted_lobby(answers_after=0)
    Lockstep().wait(lobby, time.perf_counter(), lambda: happened.append("report"))
    assert happened == ["report", "answers"]
