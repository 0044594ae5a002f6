"""Faults of a connection: functions on the stream of messages from one end to the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.server.game.packer import field_info, framed

Writes = list[bytes]
Spoil = Callable[[int, list[bytes], bytes], Writes]
"""Given the fault's tick, the messages it holds back (its own to change) and the tick's message, framed.

It returns what is written to the other end in this tick.
"""


class Cut(Exception):
    """The connection ends after the bytes that this carries."""


@dataclass(frozen=True)
class StreamFault:
    """A fault that lasts some ticks; without `spoil` it is done to a process or a file."""

    name: str
    ticks: int
    spoil: Spoil | None = None
    of_packets: bool = False


def _cut(tick: int, held: list[bytes], message: bytes) -> Writes:
    raise Cut(message[: len(message) // 2])


def _split(tick: int, held: list[bytes], message: bytes) -> Writes:
    return [message[i : i + 1] for i in range(len(message))]


def _hold(ticks: int, order: int = 1) -> Spoil:
    """Return a fault that holds messages back and writes them at once, in this order or the other one."""

    def spoil(tick: int, held: list[bytes], message: bytes) -> Writes:
        held.append(message)
        if len(held) < ticks:
            return []
        together = b"".join(held[::order])
        held.clear()
        return [together]

    return spoil


def _repeat(tick: int, held: list[bytes], message: bytes) -> Writes:
    return [message + message]


def _lose(tick: int, held: list[bytes], message: bytes) -> Writes:
    return [] if tick % 40 < 30 else [message]


def changed(value: Any, **fields: Any) -> Any:
    """Return a copy of a flatbuffer with other values in some fields."""
    return type(value)(**{name: getattr(value, name) for name in value.__match_args__} | fields)


def _edit(edit: Callable[[int, flat.GamePacket], dict[str, Any]]) -> Spoil:
    """Return a fault that changes fields of packets."""

    def spoil(tick: int, held: list[bytes], message: bytes) -> Writes:
        packet = flat.CorePacket.unpack(message[2:]).message
        return [framed(changed(packet, **edit(tick, packet)))]

    return spoil


def _frames(number: Callable[[int, int], int], **more: Any) -> Spoil:
    """Return a fault that changes frame numbers, given the fault's tick and the true number."""
    return _edit(
        lambda tick, packet: {
            "match_info": changed(
                packet.match_info, frame_num=max(0, number(tick, packet.match_info.frame_num)), **more
            )
        }
    )


def _newcomers(tick: int, packet: flat.GamePacket) -> dict[str, Any]:
    """Add a car, and from the middle on more than a team can have."""
    last = packet.players[-1]
    count = 1 if tick < 15 else 5
    return {"players": [*packet.players, *(changed(last, player_id=900 + i) for i in range(count))]}


def _restart(tick: int, held: list[bytes], message: bytes) -> Writes:
    countdown = {"match_phase": flat.MatchPhase(Phase.COUNTDOWN)} if tick < 20 else {}
    return _frames(lambda tick, frame: 1 + tick, **countdown)(tick, held, message)


def _other_map(tick: int, held: list[bytes], message: bytes) -> Writes:
    """Announce another map with 20 pads, then send their packets; at the end announce the old one."""
    news = []
    if tick in (0, 29):
        pads = field_info().boost_pads[: 20 if tick == 0 else 34]
        match = flat.MatchConfiguration(game_map_upk="Hoops_P" if tick == 0 else "Stadium_P")
        news = [framed(match), framed(changed(field_info(), boost_pads=pads))]
    return [b"".join(news), *_edit(lambda _, packet: {"boost_pads": packet.boost_pads[:20]})(0, [], message)]


FAULTS: Final = {
    fault.name: fault
    for fault in (
        StreamFault("cut in a message", 1, _cut),
        StreamFault("single bytes", 12, _split),
        StreamFault("merged", 40, _hold(4)),
        StreamFault("delayed 500 ms", 60, _hold(60)),
        StreamFault("repeated", 30, _repeat),
        StreamFault("swapped", 30, _hold(2, -1)),
        StreamFault("lost in bursts", 120, _lose),
        StreamFault(
            "players shrink", 30,
            _edit(lambda tick, packet: {"players": packet.players[-1:] if tick < 15 else packet.players[:1]}),
            True,
        ),
        StreamFault("players grow", 30, _edit(_newcomers), True),
        StreamFault(
            "players reordered", 30, _edit(lambda _, packet: {"players": packet.players[::-1]}), True
        ),
        StreamFault("no ball", 30, _edit(lambda _, packet: {"balls": []}), True),
        StreamFault("frames jump ahead", 30, _frames(lambda _, frame: frame + 5000), True),
        StreamFault("frames go back", 60, _frames(lambda tick, frame: frame - 2 * tick), True),
        StreamFault("match restarted", 60, _restart, True),
        StreamFault("map changed", 30, _other_map, True),
        StreamFault("pads missing", 30, _edit(lambda _, packet: {"boost_pads": []}), True),
        StreamFault("policy file replaced", 30),
        StreamFault("disk full", 1500),
        StreamFault("paused 3 s", 360),
    )
}  # fmt: skip
"""Every fault of the matrix, by its name."""
