"""Lockstep waits for scripts: for what they answer, and until they have read, where the system tells."""

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rlbot import flat

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server import MatchServer, ServerError
from rlgym_bridge.server.game.packer import framed
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net import wire
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.pace import Lockstep
from tests.support.raw_client import RawClient, agent, connect, settle
from tests.support.short_waits import shorten_answer_wait, shorten_countdown
from tests.support.stepped_match import match_of, player

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


@pytest.fixture(autouse=True)
def countdowns_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_countdown(monkeypatch)


@pytest.fixture
def stage(lobby: Lobby) -> Stage:
    return Stage(lobby)


@tells
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_system_counts_the_bytes_that_a_client_has_not_read(host: str) -> None:
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


def test_lockstep_waits_for_the_message_of_a_script(stage: Stage) -> None:
    for _ in range(5):
        assert stage.tick(answer, after=0.05) >= 0.05


@tells
def test_lockstep_waits_until_a_silent_script_has_read(stage: Stage) -> None:
    for _ in range(3):
        stage.tick(read)  # lockstep learns that it sends nothing
    for _ in range(5):
        assert stage.tick(read, after=0.05) >= 0.05


@tells
def test_a_silent_script_that_reads_holds_nobody_up(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        assert stage.tick(read) > 0.9 * 0.1
    assert min(stage.tick(read) for _ in range(20)) < 0.5 * 0.1
    assert not caplog.records


@tells
def test_a_script_that_misses_three_packets_is_left_behind(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_log_says_where_nobody_waits_for_a_script(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_script_that_leaves_while_it_is_awaited_ends_the_wait(stage: Stage) -> None:
    stage.tick(answer)
    assert stage.tick(lambda script: script.socket.close(), after=0.05) < 1.0
    assert min(stage.tick() for _ in range(3)) < 0.1


def played_with(code: str, folder: Path) -> tuple[list[flat.GamePacket], tuple[str, ...]]:
    """Play a match with a script in lockstep; return its packets and why it cannot be repeated."""
    (folder / "script.py").write_text(code)
    script = flat.ScriptConfiguration("Script", str(folder), "python script.py", agent_id="test/script")
    match = match_of(player(0), player(1), script_configurations=[script], enable_state_setting=True)
    packets: list[bytes] = []
    with MatchServer(
        pace="lockstep",
        seconds=1.0,
        max_kickoff=1.0,
        max_overtime=0.1,
        log_dir=folder,
        on_packet=packets.append,
    ) as server:
        result = server.play(match)
    return [flat.CorePacket.unpack(packet).message for packet in packets], result.unrepeatable


@tells
def test_a_script_that_works_for_5_ms_sees_nearly_all_packets(tmp_path: Path) -> None:
    packets, unrepeatable = played_with(LINGERING, tmp_path)
    frames = set((tmp_path / "frames").read_text().split())
    assert len(frames) > 0.8 * len(packets)  # rlbot's loop may drop one on a busy machine
    assert unrepeatable == ()


@pytest.mark.odd_packets("the script sets boost in the countdown")
def test_a_state_that_a_script_sets_acts_in_the_next_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.server.bot_account._FIRST_WORD_SECONDS", 10.0)
    packets, unrepeatable = played_with(SETTING, tmp_path)
    countdown = [one for one in packets if one.match_info.match_phase == flat.MatchPhase.Countdown]
    boosts = [round(packet.players[0].boost) for packet in countdown]
    assert boosts[1:] == [packet.match_info.frame_num % 100 for packet in countdown[:-1]]
    assert unrepeatable == ()
