"""Connections: waiting for sockets, framing, bad bytes, clients that do not read, the handshake."""

import logging
import socket
import time
from collections.abc import Iterator
from selectors import EVENT_READ, EVENT_WRITE

import pytest
from rlbot import flat

from rlgym_bridge.server import MatchServer, ServerError
from rlgym_bridge.server.game.packer import framed
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net.wire import MAX_QUEUED, ClientLink, SocketEvents, WireError, listen
from tests.support.raw_client import agent, connect, settle
from tests.support.stepped_match import match_of, player

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
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
    sockets: SocketEvents, ends: Ends, timeout: float
) -> None:
    sockets.watch(ends[0], EVENT_READ, "us")
    assert sockets.wait(timeout) == []


def test_what_can_be_read_and_written_comes_with_its_owner(sockets: SocketEvents, ends: Ends) -> None:
    sockets.watch(ends[0], EVENT_READ, "us")
    ends[1].send(b"x")
    assert sockets.wait(1.0) == [("us", EVENT_READ)]
    sockets.watch(ends[0], EVENT_READ | EVENT_WRITE, "others")
    assert sockets.wait(1.0) == [("others", EVENT_READ | EVENT_WRITE)]
    sockets.watch(ends[0], EVENT_WRITE, "us")
    assert sockets.wait(1.0) == [("us", EVENT_WRITE)]


def test_a_closed_connection_can_be_read(sockets: SocketEvents, ends: Ends) -> None:
    sockets.watch(ends[0], EVENT_READ, "us")
    ends[1].close()
    ((owner, events),) = sockets.wait(1.0)
    assert owner == "us" and events & EVENT_READ


def test_a_socket_that_is_watched_no_more_is_silent(sockets: SocketEvents, ends: Ends) -> None:
    sockets.watch(ends[0], EVENT_READ, "us")
    assert sockets
    sockets.watch(ends[0], 0, "us")
    ends[1].send(b"x")
    assert not sockets and sockets.wait(0.0) == []


def pair():
    """A server's link and the client's socket at its other end."""
    listener = listen("127.0.0.1", 0)
    client = socket.create_connection(listener.getsockname(), timeout=5.0)
    listener.settimeout(5.0)
    connection, _ = listener.accept()
    listener.close()
    return ClientLink(connection, "client", set()), client


def read(link):
    time.sleep(0.05)
    link.read()
    messages = []
    while link.has_message:
        messages.append(link.take_message())
    return messages


@pytest.mark.protocol("transport.framing")
def test_messages_split_anywhere_and_sent_together_arrive_whole():
    link, client = pair()
    inputs = [flat.PlayerInput(index, flat.ControllerState(throttle=0.5)) for index in range(3)]
    stream = b"".join(
        len(payload).to_bytes(2, "big") + payload
        for payload in (flat.InterfacePacket(one).pack() for one in inputs)
    )
    for cut in (1, 2, 30, 61, 62, 63, 100):
        client.sendall(stream[:cut])
        first = read(link)
        client.sendall(stream[cut:])
        messages = first + read(link)
        assert [one.player_index for one in messages] == [0, 1, 2]


@pytest.mark.parametrize("payload", [b"", b"\0" * 64, b"\xff" * 40, bytes(range(200))])
def test_bytes_that_are_no_message_raise_and_say_who_sent_them(payload):
    link, client = pair()
    client.sendall(len(payload).to_bytes(2, "big") + payload)
    with pytest.raises(WireError, match=rf"client sent {len(payload)} bytes that are no RLBot v5 message"):
        read(link)


@pytest.mark.protocol("transport.largest-message")
def test_a_message_that_is_too_long_is_not_sent(caplog):
    assert framed(flat.MatchComm(0, 0, False, None, b"x" * 70_000)) == b""
    assert "not sent: a MatchComm of 70" in caplog.text


@pytest.mark.protocol("transport.slow-reader")
def test_a_client_that_does_not_read_loses_whole_messages():
    link, client = pair()
    link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    messages = [framed(flat.MatchComm(number, 0, False, None, b"x" * 20_000)) for number in range(1000)]
    for message in messages:
        link.send(message)
    # It has come here though nobody reads: it never waited.
    assert link.dropped > 0
    kept = len(messages) - link.dropped
    assert kept >= MAX_QUEUED
    received = b""
    client.settimeout(0.2)
    while len(received) < sum(map(len, messages[:kept])):
        link.flush()
        received += client.recv(1 << 20)
    newer = iter(messages)
    while received:  # those of a moment without room are missing, which need not be the last ones
        size = 2 + int.from_bytes(received[:2], "big")
        assert received[:size] in newer
        received = received[size:]


def test_an_address_or_port_that_cannot_be_used_is_named():
    with MatchServer() as server, pytest.raises(ServerError, match=rf"port {server.port} on 127.0.0.1 is in"):
        MatchServer(port=server.port)
    with pytest.raises(ServerError, match=r"cannot listen on 203.0.113.7 port 0"):
        MatchServer("203.0.113.7", 0)


@pytest.mark.protocol("handshake.match-config-first", "handshake.identifier")
def test_an_agent_is_sent_configuration_seat_and_field(lobby):
    lobby.open_match(seat_players(match_of(player(0, "other"), player(1))))
    client = connect(lobby, agent())
    configuration, team, field = client.receive(), client.receive(), client.receive()
    assert isinstance(configuration, flat.MatchConfiguration)
    assert isinstance(field, flat.FieldInfo)
    assert (team.team, [one.index for one in team.controllables]) == (1, [1])
    assert team.controllables[0].identifier == configuration.player_configurations[1].player_id


@pytest.mark.protocol("handshake.first-free-car", "handshake.unknown-agent")
def test_equal_agents_sit_in_the_order_they_came(lobby, caplog):
    lobby.open_match(seat_players(match_of(player(0), player(1))))
    indices = []
    first, second, third = (connect(lobby, agent()) for _ in range(3))
    for client in (first, second):
        client.receive()
        indices.append(client.receive().controllables[0].index)
    assert indices == [0, 1]
    assert [type(third.receive()), type(third.receive())] == [flat.MatchConfiguration, flat.FieldInfo]
    assert "no free seat for agent_id 'test/ball'" in caplog.text


@pytest.mark.protocol("handshake.hivemind")
def test_a_hivemind_gets_all_its_cars_of_one_team(lobby):
    cars = [player(team, "hive", hivemind=True) for team in (0, 1, 0, 1)]
    lobby.open_match(seat_players(match_of(*cars)))
    teams = []
    clients = [connect(lobby, agent("hive")) for _ in range(2)]
    for client in clients:
        client.receive()
        team = client.receive()
        teams.append((team.team, [one.index for one in team.controllables]))
    assert teams == [(0, [0, 2]), (1, [1, 3])]


@pytest.mark.protocol("handshake.reconnect")
def test_a_seat_is_free_again_when_its_agent_leaves(lobby):
    lobby.open_match(seat_players(match_of(player(0))))
    released = []
    lobby.release = released.append
    first = connect(lobby, agent(), flat.InitComplete())
    assert lobby.accounts[0].ready
    first.socket.close()
    settle(lobby)
    assert (lobby.accounts[0].ready, released) == (False, [0])
    second = connect(lobby, agent())
    second.receive()
    assert second.receive().controllables[0].index == 0


@pytest.mark.protocol("handshake.agent-must-close", "close.goodbye")
def test_an_agent_is_disconnected_between_matches(lobby):
    lobby.open_match(seat_players(match_of(player(0))))
    client = connect(lobby, agent(close=False))
    assert isinstance(client.receive(), flat.DisconnectSignal)
    assert client.receive() is None


@pytest.mark.protocol("handshake.ready", "handshake.observer")
def test_packets_go_to_those_who_are_ready_and_to_nobody_else(lobby):
    lobby.open_match(seat_players(match_of(player(0), player(1))))
    ready, waiting = connect(lobby, agent(), flat.InitComplete()), connect(lobby, agent())
    observer = connect(lobby, flat.ConnectionSettings(agent_id=""), flat.InitComplete())
    lobby.send_packet(framed(flat.GamePacket()))
    assert lobby.awaited == 1
    assert [type(ready.receive()).__name__ for _ in range(4)][-1] == "GamePacket"
    assert [type(observer.receive()).__name__ for _ in range(3)][-1] == "GamePacket"
    waiting.socket.settimeout(0.1)
    assert [type(waiting.receive()).__name__ for _ in range(3)][-1] == "FieldInfo"
    with pytest.raises(TimeoutError):
        waiting.receive()


@pytest.mark.protocol("inputs.foreign-car")
def test_an_input_for_somebody_elses_car_is_dropped(lobby, caplog):
    lobby.open_match(seat_players(match_of(player(0), player(1))))
    taken = []
    lobby.take_input = lambda index, _: taken.append(index) or True
    client = connect(lobby, agent(), flat.InitComplete())
    client.send(*[flat.PlayerInput(index, flat.ControllerState()) for index in (0, 1, 7)])
    settle(lobby)
    assert taken == [0]
    assert caplog.text.count("sent an input for car 1, which is not its own") == 1


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.protocol("inputs.foreign-car-state-setting")
def test_with_state_setting_every_client_drives_every_car(lobby, caplog, allowed):
    lobby.open_match(seat_players(match_of(player(0), player(1), enable_state_setting=allowed)))
    driven, by = [], []
    lobby.take_input = lambda *_: True
    lobby.orders.take_input = lambda car, controls: car < 2 and not driven.append((car, controls.throttle))
    lobby.orders.on_state = by.append
    client = connect(lobby, agent(), flat.InitComplete())
    lobby.send_packet(b"")
    client.send(flat.PlayerInput(1, flat.ControllerState(throttle=0.5)), flat.PlayerInput(7))
    settle(lobby)
    assert driven == ([(1, 0.5)] if allowed else []) and len(by) == len(driven)
    assert lobby.accounts[0].pending  # it has not answered for its own car
    assert f"an input for car {7 if allowed else 1}, which is not its own" in caplog.text


@pytest.mark.protocol("handshake.inputs-need-one")
def test_a_client_without_a_seat_is_named_once_in_the_log(lobby, caplog):
    lobby.open_match(seat_players(match_of(player(0))))
    connect(lobby, agent(), flat.InitComplete())
    stranger = connect(lobby, agent("other"), flat.InitComplete())
    for _ in range(3):
        stranger.send(
            flat.PlayerInput(0, flat.ControllerState()), flat.PlayerInput(1, flat.ControllerState())
        )
    settle(lobby)
    assert caplog.text.count("agent 'test/other' sent an input for car 0, which is not its own") == 1
    assert caplog.text.count("which is not its own") == 1


def test_a_seat_that_gets_free_goes_to_the_agent_that_waits(lobby):
    lobby.open_match(seat_players(match_of(player(0))))
    gone, waiting = connect(lobby, agent()), connect(lobby, agent())
    assert [type(waiting.receive()) for _ in range(2)] == [flat.MatchConfiguration, flat.FieldInfo]
    gone.socket.close()
    settle(lobby)
    assert [one.index for one in waiting.receive().controllables] == [0]
    waiting.send(flat.InitComplete())
    settle(lobby)
    assert not lobby.missing()


@pytest.mark.protocol("transport.undecodable")
def test_undecodable_bytes_cost_their_client_the_connection(lobby, caplog):
    lobby.open_match(seat_players(match_of(player(0), player(1))))
    good, bad = connect(lobby, agent(), flat.InitComplete()), connect(lobby, agent(), flat.InitComplete())
    bad.socket.sendall(b"\x00\x04junk")
    settle(lobby)
    assert [account.ready for account in lobby.accounts] == [True, False]
    assert "are no RLBot v5 message" in caplog.text
    lobby.send_packet(framed(flat.GamePacket()))
    assert [type(good.receive()).__name__ for _ in range(4)][-1] == "GamePacket"
    while bad.receive() is not None:
        pass


def test_a_message_that_fails_costs_its_client_the_connection(lobby, caplog):
    lobby.open_match(seat_players(match_of(player(0), player(1), enable_state_setting=True)))
    lobby.orders.take_state = lambda state: 1 / 0
    good, bad = (connect(lobby, agent(), flat.InitComplete()) for _ in range(2))
    bad.send(flat.DesiredGameState(), flat.DesiredGameState())
    settle(lobby)
    assert [account.ready for account in lobby.accounts] == [True, False]
    assert caplog.text.count("sent a DesiredGameState that failed") == 1
    assert "ZeroDivisionError" in caplog.text
    lobby.send_packet(framed(flat.GamePacket()))
    assert [type(good.receive()).__name__ for _ in range(4)][-1] == "GamePacket"


@pytest.mark.protocol("ping.answer", "transport.unknown-ignored", "handshake.orders-need-none")
def test_a_ping_is_answered_and_unknown_messages_ignored(lobby, caplog):
    client = connect(lobby, *[flat.ConsoleCommand(command="x")] * 2, flat.RemoveRenderGroup(3))
    client.send(flat.PingRequest(cookie=77))
    settle(lobby)
    assert client.receive().cookie == 77
    assert caplog.text.count("sends console commands (x): ignored, there is no game") == 1


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.protocol("handshake.orders-need-none", "match.start-file")
def test_clients_start_matches_on_a_server_without_one(lobby, takes, caplog):
    lobby.orders.read_match = (lambda _: match_of(player(0))) if takes else None
    connect(lobby, *[flat.StartCommand("match.toml"), match_of(player(0))] * 2)
    assert (lobby.orders.latest is not None) is takes
    assert caplog.text.count("starts another match: ignored") == (0 if takes else 1)
    connect(lobby, flat.StopCommand(shutdown_server=False))
    assert lobby.orders.latest.start is None


@pytest.mark.protocol("close.answer")
def test_a_goodbye_is_answered(lobby):
    client = connect(lobby, agent(), flat.DisconnectSignal())
    assert isinstance(client.receive(), flat.DisconnectSignal)
    assert client.receive() is None


def test_an_answer_counts_once_and_a_missing_one_is_late(lobby, caplog):
    caplog.set_level(logging.WARNING)
    lobby.open_match(seat_players(match_of(player(0))))
    lobby.take_input = lambda *_: True
    client = connect(lobby, agent(), flat.InitComplete())
    for answers in (1, 2, 0):
        lobby.send_packet(framed(flat.GamePacket()))
        client.send(*[flat.PlayerInput(0, flat.ControllerState())] * answers)
        settle(lobby)
        lobby.book_late()
    account = lobby.accounts[0]
    assert (account.replies, account.late, account.misses) == (2, 1, 1)


def test_after_three_misses_a_bot_is_waited_for_no_more(lobby):
    lobby.open_match(seat_players(match_of(player(0))))
    lobby.take_input = lambda *_: True
    client = connect(lobby, agent(), flat.InitComplete())
    awaited = []
    for _ in range(5):
        lobby.send_packet(framed(flat.GamePacket()))
        awaited.append(lobby.awaited)
        lobby.book_late()
    client.send(flat.PlayerInput(0, flat.ControllerState()))
    settle(lobby)
    lobby.send_packet(framed(flat.GamePacket()))
    assert [*awaited, lobby.awaited] == [1, 1, 1, 0, 0, 1]
