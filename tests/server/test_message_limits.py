"""Whatever clients send, decoding it takes little, and the server's log stays short."""

import logging

import pytest
from rlbot import flat

from rlgym_bridge.live.agent_connections import message_of
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.server import client_log
from rlgym_bridge.server.client_log import begin_limits, end_limits
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.user_input.message_limits import FROM_SERVER, TO_SERVER, check_message, kind_of
from tests.support import made_packets
from tests.support.made_packets import at
from tests.support.made_recordings import recording_bytes
from tests.support.raw_client import RawClient, connect, settle
from tests.support.shared_messages import Fields, Many, match_bomb, packed
from tests.support.stepped_match import match_of, player

_AT_ONCE = 20


@pytest.fixture
def clock(monkeypatch):
    """Stop the clock of the log's limits; a test moves it on."""
    now = [0.0]
    monkeypatch.setattr(client_log.time, "monotonic", lambda: now[0])
    begin_limits()
    yield now
    end_limits()


@pytest.fixture(autouse=True)
def all_is_written(caplog):
    caplog.set_level(logging.INFO, "rlgym_bridge")


def lines(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [one.getMessage() for one in caplog.records if words in one.getMessage()]


def test_a_repeated_line_is_counted_and_not_written(clock, caplog):
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


def test_a_long_text_is_cut_and_what_follows_it_stays(clock, caplog):
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
def test_a_flood_of_long_messages_writes_few_short_lines(words, messages, lobby, clock, caplog):
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


def with_size(payload):
    return len(payload).to_bytes(2, "big") + payload


def test_a_match_of_16_million_variables_is_refused(lobby, caplog):
    bomb = match_bomb(3, 4000)
    assert 30_000 < len(bomb) < 65_536
    client = connect(lobby)
    quiet = connect(lobby, flat.PingRequest(cookie=7))
    client.socket.sendall(with_size(bomb))
    settle(lobby)
    assert client.receive() is None and quiet.receive().cookie == 7
    assert "it has more than 2,000 parts" in caplog.text


def test_a_bot_does_not_decode_a_servers_bomb(caplog):
    assert message_of(match_bomb(4, 4000)) is None
    assert "it has more than 2,000 parts" in caplog.text


@pytest.mark.parametrize(("slot", "most"), [(0, 254), (1, 254)])
def test_a_state_of_too_many_balls_or_cars_is_refused(slot, most):
    def message(count):
        entry = Fields({0: Fields()})
        lists = {0: Many(entry, 0), 1: Many(entry, 0)} | {slot: Many(entry, count)}
        return packed(Fields({0: 5, 1: Fields(lists)}))

    check_message(message(most - 1), TO_SERVER)
    with pytest.raises(ValueError, match=r"more than 256 parts"):
        check_message(message(most), TO_SERVER)


def test_a_small_bomb_of_long_texts_is_refused():
    with pytest.raises(ValueError, match=r"texts of more than|more than 2,000 parts"):
        check_message(match_bomb(3, 44), TO_SERVER)
    check_message(match_bomb(3, 20), TO_SERVER)
    assert flat.InterfacePacket.unpack(match_bomb(3, 20)).message.script_configurations[19].environment


def test_drawings_are_not_decoded_and_keep_their_client(lobby):
    client = connect(lobby)
    client.socket.sendall(with_size(packed(Fields({0: 6, 1: Fields()})) + bytes(60_000)))
    client.send(flat.PingRequest(cookie=3))
    settle(lobby)
    assert client.receive().cookie == 3


def test_usual_messages_are_of_the_kinds_that_are_checked():
    variables = [flat.EnvironmentVariable("k", "v")]
    bot = flat.CustomBot("n", "r", "c", flat.PlayerLoadout(), "a/b", False, variables)
    humans = [flat.Human(), flat.PsyonixBot("p", flat.PlayerLoadout())]
    players = [flat.PlayerConfiguration(one, 0) for one in (bot, *humans)]
    script = flat.ScriptConfiguration("n", "r", "c", 1, "a/b", variables)
    match = flat.MatchConfiguration(player_configurations=players, script_configurations=[script])
    state = flat.DesiredGameState([flat.DesiredBallState(flat.DesiredPhysics())], [flat.DesiredCarState()])
    for message, kind in ((match, 3), (state, 5), (flat.RenderGroup(), 6)):
        sent = flat.InterfacePacket(message).pack()
        assert kind_of(sent) == kind
        check_message(sent, TO_SERVER)
    packet = at(1, 3, *(made_packets.player(player_id=car) for car in range(8)))
    for message, kind in ((packet, 2), (flat.FieldInfo(), 3), (match, 4)):
        sent = flat.CorePacket(message).pack()
        assert kind_of(sent) == kind
        check_message(sent, FROM_SERVER)


@pytest.mark.parametrize("length", [0, 3, 5, 12, 40])
def test_a_message_that_is_cut_is_refused(length):
    with pytest.raises(ValueError, match=r"its parts lie outside of it"):
        check_message(match_bomb(3, 20)[:length], TO_SERVER)


def test_a_recording_leaves_out_a_packet_of_too_many_parts(tmp_path):
    good = [flat.CorePacket(at(frame, 3, made_packets.player(player_id=7))).pack() for frame in range(1, 6)]
    file = tmp_path / "a.mcap"
    file.write_bytes(recording_bytes([*good, match_bomb(4, 4000)]))
    assert "1 packets cannot be read" in read_match(file, shadow=False).notes
