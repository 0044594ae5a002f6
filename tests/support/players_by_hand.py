"""Policies and players that are asked packet by packet, without a server."""

import logging
import socket
from collections.abc import Sequence
from typing import Any

import numpy as np
from rlbot import flat

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import Components
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.state import MatchState

CONFIG = flat.MatchConfiguration(mutators=flat.MutatorSettings())


FULL_THROTTLE = [1.0, 0, 0, 0, 0, 0, 0, 0]


class Always:
    """A policy that always takes the same action."""

    def __init__(self, action: Any = 16) -> None:
        self.action = action
        self.resets = 0

    def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
        self.seats, self.resets = len(seats), self.resets + 1

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        if isinstance(self.action, BaseException):
            raise self.action
        return np.full((1, self.seats), self.action)


def brain(policy: Any, parser: Any = None) -> PlayerSpec:
    parser = parser or RepeatAction(LookupTableAction(), 8)
    return PlayerSpec(policy=lambda: policy, components=lambda: Components(None, parser))


def live_player(policy: Any, **more: Any) -> LivePlayer:
    parser = more.pop("parser", None)
    ids = more.pop("ids", [7])
    return player_of(brain(policy, parser), ids, **more)


def player_of(spec: PlayerSpec, ids: Sequence[int], **more: Any) -> LivePlayer:
    return LivePlayer(spec, field_info(), CONFIG, ids, Faults(logging.getLogger("tests")), **more)


def sent(one: LivePlayer, given: flat.GamePacket) -> list[tuple[int, list[float]]]:
    one.see(given)
    return [(index, row.tolist()) for index, row in one.inputs()]


def neutral(answer: list[tuple[int, list[float]]]) -> bool:
    return bool(answer) and all(row == [0.0] * 8 for _, row in answer)


class FakeServer:
    """RLBotServer's end of one connection, a message at a time."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def accept(self) -> None:
        self.listener.settimeout(10)
        self.peer, _ = self.listener.accept()
        self.peer.settimeout(10)
        assert isinstance(self.read(), flat.ConnectionSettings)

    def read(self) -> Any:
        size = int.from_bytes(self._exactly(2), "big")
        return flat.InterfacePacket.unpack(self._exactly(size)).message

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.peer.recv(size - len(data))
            assert part, "the agent closed the connection"
            data += part
        return data

    def send_raw(self, data: bytes) -> None:
        self.peer.sendall(len(data).to_bytes(2, "big") + data)

    def send(self, *messages: Any) -> None:
        packed = [flat.CorePacket(message).pack() for message in messages]
        self.peer.sendall(b"".join(len(data).to_bytes(2, "big") + data for data in packed))

    def handshake(self) -> None:
        self.accept()
        team = flat.ControllableTeamInfo(0, [flat.ControllableInfo(0, 7)])
        self.send(CONFIG, team, field_info())
        assert isinstance(self.read(), flat.InitComplete)
