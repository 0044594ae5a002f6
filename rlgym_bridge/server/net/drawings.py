"""Take in what clients draw, for those who look: a recording, or a window.

Without anybody who looks, drawings are dropped undecoded; so are those of clients that may not draw.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rlbot import flat

from rlgym_bridge.recording.mcap.channels import DRAWN
from rlgym_bridge.server.framing import framed
from rlgym_bridge.server.game.roster import SCRIPT_TEAM
from rlgym_bridge.server.net.client_limits import CLIENTS_TOGETHER, Allowance
from rlgym_bridge.server.net.connected_client import Client, Handler
from rlgym_bridge.user_input.message_limits import group_of

MOST_GROUPS: Final = 256
"""Groups that a client has at a time."""

MOST_DRAWINGS: Final = 1000
"""Drawings in a group; a message of 65,535 bytes has about 900 lines."""

MOST_BYTES: Final = 1 << 20
"""Bytes of all groups that a client has at a time."""

TICK_BYTES: Final = 1 << 14
"""Bytes that a client may draw in each tick: a line of 1,300 points, twice the ball's prediction."""


@dataclass
class _Drawer:
    """A client that has drawn something: the sizes of its groups by their ids, and its number."""

    number: int
    allowance: Allowance
    groups: dict[int, int] = field(default_factory=dict)
    size: int = 0


class Drawings:
    """Groups of drawings on their way from clients to those who look; without these all are dropped.

    A group stays until its client draws another one with its id, removes it, may not draw any more, or
    leaves. Whether clients may draw is decided by the match (`enable_rendering`), then by the messages that
    switch it for one bot or script; in a match of AlwaysOff these are ignored [RLBot core]. What is beyond
    the limits above is dropped; the log says so once for each client and limit.
    """

    def __init__(self, everyone: Callable[[], Sequence[Client]]) -> None:
        self._everyone = everyone
        self._rule = flat.DebugRendering.AlwaysOff
        self._looks: tuple[Callable[[bytes], None], ...] = ()
        self._tick: Callable[[], int] = int
        self._drawers: dict[Client, _Drawer] = {}
        self._drawn = 0  # clients that have drawn in this match
        self._switched: dict[Client, bool] = {}
        self._all = Allowance(TICK_BYTES * CLIENTS_TOGETHER, 0)

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message; a group comes as its bytes."""
        return {
            bytes: self._on_group,
            flat.RemoveRenderGroup: self._on_remove,
            flat.RenderingStatus: self._on_status,
        }

    def open(
        self,
        match: flat.MatchConfiguration,
        tick: Callable[[], int],
        looks: Sequence[Callable[[bytes], None]] = (),
    ) -> None:
        """Begin a match without drawings; `looks` are called with all changes, as `DRAWN` describes them."""
        self.close()
        self._rule, self._tick, self._looks = match.enable_rendering, tick, tuple(looks)
        self._all = Allowance(TICK_BYTES * CLIENTS_TOGETHER, tick())

    def close(self) -> None:
        """Drop drawings until the next match."""
        self._rule, self._looks, self._tick = flat.DebugRendering.AlwaysOff, (), int
        self._drawers.clear()
        self._switched.clear()
        self._drawn = 0

    def forget(self, client: Client) -> None:
        """Take away what a client drew that has left."""
        self._switched.pop(client, None)
        self._clear(client)

    def _may_draw(self, client: Client) -> bool:
        return self._switched.get(client, self._rule == flat.DebugRendering.OnByDefault)

    def _on_group(self, client: Client, payload: bytes) -> None:
        if not self._looks or not self._may_draw(client):
            return
        try:
            group, count = group_of(payload)
        except ValueError:
            client.warn_once("%s draws something that cannot be read: left out")
            return
        drawer, tick = self._drawers.get(client), self._tick()
        if drawer is None:
            drawer = self._drawers[client] = _Drawer(self._drawn, Allowance(TICK_BYTES, tick))
            self._drawn += 1
        before = drawer.groups.get(group)
        total = drawer.size - (before or 0) + len(payload)
        if count > MOST_DRAWINGS:
            client.warn_once(
                "%s draws %d things in a group, expected %d at most: left out", count, MOST_DRAWINGS
            )
        elif before is None and len(drawer.groups) >= MOST_GROUPS:
            client.warn_once("%s draws more than %d groups: newer ones are left out", MOST_GROUPS)
        elif total > MOST_BYTES:
            client.warn_once("%s draws groups of more than %d bytes: newer ones are left out", MOST_BYTES)
        elif not (drawer.allowance.has(len(payload), tick) and self._all.has(len(payload), tick)):
            client.warn_once("%s draws more than %d bytes a tick: groups are left out", TICK_BYTES)
        else:
            drawer.allowance.left -= len(payload)
            self._all.left -= len(payload)
            drawer.groups[group], drawer.size = len(payload), total
            self._show(client, drawer, payload)

    def _on_remove(self, client: Client, message: flat.RemoveRenderGroup) -> None:
        drawer = self._drawers.get(client)
        if drawer is not None and message.id in drawer.groups and self._may_draw(client):
            drawer.size -= drawer.groups.pop(message.id)
            self._show(client, drawer, flat.InterfacePacket(message).pack())

    def _on_status(self, _: Client, message: flat.RenderingStatus) -> None:
        """Switch a bot or script, and tell it; those without a seat are told of all [RLBot core]."""
        if self._rule == flat.DebugRendering.AlwaysOff:
            return
        data = framed(message)
        for client in self._everyone():
            meant = any(
                seat.index == message.index and (seat.team != SCRIPT_TEAM) == message.is_bot
                for seat in client.seats
            )
            if meant:
                self._switched[client] = message.status
                if not message.status:
                    self._clear(client)
            if meant or not client.seats:
                client.link.send(data)

    def _clear(self, client: Client) -> None:
        drawer = self._drawers.get(client)
        if drawer is not None and drawer.groups:
            drawer.groups.clear()
            drawer.size = 0
            self._show(client, drawer, b"")

    def _show(self, client: Client, drawer: _Drawer, payload: bytes) -> None:
        content = DRAWN.pack(drawer.number, min(client.cars, default=-1)) + payload
        for look in self._looks:
            look(content)
