"""Pages of tests: matches that are stepped by hand for them, and connections to a page's server."""

import json
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import aiohttp
import numpy as np
from rlbot import flat

from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.recording.mcap.channels import PACKETS
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.hosted_match import MatchRecorder
from rlgym_bridge.view.web.frames import with_input
from rlgym_bridge.view.web.last_minute import LastMinute
from rlgym_bridge.view.web.page_messages import read_message
from rlgym_bridge.view.web.page_server import PageServer, Viewer
from rlgym_bridge.view.web.played_match import PlayedMatch
from tests.support.recorded_matches import POLICY

HEAD = struct.Struct("<BBBBIfffHHIf")
BALL = struct.Struct("<17f")
CAR = struct.Struct("<13fI")


class Frame(NamedTuple):
    """A frame as a page reads it, by the layout that the documentation gives."""

    phase: int
    flags: int
    tick: int
    speed: float
    clock: float
    countdown: float
    score: tuple[int, int]
    input: int
    time: float
    ball: list[float]
    cars: list[list[float]]
    pads: bytes


def read_frame(data: bytes) -> Frame:
    """Return a frame; bodies are lists of numbers in the order of the layout."""
    kind, phase, flags, cars, tick, speed, clock, countdown, blue, orange, given, time = HEAD.unpack_from(
        data
    )
    assert kind == 1 and len(data) == HEAD.size + BALL.size + cars * CAR.size + 5
    first = HEAD.size + BALL.size
    bodies = [list(CAR.unpack_from(data, first + number * CAR.size)) for number in range(cars)]
    return Frame(
        phase, flags, tick, speed, clock, countdown, (blue, orange), given, time,
        list(BALL.unpack_from(data, HEAD.size)), bodies, data[-5:],
    )  # fmt: skip


class KeptPages:
    """Pages in place of a server's: what they are sent is kept."""

    def __init__(self) -> None:
        self.viewers: list[Viewer] = []
        self.frames: list[Frame] = []
        self.told: list[dict[str, Any]] = []

    def show_frame(self, frame: bytes, inputs: Mapping[Viewer, int] | None = None) -> None:
        """Keep a frame as the latest page that drives gets it."""
        numbers = list((inputs or {}).values())
        self.frames.append(read_frame(with_input(frame, numbers[-1]) if numbers else frame))

    def tell(self, message: dict[str, Any], viewer: Viewer | None = None) -> None:
        """Keep a message, which has to be one in JSON."""
        self.told.append(json.loads(json.dumps(message, allow_nan=False)))

    def say(self, text: str, level: str = "info", viewer: Viewer | None = None) -> None:
        """Keep a sentence."""
        self.tell({"type": "say", "text": text, "level": level})


class SteppedShow:
    """A match on pages, stepped by hand as a server would step it."""

    def __init__(
        self, *drivers: str | None, mode: str = "play", folder: Path = Path(), course: Course | None = None
    ) -> None:
        players = [
            flat.PlayerConfiguration(flat.PsyonixBot(f"Car {number}"), int(number >= len(drivers) // 2))
            for number in range(len(drivers))
        ]
        roster = seat_players(
            flat.MatchConfiguration(player_configurations=players, mutators=flat.MutatorSettings()),
            True,
            True,
        )
        self.match = Match(roster.cars, course)
        self.pages = KeptPages()
        minute = LastMinute(
            {"dialect": [f"{name}={value}" for name, value in ProtocolVariant().complete().items()]}
        )
        self._recorder = MatchRecorder(minute, self.match)
        self._recorder.begin(roster.configuration)
        pages = cast(PageServer, self.pages)
        self.show = PlayedMatch(
            mode, drivers, load_player, (*BUILT_IN, POLICY), lambda _: pages, minute, folder
        )
        self.show.begin(self.match, roster, self.match.hold)
        self.inputs = 0

    def open(self, ready: bool = True) -> Viewer:
        """Open a page."""
        viewer = Viewer(len(self.pages.viewers) + 1)
        self.pages.told.append(dict(self.show.open(viewer)))
        self.pages.viewers.append(viewer)
        if ready:
            self.command(viewer, "ready")
        return viewer

    def command(self, viewer: Viewer, do: str, value: Any = None) -> None:
        """Send a command as a page does."""
        self.show.take(viewer, read_message(json.dumps({"type": "command", "do": do, "value": value})))

    def drive(self, viewer: Viewer, *controls: float) -> int:
        """Send an input as a page does; return its number."""
        self.inputs += 1
        row = [*controls, *[0] * (8 - len(controls))]
        self.show.take(
            viewer, read_message(json.dumps({"type": "input", "seq": self.inputs, "controls": row}))
        )
        return self.inputs

    def step(self, ticks: int = 1) -> int:
        """Step; return the ticks that were played, fewer where the match does not go on."""
        for played in range(ticks):
            packet = self.match.packet()
            self._recorder.put(PACKETS, flat.CorePacket(packet).pack())
            self.show.see(packet)
            if not self.show.act():
                return played
            self.match.advance()
        return ticks

    def until(self, phase: int, most: int = 2000) -> None:
        """Step until a phase is there."""
        for _ in range(most):
            if self.match.referee.phase == phase:
                return
            assert self.step(), "the match does not go on"
        raise AssertionError(f"no phase {phase} within {most} ticks")

    @property
    def buffer(self) -> np.ndarray:
        """Return the simulator's state."""
        return self.match.simulation.state.buffer.copy()

    def texts(self, kind: str) -> list[dict[str, Any]]:
        """Return the messages of a kind that pages were told."""
        return [one for one in self.pages.told if one["type"] == kind]


class Link:
    """A page's connection."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def command(self, do: str, value: Any = None) -> None:
        """Send a command."""
        await self._socket.send_json({"type": "command", "do": do, "value": value})

    async def send(self, text: str) -> None:
        """Send a text as it is."""
        await self._socket.send_str(text)

    async def text(self, kind: str) -> dict[str, Any]:
        """Return the next message of a kind."""
        while True:
            message = await self._socket.receive(timeout=20)
            assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), message
            if message.type == aiohttp.WSMsgType.TEXT and (told := json.loads(message.data))["type"] == kind:
                return dict(told)

    async def frame(self, wanted: Callable[[Frame], bool] = lambda _: True) -> Frame:
        """Return the next frame of which `wanted` is true."""
        while True:
            message = await self._socket.receive(timeout=20)
            assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), message
            if message.type == aiohttp.WSMsgType.BINARY and wanted(frame := read_frame(message.data)):
                return frame

    async def end(self) -> tuple[int | None, str]:
        """Return code and reason with which the server closes."""
        while True:
            message = await self._socket.receive(timeout=20)
            if message.type == aiohttp.WSMsgType.CLOSE:
                return message.data, str(message.extra)
            if message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR):
                return self._socket.close_code, ""

    async def close(self) -> None:
        """Close it."""
        await self._socket.close()


def socket_address(address: str) -> str:
    """Return the WebSocket's address for a page's."""
    return address.replace("http://", "ws://").replace("/?", "/ws?")


@asynccontextmanager
async def linked(address: str, count: int = 1) -> AsyncIterator[Sequence[Link]]:
    """Open connections of pages to the server of an address."""
    async with aiohttp.ClientSession() as session:
        links = [Link(await session.ws_connect(socket_address(address))) for _ in range(count)]
        yield links
        for link in links:
            await link.close()


class EchoShow:
    """A show that tells every page what it sent."""

    def __init__(self) -> None:
        self.server = PageServer(self)
        self.opened = self.closed = self.taken = 0

    def open(self, viewer: Viewer) -> dict[str, Any]:
        """Return the smallest setup."""
        self.opened += 1
        return {"type": "setup", "number": viewer.number}

    def take(self, viewer: Viewer, message: Any) -> None:
        """Answer."""
        self.taken += 1
        self.server.say(str(message), viewer=viewer)

    def close(self, viewer: Viewer) -> None:
        """Count."""
        self.closed += 1
