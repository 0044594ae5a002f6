"""Holds the packets of every match that is played in this process against a checker.

Matches of a server and matches that a test steps by hand are watched alike. A packet is read as a
client reads it, from its bytes. A test that sets cars or the ball breaks no rule: such edits are
noticed, and so are frames that a test goes past without building their packets.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

from pytest import MonkeyPatch
from rlbot import flat

from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.game.simulation import Simulation
from rlgym_bridge.sim.simulator import ROCKETSIM3, simulator_for
from tests.packet_checker import PacketChecker, Rules


class Watch:
    """The matches of a test and their checkers."""

    def __init__(self) -> None:
        self.packets = 0
        self._checkers: list[PacketChecker] = []
        self._of: WeakKeyDictionary[Match, tuple[PacketChecker, int]] = WeakKeyDictionary()
        self._dialects: WeakKeyDictionary[Match, ProtocolVariant] = WeakKeyDictionary()

    def begins(self, match: Match, dialect: ProtocolVariant | None) -> None:
        """Take note of what a match will speak; the first values of all points when None."""
        self._dialects[match] = (dialect or ProtocolVariant()).complete()

    def see(self, match: Match, packet: flat.GamePacket) -> None:
        """Read the packet of a match, unless it is of a tick that was read before."""
        now = getattr(match, "tick", match.frame)  # frames may stand still while ticks go on
        checker, tick = self._of.get(match) or (self._checker(match), now - 1)
        if now == tick:
            return
        checker.lossy = now > tick + 1
        checker.see(flat.GamePacket.unpack(packet.pack()))
        self._of[match] = checker, now
        self.packets += 1

    def edits(self, simulation: Simulation) -> None:
        """Take note that the next packet of a match shows cars or a ball that were set."""
        for match, (checker, _) in self._of.items():
            if match.simulation is simulation:
                checker.edited()

    def set_by_client(self, match: Match) -> None:
        """Take note that the next packet of a match shows a state that a client has set."""
        known = self._of.get(match)
        if known is not None:
            known[0].edited()

    def check(self) -> None:
        """Raise what was found."""
        checkers, self._checkers = self._checkers, []
        for checker in checkers:
            checker.check()

    def _checker(self, match: Match) -> PacketChecker:
        physics = match.simulation.physics
        mode = getattr(physics, "mode", None)  # soccar, where there is no other
        rules = Rules(
            boost_per_second=physics.boost_per_second,
            kickoff_boost=physics.spawn_boost,
            respawn_seconds=physics.respawn_seconds,
            ball_max_speed=physics.ball_max_speed,
            soccar=mode is None or mode.name == "Soccar",
            rocketsim3=(physics.simulator or simulator_for(physics.mode.name)[0]) == ROCKETSIM3,
        )
        checker = PacketChecker(dialect=self._dialects.get(match), rules=rules)
        self._checkers.append(checker)
        return checker


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch all matches until the end of the block; say what was found by `Watch.check`."""
    watch = Watch()
    init, packet, set_state, put = Match.__init__, Match.packet, Match.set_state, Simulation.set
    words = signature(init)

    def watched_init(match: Match, *args: Any, **more: Any) -> None:
        init(match, *args, **more)
        watch.begins(match, words.bind(match, *args, **more).arguments.get("dialect"))

    def watched_packet(match: Match) -> flat.GamePacket:
        built = packet(match)
        watch.see(match, built)
        return built

    def watched_set(simulation: Simulation, *args: Any, **more: Any) -> None:
        watch.edits(simulation)
        put(simulation, *args, **more)

    def watched_set_state(match: Match, desired: flat.DesiredGameState) -> bool:
        taken = set_state(match, desired)
        if taken:
            watch.set_by_client(match)
        return taken

    with MonkeyPatch.context() as patch:
        patch.setattr(Match, "__init__", watched_init)
        patch.setattr(Match, "packet", watched_packet)
        patch.setattr(Simulation, "set", watched_set)
        patch.setattr(Match, "set_state", watched_set_state)
        yield watch
