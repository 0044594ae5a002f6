"""Messages between bots: to all others, or to the team; in order; never before the first packet."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from rlbot import flat

from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net.lobby import Lobby
from tests.support.raw_client import RawClient, connect, heard, settle
from tests.support.shared_messages import Fields, Words, packed
from tests.support.stepped_match import match_of, player


@pytest.fixture
def open_match(lobby: Lobby) -> Lobby:
    """A lobby with a match of two against one, and a script."""
    script = flat.ScriptConfiguration(name="Talker", agent_id="test/script")
    players = [player(0, "first"), player(0, "second"), player(1, "third")]
    lobby.open_match(seat_players(match_of(*players, script_configurations=[script])))
    lobby.comms.open()
    return lobby


def listener(lobby: Lobby, kind: str = "", wants: bool = True, ready: bool = True) -> RawClient:
    settings = flat.ConnectionSettings(
        agent_id=f"test/{kind}" if kind else "", wants_ball_predictions=False, wants_comms=wants,
        close_between_matches=bool(kind),
    )  # fmt: skip
    client = connect(lobby, settings, *([flat.InitComplete()] if ready else []))
    for _ in range(3 if kind else 2):  # configuration, seat, field
        client.receive()
    return client


def comms(lobby: Lobby, client: RawClient) -> list[tuple[int, int, bool, str]]:
    """Return what a client was told of so far: index, team, team_only, text."""
    return [(one.index, one.team, one.team_only, one.display) for one in heard(lobby, client)]


def say(lobby: Lobby, client: RawClient, *texts: str, team: int = 0, team_only: bool = False) -> None:
    for text in texts:
        client.send(flat.MatchComm(0, team, team_only, text, b"plan"))
    settle(lobby)


@pytest.mark.protocol("comms.to-others")
def test_a_message_goes_to_all_but_its_sender_in_order(open_match):
    first, second, third = (listener(open_match, kind) for kind in ("first", "second", "third"))
    say(open_match, first, "hello", "again")
    assert comms(open_match, first) == []
    expected = [(0, 0, False, "hello"), (0, 0, False, "again")]
    assert comms(open_match, second) == comms(open_match, third) == expected


@pytest.mark.protocol("comms.team-only")
def test_a_message_for_the_team_stays_in_it(open_match):
    first, second, third = (listener(open_match, kind) for kind in ("first", "second", "third"))
    script = listener(open_match, "script")
    say(open_match, first, "mine", team_only=True)
    assert comms(open_match, second) == [(0, 0, True, "mine")]
    for other in (third, script):
        assert comms(open_match, other) == []


@pytest.mark.protocol("comms.managers")
@pytest.mark.parametrize("ready", [False, True])
def test_match_managers_get_every_message_ready_or_not(open_match, ready):
    manager, deaf = listener(open_match, ready=ready), listener(open_match, ready=ready, wants=False)
    first = listener(open_match, "first")
    say(open_match, first, "all")
    say(open_match, first, "mine", team_only=True)
    assert comms(open_match, manager) == [(0, 0, False, "all"), (0, 0, True, "mine")]
    assert comms(open_match, deaf) == []


@pytest.mark.protocol("comms.to-others")
@pytest.mark.parametrize("how", [{"ready": False}, {"wants": False}])
def test_a_bot_that_is_not_ready_or_wants_none_gets_no_messages(open_match, how):
    first, second = listener(open_match, "first"), listener(open_match, "second", **how)
    say(open_match, first, "hello")
    assert comms(open_match, second) == []


@pytest.mark.protocol("handshake.settings-needed")
def test_a_message_without_settings_goes_to_nobody(open_match, caplog):
    first, nameless = listener(open_match, "first"), connect(open_match)
    say(open_match, nameless, "who am I", "again")
    assert comms(open_match, first) == []
    assert caplog.text.count("sent MatchComm before ConnectionSettings: ignored") == 1


def test_a_manager_that_reads_late_gets_what_waits_for_it(open_match):
    manager = listener(open_match, ready=False)
    (known,) = open_match.clients.everyone
    known.link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    first, tick = listener(open_match, "first"), [0]
    open_match.comms.open(tick=lambda: tick[0])
    texts = [f"{number} " + "x" * 60_000 for number in range(40)]
    for text in texts:
        tick[0] += 64
        say(open_match, first, text)
    with ThreadPoolExecutor(1) as reader:
        got = reader.submit(lambda: [manager.receive().display for _ in texts])
        for _ in range(400):
            open_match.clients.pump(0.01)
            if got.done():
                break
        assert got.result(timeout=10) == texts


@pytest.mark.protocol("comms.team-filled-in")
def test_the_team_is_the_senders_own(open_match):
    _, third, script = (listener(open_match, kind) for kind in ("first", "third", "script"))
    say(open_match, third, "liar", team=0)
    say(open_match, script, "script", team=0)
    observer = listener(open_match)
    say(open_match, observer, "nobody", team=1, team_only=True)
    assert comms(open_match, script) == [(0, 1, False, "liar"), (0, 3, False, "nobody")]
    assert comms(open_match, third) == [(0, 2, False, "script"), (0, 3, False, "nobody")]


@pytest.mark.protocol("comms.before-first-packet")
def test_before_the_first_packet_messages_are_dropped(open_match, caplog):
    open_match.comms.close()
    first, second = listener(open_match, "first"), listener(open_match, "second")
    say(open_match, first, "early", "early")
    assert comms(open_match, second) == []
    assert caplog.text.count("sends a message to others before the first packet: ignored") == 1


@pytest.mark.protocol("comms.display")
def test_messages_are_recorded_and_shown_in_the_log(open_match, caplog):
    recorded: list[bytes] = []
    open_match.comms.open(recorded.append)
    caplog.set_level("INFO")
    say(open_match, listener(open_match, "first"), "gg")
    (message,) = (flat.CorePacket.unpack(payload).message for payload in recorded)
    assert isinstance(message, flat.MatchComm) and message.content == b"plan"
    assert "to all: gg" in caplog.text


def test_a_client_that_floods_is_heard_a_little_each_tick(open_match, caplog):
    tick, recorded = [0], []
    open_match.comms.open(recorded.append, lambda: tick[0])
    caplog.set_level("INFO")
    flooding, quiet = listener(open_match, "first"), listener(open_match, "third")
    for _ in range(20):
        flooding.send(flat.MatchComm(0, 0, False, "flood " * 500, bytes(20_000)))
    settle(open_match)
    before = sum(map(len, recorded))
    assert 2 * 65_535 - 23_000 < before <= 2 * 65_535
    assert caplog.text.count("more than 2048 bytes a tick: some are ignored") == 1
    say(open_match, quiet, "hello")
    assert b"hello" in recorded[-1]
    tick[0] = 32
    for _ in range(20):
        flooding.send(flat.MatchComm(0, 0, False, "flood " * 500, bytes(20_000)))
    settle(open_match)
    assert sum(map(len, recorded)) - before < 2048 * 32 + 23_000
    assert all(len(line) < 400 for line in caplog.text.splitlines())


def test_a_crowd_that_watches_silences_no_bot(open_match):
    recorded: list[bytes] = []
    open_match.comms.open(recorded.append)
    crowd = [listener(open_match) for _ in range(10)]
    bot = listener(open_match, "first")
    for one in crowd:
        for _ in range(3):
            one.send(flat.MatchComm(0, 0, False, "", bytes(50_000)))
    settle(open_match)
    assert sum(map(len, recorded)) <= 8 * 64 * 2048
    say(open_match, bot, "defend")
    assert b"defend" in recorded[-1]


def test_a_message_without_quick_chat_is_passed_on(open_match):
    first, second = listener(open_match, "first"), listener(open_match, "second")
    first.send(flat.MatchComm(content=b"plan"))
    settle(open_match)
    second.send(flat.PingRequest(cookie=1))
    settle(open_match)
    message = second.receive()
    assert isinstance(message, flat.MatchComm) and message.content == b"plan"


def test_the_log_has_few_lines_of_quick_chat(open_match, caplog):
    open_match.comms.open()
    caplog.set_level("INFO")
    say(open_match, listener(open_match, "first"), *["gg"] * 50)
    assert 1 <= caplog.text.count("to all: gg") <= 6


def test_a_message_that_grows_on_its_way_is_left_out(open_match, caplog):
    text = Words("x" * 33_000)
    grown = packed(Fields({0: 8, 1: Fields({3: text, 4: text})}))  # one text for display and content
    assert isinstance(flat.InterfacePacket.unpack(grown).message, flat.MatchComm)
    first, second = listener(open_match, "first"), listener(open_match, "second")
    first.socket.sendall(len(grown).to_bytes(2, "big") + grown)
    say(open_match, first, "hello")
    assert comms(open_match, second) == [(0, 0, False, "hello")]
    assert "a message of more than 65535 bytes: ignored" in caplog.text
