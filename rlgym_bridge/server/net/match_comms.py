"""Pass on the messages that bots send each other: match communication, and quick chat."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.server.framing import framed
from rlgym_bridge.server.game.roster import SCRIPT_TEAM
from rlgym_bridge.server.net.connected_client import Client, Handler

_log = logging.getLogger(__name__)

_NO_TEAM: Final = 3  # of a client that has no seat [RLBot core]


class MatchComms:
    """The way of a message from one client to the others, in the order in which messages come.

    A message goes to every client that gets packets and wants messages, but not back to its sender. With
    `team_only` it goes to the sender's team alone; scripts are a team of their own. The sender's team is
    filled in, its index stays as it was sent. Before the match's first packet messages are dropped
    [RLBot core].

    Args:
        audience: Returns the clients that get packets.
    """

    def __init__(self, audience: Callable[[], Sequence[Client]]) -> None:
        self._audience = audience
        self._is_open = False
        self._on_message: Callable[[bytes], None] | None = None

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message."""
        return {flat.MatchComm: self._on_comm}

    def open(self, on_message: Callable[[bytes], None] | None = None) -> None:
        """Pass messages on from now on: the match sends its first packet.

        Args:
            on_message: Called with the payload of each message that is passed on.
        """
        self._is_open, self._on_message = True, on_message

    def close(self) -> None:
        """Drop messages until the next match."""
        self._is_open, self._on_message = False, None

    def _on_comm(self, client: Client, message: flat.MatchComm) -> None:
        if not self._is_open:
            client.warn_once("%s sends a message to others before the first packet: ignored")
            return
        index, team, team_only = message.index, _NO_TEAM, False
        if client.seats:
            team, team_only = client.seats[0].team, message.team_only
        else:
            index = 0
        data = framed(flat.MatchComm(index, team, team_only, message.display, message.content))
        if not data:  # too long, and said so
            return
        for other in self._audience():
            if other is client or not other.wants_comms:
                continue
            if not team_only or (other.seats and other.seats[0].team == team):
                other.link.send(data)
        if message.display:
            to = ("all", "scripts" if team == SCRIPT_TEAM else "its team")[team_only]
            _log.info("%s to %s: %s", client.link.name, to, message.display)
        if self._on_message is not None:
            self._on_message(data[2:])
