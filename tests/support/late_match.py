"""A match whose inputs act late, played by the code of bots, without sockets."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from rlbot import flat

from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.net.impairments import Impairments, SlowInputs
from rlgym_bridge.sim.simulator import ROCKETSIM3
from tests.parity.world import make_match, through_bytes
from tests.support.players_by_hand import CONFIG


class LateMatch:
    """Players that each drive one car with late inputs; a car without a player stands still."""

    def __init__(
        self, specs: Sequence[PlayerSpec], latency: int, *, team_size: int = 1, seed: int = 0,
        spread: int = 0, seconds: float = 1e6, simulator: str = ROCKETSIM3, **more: Any,
    ) -> None:  # fmt: skip
        self.match = make_match(team_size, seed, seconds, simulator=simulator)
        self._slow = SlowInputs(self.match, Impairments(latency=latency, latency_spread=spread), seed)
        self.faults = Faults(logging.getLogger("tests"))
        ids = [player.player_id for player in self.match.packet().players]
        self.players = [
            LivePlayer(spec, field_info(), CONFIG, [one], self.faults, seed=seed, **more)
            for spec, one in zip(specs, ids[: len(specs)], strict=True)
        ]

    def tick(self) -> flat.GamePacket:
        """Let all see the packet and answer it as a session does, and play a tick; return the packet."""
        packet = through_bytes(self.match.packet())
        for player in self.players:
            answered = player.foresee(packet)
            if answered:
                self._send(player)
            player.see(packet)
            if not answered:
                self._send(player)
        self._slow.arrive()
        self.match.advance()
        return packet

    def play_to(self, done: Callable[[], bool], most: int = 5000) -> int:
        """Play on until something holds, and return the ticks."""
        for ticks in range(most):
            if done():
                return ticks
            self.tick()
        raise AssertionError(f"it did not come within {most} ticks")

    def _send(self, player: LivePlayer) -> None:
        for slot, row in player.inputs():
            sticks, buttons = row[:5].tolist(), [value > 0 for value in row[5:]]
            self._slow.hold(slot, flat.ControllerState(*sticks, *buttons, False))
