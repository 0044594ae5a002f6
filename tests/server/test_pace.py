"""Ticks come by the clock, or when bots have answered and scripts have read."""

import logging
import math
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from rlbot import flat

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server import ServerError
from rlgym_bridge.server.game.packer import framed
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net import clients as server_clients
from rlgym_bridge.server.net import wire
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.pace import Lockstep, RealTime
from tests.support.raw_client import RawClient, agent, connect, settle
from tests.support.short_waits import shorten_answer_wait
from tests.support.stepped_match import match_of, player, result_of

pytestmark = pytest.mark.usefixtures("short_countdowns")


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


tells = pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell what was read")

LINGERING = """
import sys, time
from rlbot.managers import Script
class Lingering(Script):
    def handle_packet(self, packet):
        time.sleep(0.005)
        with open("frames", "a") as file:
            file.write(f"{packet.match_info.frame_num}\\n")
Lingering().run()
"""

SETTING = """
from rlbot import flat
from rlbot.managers import Script
class Setting(Script):
    def handle_packet(self, packet):
        car = flat.DesiredCarState(boost_amount=packet.match_info.frame_num % 100)
        self._game_interface.send_msg(flat.DesiredGameState(car_states=[car]))
Setting().run()
"""


class Stage:
    """A bot that answers at once, and a script."""

    def __init__(self, lobby: Lobby) -> None:
        """Seat both."""
        script = flat.ScriptConfiguration("Watch", agent_id="test/watch")
        lobby.open_match(seat_players(match_of(player(0), script_configurations=[script])))
        lobby.take_input = lambda *_: True
        self.lobby = lobby
        self.bot = connect(lobby, agent(), flat.InitComplete())
        self.script = connect(lobby, agent("watch"), flat.InitComplete())
        for client in (self.bot, self.script):
            for _ in range(3):  # configuration, seat, field
                client.receive()
        self.pace = Lockstep()

    def tick(self, then: Callable[[RawClient], None] = lambda script: None, after: float = 0.0) -> float:
        """Play a tick, in which the script does something so many seconds after the packet was sent.

        Returns:
            Seconds from the packet until time went on.
        """
        sent_at = self.lobby.send_packet(framed(flat.GamePacket()))
        self.bot.send(flat.PlayerInput(0, flat.ControllerState()))
        timer = threading.Timer(after, then, [self.script])
        timer.start()
        self.pace.wait(self.lobby, sent_at)
        seconds = time.perf_counter() - sent_at
        self.lobby.book_late()
        timer.join()
        return seconds


@pytest.fixture
def stage(lobby):
    return Stage(lobby)


@tells
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_system_counts_the_bytes_that_a_client_has_not_read(host):
    try:
        listener = wire.listen(host, 0)
    except ServerError:
        pytest.skip(f"this machine has no {host}")
    with listener, socket.create_connection(listener.getsockname()[:2]) as client:
        listener.setblocking(True)
        served, _ = listener.accept()
        with served:
            served.sendall(bytes(300))
            client.recv(100, socket.MSG_WAITALL)
            assert wire.count_unread(served) == 200
            client.recv(200, socket.MSG_WAITALL)
            assert wire.count_unread(served) == 0
        assert wire.count_unread(served) is None  # it is closed


def read(script: RawClient) -> None:
    script.receive()


def answer(script: RawClient) -> None:
    script.receive()
    script.send(flat.RemoveRenderGroup(0))


def test_lockstep_waits_for_the_message_of_a_script(stage):
    for _ in range(5):
        assert stage.tick(answer, after=0.05) >= 0.05


@tells
def test_lockstep_waits_until_a_silent_script_has_read(stage):
    for _ in range(3):
        stage.tick(read)  # lockstep learns that it sends nothing
    for _ in range(5):
        assert stage.tick(read, after=0.05) >= 0.05


@tells
def test_a_silent_script_that_reads_holds_nobody_up(stage, caplog):
    for _ in range(3):
        assert stage.tick(read) > 0.9 * 0.1
    assert min(stage.tick(read) for _ in range(20)) < 0.5 * 0.1
    assert not caplog.records


@tells
def test_a_script_that_misses_three_packets_is_left_behind(stage, caplog, monkeypatch):
    shorten_answer_wait(monkeypatch)
    for _ in range(3):
        assert stage.tick() > 0.9 * 0.3
    assert min(stage.tick() for _ in range(5)) < 0.5 * 0.3
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("lockstep goes on without script 'Watch' until it reads")
    for _ in range(8):
        read(stage.script)
    stage.tick(read)
    assert stage.tick(read, after=0.1) >= 0.1  # it reads again, and is waited for again


def test_the_log_says_where_nobody_waits_for_a_script(stage, caplog, monkeypatch):
    monkeypatch.setattr(wire, "count_unread", lambda connection: None)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert stage.tick() > 0.9 * 0.1
        assert min(stage.tick() for _ in range(10)) < 0.5 * 0.1
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("lockstep does not wait for script 'Watch': it sends nothing after packets")
    stage.script.send(flat.RemoveRenderGroup(0))
    settle(stage.lobby)
    assert stage.tick(answer, after=0.5 * TICK_SECONDS) > 0.4 * TICK_SECONDS  # it speaks after all


def test_a_script_that_leaves_while_it_is_awaited_ends_the_wait(stage):
    stage.tick(answer)
    assert stage.tick(lambda script: script.socket.close(), after=0.05) < 1.0
    assert min(stage.tick() for _ in range(3)) < 0.1


def played_with(code: str, folder: Path) -> tuple[list[flat.GamePacket], tuple[str, ...]]:
    """Play a match with a script in lockstep; return its packets and why it cannot be repeated."""
    (folder / "script.py").write_text(code)
    script = flat.ScriptConfiguration("Script", str(folder), "python script.py", agent_id="test/script")
    match = match_of(player(0), player(1), script_configurations=[script], enable_state_setting=True)
    packets: list[bytes] = []
    limits = {"seconds": 1.0, "max_kickoff": 1.0, "max_overtime": 0.1}
    result = result_of(match, log_dir=folder, on_packet=packets.append, **limits)
    return [flat.CorePacket.unpack(packet).message for packet in packets], result.unrepeatable


@tells
def test_a_script_that_works_for_5_ms_sees_nearly_all_packets(tmp_path):
    packets, unrepeatable = played_with(LINGERING, tmp_path)
    frames = set((tmp_path / "frames").read_text().split())
    assert len(frames) > 0.8 * len(packets)  # rlbot's loop may drop one on a busy machine
    assert unrepeatable == ()


@pytest.mark.odd_packets("the script sets boost in the countdown")
def test_a_state_that_a_script_sets_acts_in_the_next_packet(tmp_path, monkeypatch):
    monkeypatch.setattr("rlgym_bridge.server.bot_account._FIRST_WORD_SECONDS", 10.0)
    packets, unrepeatable = played_with(SETTING, tmp_path)
    countdown = [one for one in packets if one.match_info.match_phase == flat.MatchPhase.Countdown]
    boosts = [round(packet.players[0].boost) for packet in countdown]
    assert boosts[1:] == [packet.match_info.frame_num % 100 for packet in countdown[:-1]]
    assert unrepeatable == ()
