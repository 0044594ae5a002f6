"""Take what clients send beside inputs: orders, loadouts, messages to each other, and drawings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from rlbot import flat

from rlgym_bridge.game import HITBOX_OF_BODY, HITBOXES
from rlgym_bridge.recording.mcap.channels import DRAWN
from rlgym_bridge.server.client_log import Allowance, client_log
from rlgym_bridge.server.game.packer import MAX_PAYLOAD, framed
from rlgym_bridge.server.game.roster import SCRIPT_TEAM, Roster
from rlgym_bridge.server.net.admission import Admission
from rlgym_bridge.server.net.connected_client import (
    CLIENTS_TOGETHER,
    Client,
    Handler,
    after_settings,
    per_tick,
)
from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.message_limits import group_of

_log = client_log(__name__)


@dataclass(frozen=True)
class Order:
    """An order of a client to the server: a match to start, None to stop, or to leave `serve_forever`."""

    start: flat.MatchConfiguration | None = None
    shut_down: bool = False


class Orders:
    """The latest order, and whose orders count.

    `read_match` returns the match of a client, a configuration or the path of a file; a ValueError or OSError
    says why it cannot be played. `take_state` and `take_input` return False for what cannot be taken.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.latest: Order | None = None  # whoever acts on it sets it to None
        self.read_match: Callable[[flat.MatchConfiguration | str], flat.MatchConfiguration] | None = None
        self.sets_states = False  # the match lets clients set its state
        self.take_state: Callable[[flat.DesiredGameState], bool] | None = None
        self.take_input: Callable[[int, flat.ControllerState], bool] | None = None
        self.on_state: Callable[[Client], None] | None = None  # for a state, or input for another's car

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message that is an order."""
        return {
            flat.StartCommand: lambda client, message: self._take_match(client, message.config_path),
            flat.MatchConfiguration: self._take_match,
            flat.StopCommand: self._on_stop,
            flat.DesiredGameState: self._on_state,
            flat.ConsoleCommand: lambda client, message: client.warn_once(
                "%s sends console commands (%s): ignored, there is no game", shorten_text(message.command)
            ),
        }

    def _take_match(self, client: Client, match: flat.MatchConfiguration | str) -> None:
        if self.read_match is None:
            client.warn_once(
                "%s starts another match: ignored, this server plays only the match it was started with"
            )
            return
        try:
            self.latest = Order(start=self.read_match(match))
        except (ValueError, OSError) as error:  # the match that is played goes on
            _log.error("cannot start the match of %s: %s", client.link.name, error)

    def _on_stop(self, client: Client, message: flat.StopCommand) -> None:
        if self._admission.takes_order(client, "stops the match", lambda: self._on_stop(client, message)):
            self.latest = Order(shut_down=message.shutdown_server)

    def drive(self, client: Client, message: flat.PlayerInput) -> bool:
        """Take an input for a car of others, as RLBot's core does with state setting on.

        It answers no packet.
        """
        if self.take_input is None or not self.sets_states:
            return False
        if not client.seats and not self._admission.takes_order(client, "drives cars", lambda: None):
            return False
        if not self.take_input(message.player_index, message.controller_state):
            return False
        if self.on_state is not None:
            self.on_state(client)
        return True

    def _on_state(self, client: Client, message: flat.DesiredGameState) -> None:
        if self.take_state is None:
            return
        if not self.sets_states:
            client.warn_once("%s sets the state: ignored, the match does not have enable_state_setting")
            return
        if not client.seats and not self._admission.takes_order(
            client, "sets the state", lambda: self._on_state(client, message)
        ):
            return
        if not self.take_state(message):
            client.warn_once("%s sets a state with a value that is not finite or beyond 1e6: nothing is set")
        elif self.on_state is not None:
            self.on_state(client)


_TICKS_OF_ONE: Final = 4  # all cars of a match are made anew for one, and the log has a line


def hitbox_of(body: int, whose: str) -> int:
    """Return the hitbox number of a loadout's `car_id`; an unknown one is logged and plays as an Octane."""
    if body and body not in HITBOX_OF_BODY:
        _log.warning("%s has car_id %d, whose hitbox is not known here: it plays as an Octane", whose, body)
    return HITBOX_OF_BODY.get(body, 0)


class Loadouts:
    """The loadouts of the cars of one match.

    A client sets those of its own cars before it is ready. In a match with state setting it may set all of
    them later, as far as it may give orders.
    """

    def __init__(
        self,
        roster: Roster,
        set_hitbox: Callable[[int, int], None],
        admission: Admission,
        tick: Callable[[], int],
    ) -> None:
        self._seats, self._set, self._admission, self._tick = roster.cars, set_hitbox, admission, tick
        self._allowances: WeakKeyDictionary[Client, Allowance] = WeakKeyDictionary()
        self._in_play = roster.configuration.enable_state_setting
        for player, seat in zip(roster.configuration.player_configurations, self._seats, strict=True):
            loadout = getattr(player.variety, "loadout", None)
            hitbox_of(0 if loadout is None else loadout.car_id, seat.label)

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message that is a loadout."""
        return {flat.SetLoadout: after_settings(self._on_loadout)}

    def _on_loadout(self, client: Client, message: flat.SetLoadout) -> None:
        index = message.index
        if client.ready and not self._in_play:
            client.warn_once(
                "%s sets a loadout after InitComplete: ignored, the match does not have enable_state_setting"
            )
        elif index >= len(self._seats) or self._seats[index].is_idle or (
            not client.ready and index not in client.cars
        ):  # fmt: skip
            client.warn_once("%s sets the loadout of car %d, which is not its own: ignored", index)
        elif (client.ready and not client.seats) and not self._admission.takes_order(
            client, "sets a loadout", lambda: self._on_loadout(client, message)
        ):
            return
        elif not self._allowances.setdefault(client, per_tick(1 / _TICKS_OF_ONE, 0)).take(self._tick()):
            client.warn_once("%s sets more than a loadout in %d ticks: some are ignored", _TICKS_OF_ONE)
        else:
            label = self._seats[index].label
            hitbox = hitbox_of(message.loadout.car_id, label)
            _log.info("%s plays with the hitbox of %s", label, HITBOXES[hitbox].name.capitalize())
            self._set(index, hitbox)


COMMS_TICK_BYTES: Final = 1 << 11
"""Bytes that a client may tell the others in each tick; two of the longest messages at once."""

_BESIDE_CONTENT: Final = 80  # bytes of a message, at most
_TICK_LINES: Final = 1 / 12  # of the log, for all quick chat


class MatchComms:
    """The way of a message from one client to the others, in the order in which messages come.

    A message goes to every agent that gets packets and wants messages, but not back to its sender. With
    `team_only` it goes to the sender's team alone; scripts are a team of their own. Match managers, which
    have no agent id, get every message, before their InitComplete too. The sender's team is filled in, its
    index stays as it was sent. Before the match's first packet messages are dropped [RLBot core,
    `FlatBuffersSession.cs`, `SendMatchComm.cs`]. So are those beyond `COMMS_TICK_BYTES`, or beyond eight
    times that of all clients without a seat.
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
        self._watchers = per_tick(COMMS_TICK_BYTES * CLIENTS_TOGETHER, 0)
        self._lines = per_tick(_TICK_LINES, 0)

    def open(self, on_message: Callable[[bytes], None] | None = None, tick: Callable[[], int] = int) -> None:
        """Pass messages on, their payloads to `on_message` too: the match sends its first packet."""
        self.close()
        self._is_open, self._on_message, self._tick = True, on_message, tick

    def _may_tell(self, client: Client, message: flat.MatchComm) -> bool:
        size = len(message.content) + len((message.display or "").encode()) + _BESIDE_CONTENT
        tick, its = self._tick(), self._each.setdefault(client, per_tick(COMMS_TICK_BYTES, 0))
        if size > MAX_PAYLOAD:
            client.warn_once("%s sends others a message of more than %d bytes: ignored", MAX_PAYLOAD)
            return False
        allowances = [its] if client.seats else [its, self._watchers]  # strangers do not silence a bot
        if not all(one.left_at(tick) >= size for one in allowances):
            client.warn_once("%s sends others more than %d bytes a tick: some are ignored", COMMS_TICK_BYTES)
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
        if message.display and self._lines.take(self._tick()):
            to = ("all", "scripts" if team == SCRIPT_TEAM else "its team")[team_only]
            _log.info("%s to %s: %s", client.link.name, to, shorten_text(message.display))
        if self._on_message is not None:
            self._on_message(data[2:])


MOST_GROUPS: Final = 256  # groups that a client has at a time
MOST_DRAWINGS: Final = 1000  # drawings in a group; a message of 65,535 bytes has about 900 lines
MOST_BYTES: Final = 1 << 20  # bytes of all groups that a client has at a time
DRAWN_TICK_BYTES: Final = 1 << 14
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
        self._all = per_tick(DRAWN_TICK_BYTES * CLIENTS_TOGETHER, 0)

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
        self._all = per_tick(DRAWN_TICK_BYTES * CLIENTS_TOGETHER, tick())

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
            drawer = self._drawers[client] = _Drawer(self._drawn, per_tick(DRAWN_TICK_BYTES, tick))
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
        elif min(drawer.allowance.left_at(tick), self._all.left_at(tick)) < len(payload):
            client.warn_once("%s draws more than %d bytes a tick: groups are left out", DRAWN_TICK_BYTES)
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
