"""Fuzz what a match server makes of its clients' messages, and what a viewer makes of drawings."""

import socket
import struct
from functools import cache
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.recording.mcap.channels import DRAWN
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.connected_client import Client
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.orders import Loadouts
from rlgym_bridge.server.net.wire import ClientLink, WireError, listen
from rlgym_bridge.view.drawn_groups import DrawnGroups, Places
from tests.support.stepped_match import match_of, player

_BODY: Final = (np.zeros(3), np.eye(3))
_MOST_BYTES: Final = 60_000  # what a connection takes at once, everywhere
_AT_ONCE: Final = struct.pack("ii", 1, 0)
_COLOR: Final = flat.Color(255, 0, 0, 255)


class _Server:
    """A match whose clients are heard without a connection that could break."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.lobby = Lobby(listen("127.0.0.1", 0))
        roster = seat_players(match_of(player(0), player(1), enable_state_setting=True))
        self.lobby.open_match(roster)
        self.match = Match(roster.cars)
        self.lobby.take_input, self.lobby.release = self.match.hold, self.match.release
        self.lobby.orders.take_state = self.match.set_state
        self.lobby.orders.read_match = self._read_match
        rendering = match_of(enable_rendering=flat.DebugRendering.OnByDefault)
        self.drawn = DrawnGroups()
        self.lobby.drawings.open(rendering, self._tick, [self.drawn.take])
        self.lobby.comms.open(lambda _: None, self._tick)
        loadouts = Loadouts(roster, self.match.set_hitbox, self.lobby.admission, self._tick)
        self.lobby.clients.handlers.update(loadouts.handlers)

    def _tick(self) -> int:
        return self.match.tick

    def _read_match(self, match: flat.MatchConfiguration | str) -> flat.MatchConfiguration:
        raise ValueError("no other match")

    def hear(self, data: bytes) -> None:
        """Have all messages that are in some bytes acted on, and play a tick."""
        with (
            socket.create_connection(self._listener.getsockname()) as theirs,
            self._listener.accept()[0] as ours,
        ):
            link = ClientLink(ours, "fuzzer", set())
            client = Client(link)
            self.lobby.clients._clients[ours] = client
            self.lobby.clients.refresh()
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)  # its port is free again then
            theirs.setblocking(False)
            theirs.send(data[:_MOST_BYTES])
            link.read()
            try:
                while link.has_message:
                    message: Any = link.take_message()
                    handler = self.lobby.clients.handlers.get(type(message))
                    if handler is not None:
                        handler(client, message)
            except WireError:
                pass
            finally:
                if self.lobby.clients._clients.pop(ours, None):
                    self.lobby._on_gone(client, "it is over")
        self.lobby.orders.latest = None
        self.match.advance()
        flat.CorePacket(self.match.packet()).pack()


@cache
def _server() -> _Server:
    return _Server()


def hear(data: bytes) -> None:
    """Have a server of this process hear messages, each with its length in front."""
    _server().hear(data)


def draw(data: bytes) -> None:
    """Have a viewer work out drawings, as a recording holds them."""
    groups = DrawnGroups()
    groups.take(data)
    with np.errstate(all="raise"):
        for key in list(groups.changed):
            groups.shapes(key, Places(_BODY, {0: _BODY}))


def drawing() -> bytes:
    """Return a group with every kind of drawing."""
    point = flat.Vector3(1.0, 2.0, 3.0)
    car, ball = (flat.RenderAnchor(point, one(0, point)) for one in (flat.CarAnchor, flat.BallAnchor))
    drawings = (
        flat.Line3D(car, ball, _COLOR),
        flat.PolyLine3D([point, point], _COLOR),
        flat.String2D("hud", 0.5, 0.25, 1.0, _COLOR, _COLOR),
        flat.String3D("here", car, 1.0, _COLOR, _COLOR),
        flat.Rect2D(0.5, 0.5, 0.25, 0.25, _COLOR, flat.TextHAlign.Center, flat.TextVAlign.Bottom),
        flat.Rect3D(ball, 0.1, 0.1, _COLOR),
    )
    group = flat.RenderGroup([flat.RenderMessage(one) for one in drawings], 3)
    return flat.InterfacePacket(group).pack()


def drawn_seeds() -> list[bytes]:
    """Return messages of the topic `/drawings`."""
    head = DRAWN.pack(0, 0)
    return [head + drawing(), head + flat.InterfacePacket(flat.RemoveRenderGroup(3)).pack(), head]


def heard_seeds() -> list[bytes]:
    """Return what clients say: each kind of message, and a whole conversation."""
    point = flat.Vector3Partial(1.0, 2.0, 300.0)
    physics = flat.DesiredPhysics(point, flat.RotatorPartial(0.1, 0.2, 0.3), point, point)
    state = flat.DesiredGameState(
        [flat.DesiredBallState(physics)], [flat.DesiredCarState(physics, 50.0)] * 2,
        flat.DesiredMatchInfo(-650.0, 1.0),
    )  # fmt: skip
    messages = [
        flat.ConnectionSettings("test/ball", True, True, True), flat.SetLoadout(0, flat.PlayerLoadout(23)),
        flat.InitComplete(), flat.PlayerInput(0, flat.ControllerState(1.0, -1.0, jump=True)), state,
        flat.MatchComm(0, 0, True, "gg", b"plan"), flat.RemoveRenderGroup(3),
        flat.RenderingStatus(0, True, True),
        flat.PingRequest(7), flat.ConsoleCommand("help"), flat.StartCommand("a.toml"), match_of(player(0)),
        flat.StopCommand(False), flat.DisconnectSignal(),
    ]  # fmt: skip
    payloads = [*(flat.InterfacePacket(one).pack() for one in messages), drawing()]  # type: ignore[arg-type]
    framed = [len(one).to_bytes(2, "big") + one for one in payloads]
    return [*framed, b"".join(framed[:-2])]
