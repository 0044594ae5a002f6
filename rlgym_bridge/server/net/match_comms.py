"""Pass on the messages that bots send each other: match communication, and quick chat."""

from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from rlbot import flat

from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.framing import MAX_PAYLOAD, framed
from rlgym_bridge.server.game.roster import SCRIPT_TEAM
from rlgym_bridge.server.net.client_limits import CLIENTS_TOGETHER, Allowance
from rlgym_bridge.server.net.connected_client import Client, Handler, after_settings
from rlgym_bridge.user_input.arguments import shorten_text

_log = client_log(__name__)

TICK_BYTES: Final = 1 << 11
"""Bytes that a client may tell the others in each tick; two of the longest messages at once."""

_BESIDE_CONTENT: Final = 80  # bytes of a message, at most
_TICK_LINES: Final = 1 / 12  # of the log, for all quick chat


class MatchComms:
    """The way of a message from one client to the others, in the order in which messages come.

    A message goes to every agent that gets packets and wants messages, but not back to its sender. With
    `team_only` it goes to the sender's team alone; scripts are a team of their own. Match managers, which
    have no agent id, get every message, before their InitComplete too. The sender's team is filled in, its
    index stays as it was sent. Before the match's first packet messages are dropped [RLBot core,
    `FlatBuffersSession.cs`, `SendMatchComm.cs`]. So are those beyond `TICK_BYTES`, or beyond eight times that
    of all clients without a seat.
    """

    def __init__(self, everyone: Callable[[], Sequence[Client]]) -> None:
        self._everyone = everyone
        self.close()

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message."""
        return {flat.MatchComm: after_settings(self._on_comm)}

    def close(self) -> None:
        """Drop messages until the next match."""
        self._is_open = False
        self._on_message: Callable[[bytes], None] | None = None
        self._tick: Callable[[], int] = int
        self._each: WeakKeyDictionary[Client, Allowance] = WeakKeyDictionary()
        self._watchers = Allowance(TICK_BYTES * CLIENTS_TOGETHER, 0)
        self._lines = Allowance(_TICK_LINES, 0)

    def open(self, on_message: Callable[[bytes], None] | None = None, tick: Callable[[], int] = int) -> None:
        """Pass messages on, their payloads to `on_message` too: the match sends its first packet."""
        self.close()
        self._is_open, self._on_message, self._tick = True, on_message, tick

    def _may_tell(self, client: Client, message: flat.MatchComm) -> bool:
        """Tell whether a client may send a message on; the log says once why not."""
        size = len(message.content) + len((message.display or "").encode()) + _BESIDE_CONTENT
        tick, its = self._tick(), self._each.setdefault(client, Allowance(TICK_BYTES, 0))
        if size > MAX_PAYLOAD:
            client.warn_once("%s sends others a message of more than %d bytes: ignored", MAX_PAYLOAD)
            return False
        allowances = [its] if client.seats else [its, self._watchers]  # strangers do not silence a bot
        if not all(one.has(size, tick) for one in allowances):
            client.warn_once("%s sends others more than %d bytes a tick: some are ignored", TICK_BYTES)
            return False
        for one in allowances:
            one.left -= size
        return True

    def _on_comm(self, client: Client, message: flat.MatchComm) -> None:
        if not self._is_open:
            client.warn_once("%s sends a message to others before the first packet: ignored")
            return
        if not self._may_tell(client, message):
            return
        index, team, team_only = message.index, client.team, message.team_only
        if not client.agent_id:
            index, team_only = 0, False
        data = framed(flat.MatchComm(index, team, team_only, message.display, message.content))
        for other in self._everyone():
            reached = other.ready and (not team_only or other.team == team) if other.agent_id else True
            if reached and other.wants_comms and other is not client:
                other.link.send(data)
        if message.display and self._lines.has(1, self._tick()):
            self._lines.left -= 1
            to = ("all", "scripts" if team == SCRIPT_TEAM else "its team")[team_only]
            _log.info("%s to %s: %s", client.link.name, to, shorten_text(message.display))
        if self._on_message is not None:
            self._on_message(data[2:])
