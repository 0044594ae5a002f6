"""Statements on connections, seats and the start of a match, as clients see them."""

import argparse
import socket
import threading
from collections.abc import Iterator

import pytest
from rlbot import flat

from rlgym_bridge.cli import server as server_command
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.game.packer import framed
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.orders import Loadouts
from tests.support.raw_client import RawClient, agent, connect, heard, settle
from tests.support.short_waits import shorten_farewell
from tests.support.stepped_match import match_of, player

OBSERVER = flat.ConnectionSettings(agent_id="", close_between_matches=False)


def kinds(lobby: Lobby, client: RawClient) -> list[str]:
    """Return the types of the messages that a client has been sent so far."""
    return [type(message).__name__ for message in heard(lobby, client)]


@pytest.mark.protocol("transport.no-delay")
def test_small_messages_leave_at_once(lobby):
    connect(lobby)
    (client,) = lobby.clients.everyone
    assert client.link.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.protocol("transport.port")
def test_the_port_is_rlbots_or_the_first_argument():
    parser = argparse.ArgumentParser()
    server_command.add_to(parser)
    assert [parser.parse_args(words).port for words in ([], ["4321"])] == [23234, 4321]


@pytest.mark.protocol("handshake.settings-needed")
def test_before_connection_settings_no_message_counts(lobby, caplog):
    roster = seat_players(match_of(player(0, "first"), player(1, "second"), enable_state_setting=True))
    lobby.open_match(roster)
    taken: list[int] = []
    lobby.orders.take_input = lambda car, _: not taken.append(car)
    loadouts = Loadouts(roster, lambda car, _: taken.append(car), lobby.admission, int)
    lobby.clients.handlers.update(loadouts.handlers)
    orders = [flat.InitComplete(), flat.PlayerInput(0, flat.ControllerState()), flat.SetLoadout(0)]
    client = connect(lobby, *orders, *orders)
    assert kinds(lobby, client) == [] and lobby.clients.audience == [] and taken == []
    for name in ("InitComplete", "PlayerInput", "SetLoadout"):
        assert caplog.text.count(f"sent {name} before ConnectionSettings: ignored") == 1
    client.send(OBSERVER, *orders)  # the same orders count from now on
    settle(lobby)
    assert len(lobby.clients.audience) == 1 and taken == [0, 0]


@pytest.mark.protocol("handshake.first-settings-count", "handshake.agent-id-trimmed")
def test_the_first_settings_count_spaces_do_not(lobby):
    lobby.open_match(seat_players(match_of(player(0, "first"), player(1, "second"))))
    spaced = flat.ConnectionSettings(agent_id=" test/second\n", close_between_matches=True)
    client = connect(lobby, spaced, agent("first"))
    assert kinds(lobby, client) == ["MatchConfiguration", "ControllableTeamInfo", "FieldInfo"]
    assert [seat.name for seat in lobby.missing()] == ["Bot", "Bot (2)"]
    client.send(flat.InitComplete())
    settle(lobby)
    assert [seat.name for seat in lobby.missing()] == ["Bot"]


@pytest.mark.protocol("handshake.one-configuration", "handshake.waits-for-match")
def test_a_connection_gets_the_configuration_of_one_match(lobby):
    roster = seat_players(match_of(player(0)))
    observer = connect(lobby, OBSERVER)
    lobby.open_match(roster)
    assert kinds(lobby, observer) == ["MatchConfiguration", "FieldInfo"]
    lobby.close_match()
    lobby.open_match(roster)
    assert kinds(lobby, observer) == []
    assert kinds(lobby, connect(lobby, OBSERVER)) == ["MatchConfiguration", "FieldInfo"]


@pytest.mark.protocol("handshake.script")
def test_a_script_has_team_2_and_its_place_among_scripts(lobby):
    scripts = [flat.ScriptConfiguration(name=name, agent_id=f"test/{name}") for name in ("one", "two")]
    lobby.open_match(seat_players(match_of(player(0), script_configurations=scripts)))
    client = connect(lobby, agent("two"))
    configuration, team = client.receive(), client.receive()
    (seat,) = team.controllables
    assert (team.team, seat.index) == (2, 1)
    assert seat.identifier == configuration.script_configurations[1].script_id


@pytest.mark.protocol("handshake.input-before-ready")
def test_an_input_counts_before_the_bot_is_ready(lobby):
    lobby.open_match(seat_players(match_of(player(0))))
    taken = []
    lobby.take_input = lambda index, controls: taken.append((index, controls.throttle)) or True
    connect(lobby, agent(), flat.PlayerInput(0, flat.ControllerState(throttle=1.0)))
    assert taken == [(0, 1.0)]


@pytest.mark.protocol("steady.prediction-wanted", "steady.prediction-first")
def test_who_wants_no_prediction_gets_none(lobby):
    lobby.open_match(seat_players(match_of(player(0), player(1))))
    wants = agent()
    wants.wants_ball_predictions = True
    reader, other = connect(lobby, wants, flat.InitComplete()), connect(lobby, agent(), flat.InitComplete())
    lobby.send_packet(framed(flat.GamePacket()), framed(flat.BallPrediction()))
    assert kinds(lobby, reader)[3:] == ["BallPrediction", "GamePacket"]
    assert kinds(lobby, other)[3:] == ["GamePacket"]


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, threading.Thread]]:
    """Port and thread of a server that plays the matches that clients start."""
    shorten_farewell(monkeypatch)
    with MatchServer() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.port, thread
        server.stop()
        thread.join(20.0)


def until(client: RawClient, kind: type) -> list[object]:
    """Return the messages of a client up to the first one of a kind, or to the end of its connection."""
    messages = [client.receive()]
    while messages[-1] is not None and not isinstance(messages[-1], kind):
        messages.append(client.receive())
    return messages


@pytest.mark.protocol(
    "match.start-closes-agents", "match.wait-for-agents", "match.shut-down", "close.goodbye",
    "ping.not-asked", "packet.players",
)  # fmt: skip
def test_a_match_waits_for_its_agents_and_closes_early_ones(serving):
    port, thread = serving
    observer, early = RawClient(port), RawClient(port)
    early.send(agent(), flat.PingRequest(1))
    assert early.receive().cookie == 1
    by_hand = [player(team, run_command="") for team in (0, 1)]
    observer.send(OBSERVER, flat.InitComplete(), match_of(*by_hand))
    assert until(early, flat.DisconnectSignal)[-1] is not None
    assert early.receive() is None
    assert [type(observer.receive()) for _ in range(2)] == [flat.MatchConfiguration, flat.FieldInfo]
    bots = [RawClient(port) for _ in by_hand]
    cars = []
    for bot in bots:
        observer.send(flat.PingRequest(2))
        assert observer.receive().cookie == 2  # no packet has come before
        bot.send(agent(), flat.InitComplete())
        cars.append(until(bot, flat.ControllableTeamInfo)[-1].controllables[0])
    packet = until(observer, flat.GamePacket)[-1]
    for car in cars:
        assert packet.players[car.index].player_id == car.identifier
    observer.send(flat.StopCommand(shutdown_server=True))
    kinds = {type(message) for message in until(bots[0], flat.DisconnectSignal)}
    assert kinds == {flat.FieldInfo, flat.GamePacket, flat.DisconnectSignal}
    thread.join(20.0)
    assert not thread.is_alive()
