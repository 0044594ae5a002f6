"""Packets of good matches, to be changed by tests."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, Phase
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.simulator import ROCKETSIM2
from tests.parity.world import drive, make_match, through_bytes
from tests.support.stepped_match import controls, kicked_off, put_ball, put_car

Packets = list[Any]
"""Thawed `flat.GamePacket`s."""


@dataclass(frozen=True)
class Stream:
    """Good packets as bytes, and the places of those before which cars or ball were set."""

    payloads: list[bytes]
    edits: frozenset[int] = frozenset()

    def frozen(self) -> list[flat.GamePacket]:
        """Return the packets to look at."""
        return [flat.GamePacket.unpack(payload) for payload in self.payloads]

    def packets(self, first: int = 0, end: int | None = None) -> Packets:
        """Return the packets with all that is in them, open to changes."""
        return [thawed(flat.GamePacket.unpack(payload)) for payload in self.payloads[first:end]]


def thawed(value: Any) -> Any:
    """Return a copy whose attributes can be set; those of a flatbuffer cannot."""
    if isinstance(value, list | tuple):
        return [thawed(one) for one in value]
    names = getattr(value, "__match_args__", None)
    if not names or isinstance(value, flat.SphereShape):
        return value
    return SimpleNamespace(**{name: thawed(getattr(value, name)) for name in names})


def phase_of(packet: Any) -> int:
    return int(packet.match_info.match_phase)


def play() -> Stream:
    """A match of one car against one over a goal and its replay: touches, pads, jumps, dodges."""
    match = make_match(1, seed=10, seconds=60.0)
    match.referee.course = Course(60.0)
    payloads, phases = [], []
    for packet in drive(match, seed=10):
        payloads.append(packet.pack())
        phases.append(phase_of(packet))
        if phases.count(Phase.COUNTDOWN) > 500 and phases[-1] == Phase.ACTIVE:
            return Stream(payloads)
    raise AssertionError


def ram() -> Stream:
    """A car is demolished, is away for 360 ticks, and comes back."""
    match = kicked_off(simulator=ROCKETSIM2)
    payloads = [match.packet().pack()]
    put_ball(match, (3000, 0, 93.15))
    put_car(match, 1, (0, 0, 17.03), boost=80.0)
    put_car(match, 0, (0, -300, 17.03), velocity=(0, 2290, 0), yaw=math.pi / 2)
    match.hold(0, controls(throttle=1.0, boost=True))
    for _ in range(420):
        match.advance()
        payloads.append(match.packet().pack())
    return Stream(payloads, frozenset({1}))


def bump(simulator: str) -> Stream:
    """A car becomes supersonic. A teammate bumps it, and it is slower than any supersonic car."""
    match = kicked_off(2, simulator=simulator)
    payloads = [match.packet().pack()]
    put_ball(match, (3000, 0, 93.15))
    put_car(match, 0, (0, -2000, 17.0), (0, 2000, 0), yaw=math.pi / 2)
    match.hold(0, controls(throttle=1.0, boost=True))
    for _ in range(60):
        match.advance()
        payloads.append(match.packet().pack())
    put_car(match, 0, (0, -400, 17.0), (0, 2250, 0), math.pi / 2, is_supersonic=1.0, supersonic_time=0.1)
    yaw = math.radians(240.0)
    velocity = 1200.0 * np.array([math.cos(yaw), math.sin(yaw), 0.0])
    match.hold(1, controls(throttle=1.0))
    put_car(match, 1, np.array([-40.0, -55.0, 17.0]) - 0.1 * velocity, velocity, yaw)
    for _ in range(20):
        match.advance()
        payloads.append(match.packet().pack())
    return Stream(payloads, frozenset({1, 61}))


def playing(match: Match, ticks: int, seed: int = 0, skip: int = 0) -> list[flat.GamePacket]:
    """Return packets of play, without the first `skip`."""
    packets = []
    for sent in drive(match, seed):
        if match.referee.phase in PLAYING_PHASES:
            packets.append(through_bytes(sent))
        if len(packets) >= ticks + skip:
            return packets[skip:]
    raise AssertionError("a match ends by itself only after its time")
