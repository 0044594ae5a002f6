"""Connect several agents of this process to a match, and configure matches whose cars it plays."""

import itertools
import logging
import os
import select
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Final

from rlbot import flat

from rlgym_bridge.game import ENGINE_AGENT
from rlgym_bridge.protocol_variant import OWN_SERVER
from rlgym_bridge.user_input.message_limits import check_from_server

_CHUNK: Final = 1 << 16
_SEND_SECONDS: Final = 5.0  # to wait for a server that does not read


def framed(message: object) -> bytes:
    """Return a message as it is sent: its length, and its flatbuffer."""
    payload = flat.InterfacePacket(message).pack()  # type: ignore[arg-type]
    return len(payload).to_bytes(2, "big") + payload


class Connection:
    """One connection to a server; an OSError says that it cannot be reached, or is broken."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._socket = socket.create_connection(server, timeout=5.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)  # with a timeout, each call would cost three system calls
        self._pending = bytearray()

    def send(self, *messages: object) -> None:
        """Send messages in one system call, see `send_bytes`."""
        self.send_bytes(b"".join(map(framed, messages)))

    def send_bytes(self, data: bytes) -> None:
        """Send messages as `framed` returns them; TimeoutError where the server has not read for 5 s."""
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                if not select.select([], [self._socket], [], _SEND_SECONDS)[1]:
                    raise TimeoutError(f"the server has not read for {_SEND_SECONDS:g} s") from None

    def receive(self, seconds: float) -> bytes | None:
        """Return the next message's payload, None where none came in time; EOFError if it was closed."""
        deadline = time.monotonic() + seconds
        while True:
            size = self._size()
            if len(self._pending) >= max(2, size):
                payload = bytes(self._pending[2:size])
                del self._pending[:size]
                return payload
            if not self._read(max(0.0, deadline - time.monotonic())):
                return None

    def until(self, deadline: float) -> Iterator[bytes]:
        """Yield the payloads that come until a time of `time.monotonic`; see `receive`."""
        while (left := deadline - time.monotonic()) > 0.0:
            if (payload := self.receive(left)) is not None:
                yield payload

    def receive_all(self) -> list[bytes]:
        """Return the payloads of all messages that have come, up to 64 kB of them, without waiting.

        An EOFError says that the server has closed the connection, and all was returned.
        """
        if len(self._pending) < 2 or len(self._pending) < self._size():
            self._read(0.0)
        payloads = []
        while len(self._pending) >= 2 and len(self._pending) >= (size := self._size()):
            payloads.append(bytes(self._pending[2:size]))
            del self._pending[:size]
        return payloads

    def fileno(self) -> int:
        """Return the socket's number, for `select`."""
        return self._socket.fileno()

    def _size(self) -> int:
        """Return the size of the message that has begun to come, with its length."""
        return int.from_bytes(self._pending[:2], "big") + 2

    def _read(self, seconds: float) -> bool:
        if seconds > 0.0 and not select.select([self._socket], [], [], seconds)[0]:
            return False
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        if not data:
            raise EOFError("it closed the connection")
        self._pending += data
        return True

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


_LOG = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.2
_GOODBYE_SECONDS: Final = 2.0
_PING_SECONDS: Final = 1.0  # in which this project's server answers a ping

OWN_SECONDS: Final = 10.0
"""In which this project's server takes a match, if it takes it at all; it has no game to start."""


class NoServer(Exception):
    """There is no server, or it does not let an agent play; the message says what was missing."""


def is_own_server(server: tuple[str, int]) -> bool:
    """Ping a server; return whether it is this project's match server, whose answer ends with its name."""
    deadline = time.monotonic() + _PING_SECONDS
    try:
        with closing(Connection(server)) as connection:
            connection.send(flat.PingRequest(0))
            return any(payload.endswith(OWN_SERVER.encode()) for payload in connection.until(deadline))
    except (EOFError, OSError):
        return False  # whoever uses it next says what is wrong with it


def start_match(server: tuple[str, int], match: flat.MatchConfiguration, patience: float) -> None:
    """Tell a server to begin a match, and wait for some seconds until it has accepted it; else NoServer."""
    deadline = time.monotonic() + patience
    where = f"{server[0]}:{server[1]}"
    try:
        connection = Connection(server)
    except OSError as error:
        raise NoServer(f"no RLBot server at {where}: {error}") from error
    try:
        connection.send(flat.ConnectionSettings("", False, False, False), match)
        for payload in connection.until(deadline):
            if isinstance(message_of(payload), flat.MatchConfiguration):
                connection.send(flat.DisconnectSignal())
                return
    except (EOFError, OSError) as error:
        raise NoServer(
            f"the server at {where} closed the connection before it accepted the match: {error}"
        ) from error
    finally:
        connection.close()
    raise NoServer(
        f"the server at {where} did not accept the match within {patience:g} s, or cannot be understood"
    )


_last_warning = -1.0  # time of the last log line about an undecodable message


def message_of(payload: bytes) -> object:
    """Unpack a message; None where it cannot be decoded, as for a message of an unknown kind."""
    global _last_warning
    try:
        check_from_server(payload)
        return flat.CorePacket.unpack(payload).message
    except ValueError as error:
        now = time.monotonic()
        if now - _last_warning >= 1.0:  # there may be thousands
            _last_warning = now
            _LOG.warning("undecodable message of %d bytes: %s", len(payload), error)
        return None


class AgentConnections:
    """The connections of several agents to one match, a car for each agent id.

    Each agent is waited for, with `patience` in seconds; NoServer says that the server did not accept all of
    them in time. `log` is called with the payload of every message that the first one receives.
    """

    def __init__(
        self,
        server: tuple[str, int],
        agents: Sequence[str],
        patience: float,
        log: Callable[[bytes], None] | None = None,
    ) -> None:
        self._log = log
        self._connections: list[Connection] = []
        self._selector = selectors.DefaultSelector()
        self._held: list[flat.PlayerInput] = []  # the latest input of each agent
        self._sent: list[bytes] = []  # the same, as it is sent
        self._goodbye = False
        self._newest, self._frame = b"", -1  # the first agent's newest packet
        self.ids: list[int] = []  # `player_id` of each agent's car
        self.field = flat.FieldInfo()
        self.match: flat.MatchConfiguration | None = None  # None where the server sent none
        try:
            for agent in agents:
                self.ids.append(self._take(server, agent, time.monotonic() + patience))
            self._sent = list(map(framed, self._held))
            for connection in self._connections:
                connection.send(flat.InitComplete())
        except OSError as error:
            self.close()
            raise NoServer(f"the server at {server[0]}:{server[1]} closed the connection: {error}") from error
        except BaseException:
            self.close()
            raise

    def _take(self, server: tuple[str, int], agent: str, deadline: float) -> int:
        """Connect one agent, again if the server disconnects it as a match begins; return its `player_id`."""
        why = "nothing listens there"
        while time.monotonic() < deadline:
            try:
                connection = Connection(server)
            except OSError as error:
                why = str(error)
                time.sleep(_RETRY_SECONDS)
                continue
            try:
                connection.send(flat.ConnectionSettings(agent, False, False, True))
                identifier = self._shake_hands(connection, deadline)
            except (EOFError, OSError) as error:
                connection.close()
                why = str(error)
                time.sleep(_RETRY_SECONDS)
                continue
            self._connections.append(connection)
            self._selector.register(connection, selectors.EVENT_READ)
            return identifier
        raise NoServer(f"no car for {agent} at {server[0]}:{server[1]}: {why}")

    def _shake_hands(self, connection: Connection, deadline: float) -> int:
        identifier: int | None = None
        field = False
        for payload in connection.until(deadline):
            if self._log is not None and not self._connections:
                self._log(payload)
            message = message_of(payload)
            if isinstance(message, flat.FieldInfo):
                self.field, field = message, True
            elif isinstance(message, flat.MatchConfiguration):
                self.match = message
            elif isinstance(message, flat.ControllableTeamInfo) and message.controllables:
                identifier = message.controllables[0].identifier
                self._held.append(flat.PlayerInput(message.controllables[0].index, flat.ControllerState()))
            elif isinstance(message, flat.DisconnectSignal):
                raise EOFError("the server said goodbye")
            if identifier is not None and field:
                return identifier
        raise EOFError("the server gave it no car" if identifier is None else "the server sent no field info")

    def packets(self, seconds: float) -> list[flat.GamePacket]:
        """Wait for packets; return all that the first agent has received, oldest first, at most 64 kB.

        An EOFError or OSError says that the server said goodbye, or that the connection is broken.
        """
        packets: list[flat.GamePacket] = []
        deadline = time.monotonic() + seconds
        while not packets and (left := deadline - time.monotonic()) > 0.0:
            ready = [key.fileobj for key, _ in self._selector.select(left)]
            try:
                self._take_packets(packets)
            except (EOFError, OSError):
                if not packets:
                    raise
                break  # return what came before; the next call raises
            others = [connection for connection in self._connections[1:] if connection in ready]
            if not packets:
                self._answer_others(others)
                continue
            for connection in others:  # what they received must not pile up: `answer` is for all
                with suppress(EOFError, OSError):  # a closed connection is reported when no packet comes
                    connection.receive_all()
        return packets

    def _take_packets(self, packets: list[flat.GamePacket]) -> None:
        if self._goodbye:
            raise EOFError("it said goodbye")
        for payload in self._connections[0].receive_all():
            if self._log is not None:
                self._log(payload)
            message = message_of(payload)
            if isinstance(message, flat.DisconnectSignal):
                self._goodbye = True
                raise EOFError("it said goodbye")
            if isinstance(message, flat.GamePacket):
                packets.append(message)
                self._newest, self._frame = payload, message.match_info.frame_num

    def _answer_others(self, connections: Sequence[Connection]) -> None:
        """Answer packets that only other agents received with their last input: lockstep waits for it.

        A server sends a packet to the first agent before the others; then `answer` is for all. No packet is
        answered twice: the server would count that as the answer to the next one.
        """
        for connection, held in zip(self._connections[1:], self._held[1:], strict=True):
            if connection not in connections:
                continue
            for payload in connection.receive_all():
                message = None if payload == self._newest else message_of(payload)
                if not isinstance(message, flat.GamePacket) or message.match_info.frame_num <= self._frame:
                    continue
                if any(key.fileobj is self._connections[0] for key, _ in self._selector.select(0.0)):
                    return
                connection.send(held)

    def answer(self, inputs: Sequence[flat.PlayerInput], *more: object) -> None:
        """Answer the newest packet, after more messages of the first agent.

        An input that is the object of the answer before is not packed again.
        """
        packed = [
            sent if given is held else framed(given)
            for given, held, sent in zip(inputs, self._held, self._sent, strict=True)
        ]
        self._held, self._sent = list(inputs), packed
        first = packed[0] if not more else b"".join((*map(framed, more), packed[0]))
        self._connections[0].send_bytes(first)
        for connection, data in zip(self._connections[1:], packed[1:], strict=True):
            connection.send_bytes(data)

    def send(self, message: object) -> None:
        """Send a message from the first agent."""
        self._connections[0].send(message)

    def stop_match(self) -> None:
        """Tell the server to end the match, and wait up to 2 s for its goodbye."""
        deadline = time.monotonic() + _GOODBYE_SECONDS
        with suppress(EOFError, OSError):
            self._connections[0].send(flat.StopCommand(False))
            for payload in self._connections[0].until(deadline):
                if isinstance(message_of(payload), flat.DisconnectSignal):
                    break

    def close(self) -> None:
        """Say goodbye and close all connections."""
        self._selector.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.send(flat.DisconnectSignal())
            connection.close()


_OCTANE: Final = 23  # `car_id` of a loadout
_NUMBERS: Final = itertools.count()  # of matches


def match_of(blue: int, orange: int) -> flat.MatchConfiguration:
    """Return an unlimited soccar match with state setting, whose cars, all Octanes, an engine plays."""
    if not (0 <= blue <= 4 and 0 <= orange <= 4 and blue + orange):
        raise ValueError(f"the match has {blue} blue and {orange} orange cars, expected 1 to 4 in a team")
    octane = flat.PlayerLoadout(car_id=_OCTANE)
    bots = [
        (team, flat.CustomBot(f"{name} {number}", agent_id=f"{ENGINE_AGENT}{name}-{number}", loadout=octane))
        for team, (name, size) in enumerate((("blue", blue), ("orange", orange)))
        for number in range(size)
    ]
    return flat.MatchConfiguration(
        game_map_upk="Stadium_P",
        player_configurations=[flat.PlayerConfiguration(bot, team) for team, bot in bots],
        auto_start_agents=True,
        wait_for_agents=True,
        skip_replays=True,
        enable_state_setting=True,
        mutators=flat.MutatorSettings(match_length=flat.MatchLengthMutator.Unlimited),
    )


def agents_of(match: flat.MatchConfiguration) -> list[str]:
    """Return the agent ids of a match's bots that the server does not start."""
    bots = [player.variety for player in match.player_configurations]
    return [bot.agent_id for bot in bots if isinstance(bot, flat.CustomBot) and not bot.run_command]


def with_own_ids(match: flat.MatchConfiguration) -> flat.MatchConfiguration:
    """Return a copy of a match in which bots without a run command have unique agent ids of an engine.

    A server confirms a new match while it still runs the last one: equal ids could get a car of the old one.
    """
    made = flat.MatchConfiguration.unpack(match.pack())
    token = f"{os.getpid()}-{next(_NUMBERS)}"
    for player in made.player_configurations:
        bot = player.variety
        if isinstance(bot, flat.CustomBot) and bot.agent_id and not bot.run_command:
            bot.agent_id = f"{ENGINE_AGENT}{bot.agent_id.removeprefix(ENGINE_AGENT)}-{token}"
    return made
