"""`--server rlbot` with servers that misbehave: every command ends, and says which server it was."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from unittest.mock import Mock

import pytest
from rlbot import flat
from rlbot.managers import MatchManager

from rlgym_bridge.cli import main
from rlgym_bridge.live.agent_connections import is_own_server
from rlgym_bridge.trials.measured_match import running_server
from tests.support.servers import match_server

Serve = Callable[[socket.socket], None]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Serve], str]]:
    """Returns a function that has a server treat its connections in some way, and returns its address."""
    open_ones: list[socket.socket] = []

    def start(serve: Serve) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        open_ones.append(listener)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    open_ones.append(connection)
                    serve(connection)
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        ip, port = listener.getsockname()
        monkeypatch.setenv("RLBOT_SERVER_IP", ip)
        monkeypatch.setenv("RLBOT_SERVER_PORT", str(port))
        return f"{ip}:{port}"

    for module in ("real_match", "measured_match"):  # in this order: the first takes the second's
        monkeypatch.setattr(f"rlgym_bridge.trials.{module}.START_SECONDS", 0.5)
    yield start
    for one in open_ones:
        one.close()


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(2, "big") + payload


def complaints(caplog: pytest.LogCaptureFixture) -> int:
    return sum("undecodable message" in record.message for record in caplog.records)


GARBAGE = framed(b"\xff" * 300)
MATCH = framed(flat.CorePacket(flat.MatchConfiguration()).pack())


def gives_no_car(connection: socket.socket) -> None:
    connection.sendall(MATCH)


def floods(connection: socket.socket) -> None:
    def send() -> None:
        try:
            while True:
                connection.sendall(GARBAGE * 20)
        except OSError:
            pass

    threading.Thread(target=send, daemon=True).start()


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        (lambda _: None, "did not accept the match within 0.5 s"),
        (lambda connection: connection.close(), "Restart RLBotServer and try again"),
        (lambda connection: connection.sendall(GARBAGE), "or cannot be understood"),
        (gives_no_car, "the server gave it no car; is Rocket League running?"),
    ],
    ids=["silent", "closes", "garbage", "no car"],
)
def test_the_probe_ends_with_every_server_and_names_it(
    serve: Serve, message: str, played: Callable[[Serve], str], capsys: pytest.CaptureFixture[str]
) -> None:
    address = played(serve)
    assert main(["probe", "--server", "rlbot"]) == 2
    said = capsys.readouterr().err
    assert message in said and address in said
    alive = [one.name for one in threading.enumerate() if not one.daemon]
    assert alive == [threading.main_thread().name]


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        (lambda _: None, "sent no packet for 0.5 s"),
        (lambda connection: connection.close(), "went away"),
        (floods, "sent no packet for 0.5 s"),
    ],
    ids=["silent", "closes", "garbage"],
)
def test_a_server_without_packets_is_given_up_by_address(
    serve: Serve, message: str, played: Callable[[Serve], str], capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    address = played(serve)
    began = time.monotonic()
    assert main(["match", "--server", "rlbot", "--blue", "chaser", "--orange", "chaser"]) == 2
    said = capsys.readouterr().err
    assert message in said and address in said
    assert complaints(caplog) <= time.monotonic() - began + 1


def test_a_server_that_reads_nothing_is_not_called_silent(
    played: Callable[[Serve], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = played(lambda _: None)
    unread = TimeoutError("the server has not read for 5 s")
    monkeypatch.setattr("rlgym_bridge.live.agent_connections.Connection.send", Mock(side_effect=unread))
    assert main(["match", "--server", "rlbot", "--blue", "chaser", "--orange", "chaser"]) == 2
    said = capsys.readouterr().err
    assert f"the RLBotServer at {address} went away: the server has not read for 5 s" in said


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_a_server_that_was_started_just_now_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLBOT_SERVER_PORT", str(a_free_port()))
    listening: list[socket.socket] = []

    def start(manager: MatchManager) -> None:
        manager.rlbot_server_port = port = a_free_port()
        later = threading.Timer(0.5, lambda: listening.append(socket.create_server(("127.0.0.1", port))))
        later.start()

    monkeypatch.setattr(MatchManager, "ensure_server_started", start)
    _, port = running_server()
    assert listening and port == listening[0].getsockname()[1]
    listening[0].close()


def test_a_started_server_that_never_listens_is_given_up(
    monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    port = a_free_port()
    monkeypatch.setenv("RLBOT_SERVER_PORT", str(port))
    monkeypatch.setattr("rlgym_bridge.trials.measured_match.LAUNCH_SECONDS", 0.3)
    monkeypatch.setattr(
        MatchManager, "ensure_server_started", lambda one: setattr(one, "rlbot_server_port", port)
    )
    said = refused("match", "--server", "rlbot", "--blue", "chaser", "--orange", "chaser")
    assert f"RLBotServer was started, but cannot be reached at 127.0.0.1:{port} within 0.3 s" in said


def test_of_a_flood_of_garbage_the_probe_logs_one_line_a_second(
    played: Callable[[Serve], str], caplog: pytest.LogCaptureFixture
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(MATCH)
        floods(connection)

    played(serve)
    began = time.monotonic()
    assert main(["probe", "--server", "rlbot"]) == 2
    assert 1 <= complaints(caplog) <= time.monotonic() - began + 1


@pytest.mark.parametrize("command", [["probe"], ["match", "--blue", "chaser", "--orange", "chaser"]])
@pytest.mark.parametrize("port", ["abc", "99999"])
def test_a_port_that_is_none_is_refused_by_name(
    command: list[str], port: str, monkeypatch: pytest.MonkeyPatch, refused
) -> None:
    monkeypatch.setenv("RLBOT_SERVER_PORT", port)
    said = refused(*command, "--server", "rlbot")
    assert f"RLBOT_SERVER_PORT is {port}, expected" in said.replace("'", "")


def answers_pings(connection: socket.socket) -> None:
    """As RLBotServer does: without the name of this project's server."""
    connection.recv(1 << 16)
    connection.sendall(framed(flat.CorePacket(flat.PingResponse(0)).pack()))


@pytest.mark.parametrize(
    "serve", [lambda _: None, lambda connection: connection.close(), floods, answers_pings]
)
def test_another_server_is_not_taken_for_this_projects_own(
    serve: Serve, played: Callable[[Serve], str]
) -> None:
    ip, port = played(serve).split(":")
    assert not is_own_server((ip, int(port)))


def test_the_own_server_is_known_and_says_what_it_does_not_play(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("real_match", "measured_match"):
        monkeypatch.setattr(f"rlgym_bridge.trials.{module}.OWN_SECONDS", 0.5)
    with match_server() as port:
        assert is_own_server(("127.0.0.1", port))
        monkeypatch.setenv("RLBOT_SERVER_PORT", str(port))
        words = ["match", "--server", "rlbot", "--blue", "chaser", "--orange", "psyonix:allstar"]
        assert main(words) == 2
    said = capsys.readouterr().err
    own = f"the server at 127.0.0.1:{port} did not take the match: it is this project's own match server"
    assert own in said and "plays no Psyonix bots" in said
