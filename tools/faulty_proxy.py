"""A proxy on loopback between a lockstep match and one client, with a fault on the way.

    match server - upstream - proxy - downstream - client under test
               \\- the other car, which this process drives: the match goes on whatever the client does

Where a client has no chance to answer, the proxy answers for it as the game would: with its last input.
"""

import select
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, TICK_SECONDS
from tests.support.raw_client import RawClient
from tools.stream_faults import Cut, StreamFault

PATIENCE: Final = 20.0
"""Seconds in which a client has to answer: then it hangs."""

NEUTRAL: Final = flat.ControllerState()


class Hangs(AssertionError):
    """The client did not answer in time."""


class Wire:
    """One end of a connection: messages in, bytes out, neither of which blocks."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        self.socket, self.closed = connection, False
        self._received, self._waiting = b"", b""

    def write(self, data: bytes) -> None:
        """Write data, and what waits from before, as far as the other end takes it."""
        self._waiting += data
        try:
            while self._waiting:
                self._waiting = self._waiting[self.socket.send(self._waiting) :]
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True

    def read(self, seconds: float = 0.0) -> list[bytes]:
        """Return the payloads that have come, waiting for the first at most this long."""
        self.write(b"")
        if not self.closed and select.select([self.socket], [], [], seconds)[0]:
            try:
                data = self.socket.recv(1 << 20)
            except OSError:
                data = b""
            self.closed = not data
            self._received += data
        payloads = list(messages_in(self._received))
        self._received = self._received[sum(2 + len(one) for one in payloads) :]
        return payloads

    def close(self) -> None:
        self.closed = True
        self.socket.close()


def messages_in(data: bytes) -> Iterator[bytes]:
    """Return the payloads of the whole messages at the beginning of some bytes."""
    while len(data) >= 2 and len(data) >= 2 + (size := int.from_bytes(data[:2], "big")):
        yield data[2 : 2 + size]
        data = data[2 + size :]


def to_server(message: object) -> bytes:
    """Pack a message for the server, length first."""
    payload = flat.InterfacePacket(message).pack()  # type: ignore[arg-type]
    return len(payload).to_bytes(2, "big") + payload


def content(payload: bytes) -> Any:
    """Return the message of a server that a payload holds."""
    return flat.CorePacket.unpack(payload).message


class OtherCar:
    """The car that this process drives, whose answers pace the match."""

    def __init__(self, port: int, agent_id: str) -> None:
        self._client = RawClient(port)
        self._client.socket.settimeout(60.0)
        self._client.send(flat.ConnectionSettings(agent_id, close_between_matches=True))
        self.index = 0
        while not isinstance(message := content(self._payload()), flat.FieldInfo):
            if isinstance(message, flat.ControllableTeamInfo):
                self.index = message.controllables[0].index
        self._client.send(flat.InitComplete())

    def _payload(self) -> bytes:
        header = self._client.exactly(2)
        assert header is not None, "the server has closed the connection"
        return self._client.exactly(int.from_bytes(header, "big"))

    def packet(self) -> flat.GamePacket:
        """Return the next packet of the match."""
        while not isinstance(message := content(self._payload()), flat.GamePacket):
            pass
        return message

    def answer(self) -> None:
        """Let the match go on."""
        self._client.send(flat.PlayerInput(self.index, NEUTRAL))

    def close(self) -> None:
        self._client.socket.close()


class FaultyProxy:
    """The way between one client and the match.

    Attributes:
        port: Where the client connects.
        delivered: Game packets that reached the client whole.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.delivered = 0
        self._up: Wire | None = None
        self._down: Wire | None = None
        self._ready = False
        self._packets: list[bytes] = []  # of the server, not yet taken
        self._held: list[bytes] = []
        self._inputs: dict[int, flat.ControllerState] = {}  # the last ones, by car of the server

    @property
    def is_connected(self) -> bool:
        """Tell whether a client is connected and ready."""
        return self._ready

    def connect(self, seconds: float = PATIENCE, client: Any = None) -> bool:
        """Pass on what both say until the client is ready or gone; return whether a client came."""
        self._listener.settimeout(max(seconds, 0.001))
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return False
        self._down = Wire(connection)
        self._up = Wire(socket.create_connection(("127.0.0.1", self._server_port)))
        self._packets, self._held = [], []
        deadline = time.monotonic() + PATIENCE
        while not self._ready and not self._down.closed and not self._up.closed:
            if time.monotonic() > deadline:
                raise Hangs("the client did not get ready")
            self._pass_down(self._up.read(0.002))
            for payload in self._down.read(0.002):
                self._up.write(len(payload).to_bytes(2, "big") + payload)
                kind = flat.InterfacePacket.unpack(payload).message
                self._ready |= isinstance(kind, flat.InitComplete)
        if not self._ready:
            self._pass_down(self._up.read(0.1))
            self.hang_up()
            return True
        self._up.write(to_server(flat.PingRequest(cookie=1)))  # its answer: the server knows all before it
        while not self._pass_down(self._up.read(0.1)):
            if time.monotonic() > deadline:
                raise Hangs("the server did not answer a ping")
        return True

    def _pass_down(self, payloads: list[bytes]) -> bool:
        """Hand messages of the server to the client, but for packets; tell whether the ping was answered."""
        assert self._down is not None
        answered = False
        for payload in payloads:
            message = content(payload)
            if isinstance(message, flat.GamePacket):
                self._packets.append(payload)
            elif isinstance(message, flat.PingResponse):
                answered = True
            else:
                self._down.write(len(payload).to_bytes(2, "big") + payload)
        return answered

    def pass_on(self) -> None:
        """Pass on what both ends say outside of ticks, such as goodbyes."""
        assert self._up is not None and self._down is not None
        self._pass_down(self._up.read(0.01))
        for payload in self._down.read(0.0):
            self._up.write(len(payload).to_bytes(2, "big") + payload)
        if self._up.closed or self._down.closed:
            self.hang_up()

    def hang_up(self) -> None:
        """Close both connections."""
        for wire in (self._up, self._down):
            if wire is not None:
                wire.close()
        self._up = self._down = None
        self._ready = False

    def close(self) -> None:
        """Close all."""
        self.hang_up()
        self._listener.close()

    def tick(
        self,
        packet: flat.GamePacket,
        ids: set[int],
        fault: StreamFault | None,
        number: int,
        client: Any,
        may_wait: bool = True,
    ) -> tuple[str, bool]:
        """Take a packet to the client, answers to the server; return their kind, and if it had no chance."""
        cars = {one.player_id: index for index, one in enumerate(packet.players) if one.player_id in ids}
        if not self._ready:
            self.connect(TICK_SECONDS)  # time goes on while nobody is there
            return "none", False
        assert self._up is not None and self._down is not None
        deadline = time.monotonic() + PATIENCE
        while not self._packets:
            self._pass_down(self._up.read(0.1))
            if client.ended or self._up.closed:  # it said goodbye
                self.hang_up()
                return "none", False
            if time.monotonic() > deadline:
                raise Hangs("the server sent the client no packet")
        message = self._packets.pop(0)
        message = len(message).to_bytes(2, "big") + message
        self._down.read()  # answers to earlier packets do not count
        try:
            writes = [message] if fault is None or fault.spoil is None else fault.spoil(
                number, self._held, message
            )  # fmt: skip
        except Cut as cut:
            self._down.write(cut.args[0])
            self.hang_up()
            return "none", True
        for data in writes:
            self._down.write(data)
        shown = [content(one) for one in messages_in(b"".join(writes))]
        shown = [one for one in shown if isinstance(one, flat.GamePacket)]
        self.delivered += len(shown)
        indices = [] if not shown else [
            one.player_id if one.player_id in ids else None for one in shown[-1].players
        ]  # fmt: skip
        expected = sum(one is not None for one in indices)
        answers = self._answers(expected, client if may_wait else None)
        if not self._down or self._down.closed:
            self.hang_up()
            return "none", False
        return self._judge(answers, indices, cars, ids, expected)

    def _answers(self, expected: int, client: Any) -> list[flat.PlayerInput]:
        """Return the client's inputs to one packet, waiting for as many as are expected."""
        assert self._up is not None and self._down is not None
        answers: list[flat.PlayerInput] = []
        deadline = time.monotonic() + PATIENCE
        while True:
            waits = client is not None and len(answers) < expected
            for payload in self._down.read(0.02 if waits else 0.0):
                message = flat.InterfacePacket.unpack(payload).message
                if isinstance(message, flat.PlayerInput):
                    answers.append(message)
                else:
                    self._up.write(len(payload).to_bytes(2, "big") + payload)
            if not waits or self._down.closed or client.ended or len(answers) >= expected:
                return answers
            if time.monotonic() > deadline:
                raise Hangs(f"the client did not answer within {PATIENCE:g} s")

    def _judge(
        self,
        answers: list[flat.PlayerInput],
        indices: list[int | None],
        cars: dict[int, int],
        ids: set[int],
        expected: int,
    ) -> tuple[str, bool]:
        """Send the server one input a car, and say what the client's were."""
        assert self._up is not None
        given, wrong = {}, False
        for answer in answers:
            index = answer.player_index
            owner = indices[index] if index < len(indices) else None
            wrong |= (bool(indices) and owner is None) or not is_possible(answer.controller_state)
            if owner is not None:
                given[owner] = answer.controller_state
        for player_id, car in cars.items():
            self._inputs[car] = given.get(player_id, self._inputs.get(car, NEUTRAL))
            self._up.write(to_server(flat.PlayerInput(car, self._inputs[car])))
        if wrong:
            return "wrong", False
        if len(given) < len(ids):
            return "none", expected < len(ids)
        return ("control" if all(one.throttle for one in given.values()) else "neutral"), False


def is_possible(controls: flat.ControllerState) -> bool:
    """Tell whether an input is in the range that the game takes."""
    axes = (controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll)
    return all(abs(axis) <= 1.0 for axis in axes)


def is_playing(packet: flat.GamePacket) -> bool:
    """Tell whether inputs move cars."""
    return int(packet.match_info.match_phase) in PLAYING_PHASES
