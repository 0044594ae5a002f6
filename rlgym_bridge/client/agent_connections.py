"""Seats in a match for which this process plays: a connection each, as RLBot has it for bots."""

import logging
import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from rlbot import flat

from rlgym_bridge.client.connection import Connection

_LOG = logging.getLogger(__name__)

_AT_ONCE: Final = 1000  # packets: whoever sends more has them taken in later
_RETRY_SECONDS: Final = 0.2
_GOODBYE_SECONDS: Final = 2.0


class NoServer(Exception):
    """There is no server, or it does not let one play; the message says what was missing."""


def start_match(server: tuple[str, int], match: flat.MatchConfiguration, patience: float) -> None:
    """Tell a server to begin a match, and wait until it has taken it.

    Args:
        server: Address and port.
        match: The match.
        patience: Seconds to wait.

    Raises:
        NoServer: There is none, or it did not take the match in time.
    """
    deadline = time.monotonic() + patience
    where = f"{server[0]}:{server[1]}"
    try:
        connection = Connection(server)
    except OSError as error:
        raise NoServer(f"no RLBot server at {where}: {error}") from error
    try:
        connection.send(flat.ConnectionSettings("", False, False, False), match)
        while (left := deadline - time.monotonic()) > 0.0:
            payload = connection.receive(left)
            if payload is not None and isinstance(message_of(payload), flat.MatchConfiguration):
                connection.send(flat.DisconnectSignal())
                return
    except (EOFError, OSError) as error:
        raise NoServer(f"the server at {where} went away before it took the match: {error}") from error
    finally:
        connection.close()
    raise NoServer(
        f"the server at {where} did not take the match within {patience:g} s, or sent what cannot be read"
    )


_complained = -1.0  # when it was last said that a message cannot be read


def message_of(payload: bytes) -> object:
    """Unpack a message; None where it cannot be read, as good as one of a kind that nobody knows."""
    global _complained
    try:
        return flat.CorePacket.unpack(payload).message
    except flat.InvalidFlatbuffer as error:
        now = time.monotonic()
        if now - _complained >= 1.0:  # there may be thousands
            _complained = now
            _LOG.warning("undecodable message of %d bytes: %s", len(payload), error)
        return None


class AgentConnections:
    """Takes the seats of some agents.

    Args:
        server: Address and port.
        agents: RLBot's agent ids, one a seat.
        patience: Seconds to wait for each.
        log: Given every message that the first seat gets, as on the wire.

    Attributes:
        ids: `player_id` of each seat.
        field: The field's pads.
        match: The match's configuration; None where the server sent none.

    Raises:
        NoServer: The server did not let them in, in time.
    """

    def __init__(
        self,
        server: tuple[str, int],
        agents: Sequence[str],
        patience: float,
        log: Callable[[bytes], None] | None = None,
    ) -> None:
        self._log = log
        self._lines: list[Connection] = []
        self._selector = selectors.DefaultSelector()
        self._held: list[flat.PlayerInput] = []
        self._goodbye = False
        self._newest, self._frame = b"", -1  # the first seat's newest packet
        self.ids: list[int] = []
        self.field = flat.FieldInfo()
        self.match: flat.MatchConfiguration | None = None
        try:
            for agent in agents:
                self.ids.append(self._take(server, agent, time.monotonic() + patience))
            for line in self._lines:
                line.send(flat.InitComplete())
        except OSError as error:
            self.close()
            raise NoServer(f"the server at {server[0]}:{server[1]} went away: {error}") from error
        except BaseException:
            self.close()
            raise

    def _take(self, server: tuple[str, int], agent: str, deadline: float) -> int:
        """Connect one seat, again where the server closes (it does when a match begins); return its id."""
        why = "nothing listens there"
        while time.monotonic() < deadline:
            try:
                line = Connection(server)
            except OSError as error:
                why = str(error)
                time.sleep(_RETRY_SECONDS)
                continue
            try:
                line.send(flat.ConnectionSettings(agent, False, False, True))
                identifier = self._shake_hands(line, deadline)
            except (EOFError, OSError) as error:
                line.close()
                why = str(error)
                time.sleep(_RETRY_SECONDS)
                continue
            self._lines.append(line)
            self._selector.register(line, selectors.EVENT_READ)
            return identifier
        raise NoServer(f"no seat for {agent} at {server[0]}:{server[1]}: {why}")

    def _shake_hands(self, line: Connection, deadline: float) -> int:
        identifier: int | None = None
        field = False
        while identifier is None or not field:
            left = deadline - time.monotonic()
            payload = line.receive(left) if left > 0.0 else None
            if payload is None:
                raise EOFError(
                    "the server gave it no car" if identifier is None else "the server sent no field info"
                )
            if self._log is not None and not self._lines:
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
        return identifier

    def packets(self, seconds: float) -> list[flat.GamePacket]:
        """Wait for packets; return those that the first seat has been sent by now, oldest first.

        Args:
            seconds: To wait; the list is empty where none came. It holds 1,000 at most: the next call
                returns the others.

        Raises:
            EOFError, OSError: The server said goodbye or is gone.
        """
        found: list[flat.GamePacket] = []
        deadline = time.monotonic() + seconds
        while not found and (left := deadline - time.monotonic()) > 0.0:
            ready = [key.fileobj for key, _ in self._selector.select(left)]
            try:
                self._take_packets(found)
            except (EOFError, OSError):
                if not found:
                    raise
                break  # what came before is taken first; the next call meets the end again
            others = [line for line in self._lines[1:] if line in ready]
            if found:
                self._skip(others)
            else:
                self._answer_others(others)
        return found

    def _take_packets(self, found: list[flat.GamePacket]) -> None:
        """Add all packets that the first seat has been sent by now."""
        if self._goodbye:
            raise EOFError("it said goodbye")
        while len(found) < _AT_ONCE and (payload := self._lines[0].receive(0.0)) is not None:
            if self._log is not None:
                self._log(payload)
            message = message_of(payload)
            if isinstance(message, flat.DisconnectSignal):
                self._goodbye = True
                raise EOFError("it said goodbye")
            if isinstance(message, flat.GamePacket):
                found.append(message)
                self._newest, self._frame = payload, message.match_info.frame_num

    @staticmethod
    def _skip(lines: Sequence[Connection]) -> None:
        """Read what other seats were sent, so that it does not pile up: `answer` is for all seats."""
        for line in lines:
            with suppress(EOFError, OSError):  # a seat that is gone is told of when there is no packet
                while line.receive(0.0) is not None:
                    pass

    def _answer_others(self, lines: Sequence[Connection]) -> None:
        """Answer packets that only other seats were sent, with what those hold: lockstep waits for it.

        The first seat's packet, where there is one, is sent before the others'; then `answer` is for all. Nor
        is a packet answered twice: the server would take that for an answer to the next one.
        """
        for line, held in zip(self._lines[1:], self._held[1:], strict=True):
            if line not in lines:
                continue
            while (payload := line.receive(0.0)) is not None:
                message = None if payload == self._newest else message_of(payload)
                if not isinstance(message, flat.GamePacket) or message.match_info.frame_num <= self._frame:
                    continue
                if any(key.fileobj is self._lines[0] for key, _ in self._selector.select(0.0)):
                    return
                line.send(held)

    def answer(self, inputs: Sequence[flat.PlayerInput], *more: object) -> None:
        """Answer the newest packet.

        Args:
            inputs: Of each seat.
            more: Messages that the first seat sends before its input.

        Raises:
            EOFError, OSError: The server is gone.
        """
        self._held = list(inputs)
        self._lines[0].send(*more, inputs[0])
        for line, one in zip(self._lines[1:], inputs[1:], strict=True):
            line.send(one)

    def send(self, message: object) -> None:
        """Send a message from the first seat.

        Raises:
            OSError: The server is gone.
        """
        self._lines[0].send(message)

    def stop_match(self) -> None:
        """Tell the server to end the match, and wait a little until it says goodbye."""
        deadline = time.monotonic() + _GOODBYE_SECONDS
        with suppress(EOFError, OSError):
            self._lines[0].send(flat.StopCommand(False))
            while (payload := self._lines[0].receive(deadline - time.monotonic())) is not None:
                if isinstance(message_of(payload), flat.DisconnectSignal):
                    break

    def close(self) -> None:
        """Hang up."""
        self._selector.close()
        for line in self._lines:
            with suppress(OSError):
                line.send(flat.DisconnectSignal())
            line.close()
