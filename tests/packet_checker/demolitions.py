"""Demolitions: three seconds away, then back with a kickoff's boost."""

from math import sqrt

from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.protocol_variant import ProtocolVariant
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.limits import BOOST_SLACK, TIMER_SLACK, Rules


class Demolitions:
    """Follows the demolished cars."""

    def __init__(self, dialect: ProtocolVariant, rules: Rules) -> None:
        self._place = dialect.get("demolished_place")
        self._rules = rules
        self._period = round(rules.respawn_seconds * TICKS_PER_SECOND)
        self._away: dict[int, int] = {}  # slot -> ticks since the demolition

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        new = 0
        for slot, player in enumerate(step.packet.players):
            timeout = player.demolished_timeout
            if timeout == -1.0 and slot not in self._away:
                continue
            name = f"players[{slot}].demolished_timeout"
            if timeout == -1.0:
                self._back(step, slot, player, findings)
            elif not 0.0 <= timeout <= self._rules.respawn_seconds + TIMER_SLACK:
                findings.add(name, timeout, f"-1, or 0..{self._rules.respawn_seconds:g}")
            elif step.reset and step.exact:
                findings.add(name, timeout, "-1: all cars are there at a kickoff")
            elif not step.followed or step.before is None:
                self._away[slot] = self._period - round(timeout * TICKS_PER_SECOND)
            else:
                new += slot not in self._away
                self._gone(step, slot, player, findings)
        self._credit(step, new, findings)

    def _gone(self, step: Step, slot: int, player: flat.PlayerInfo, findings: Findings) -> None:
        """Read a car that is away, newly or still."""
        assert step.before is not None
        timeout, known = player.demolished_timeout, slot in self._away
        ticks = self._away[slot] + step.ticks[1] if known else 0
        self._away[slot] = ticks
        expected = self._rules.respawn_seconds - ticks / TICKS_PER_SECOND
        if not abs(timeout - expected) <= TIMER_SLACK or ticks >= self._period:
            findings.add(
                f"players[{slot}].demolished_timeout", shown(timeout),
                f"{shown(expected) if ticks < self._period else -1}, {ticks} ticks after the demolition",
            )  # fmt: skip
            self._away[slot] = self._period - round(timeout * TICKS_PER_SECOND)
        now, before = player.physics, step.before.players[slot].physics
        place, velocity = now.location, now.velocity
        origin = place.x == place.y == place.z == velocity.x == velocity.y == velocity.z == 0.0
        if self._place == "origin" and not origin:
            findings.add(f"players[{slot}].physics", (place.x, place.y, place.z), "all zero while demolished")
        if self._place != "kept" or not known:
            return
        moved = sqrt(
            (place.x - before.location.x) ** 2 + (place.y - before.location.y) ** 2
            + (place.z - before.location.z) ** 2
        )  # fmt: skip
        if not moved <= 0.0:
            findings.add(
                f"players[{slot}].physics.location", f"{shown(moved)} uu on", "its place while demolished"
            )

    def _back(self, step: Step, slot: int, player: flat.PlayerInfo, findings: Findings) -> None:
        ticks = self._away.pop(slot) + step.ticks[1]
        if not step.followed:
            early = (
                not step.exact and not step.reset and ticks < self._period and step.phase == step.phase_before
            )
            if early:
                self._early(slot, ticks, findings)
            return
        if ticks != self._period:
            self._early(slot, ticks, findings)
        # Back one tick before its first packet, it may have used boost in that tick.
        most = self._rules.kickoff_boost
        if not most - self._rules.burn - BOOST_SLACK <= player.boost <= most + BOOST_SLACK:
            findings.add(f"players[{slot}].boost", shown(player.boost), f"{shown(most)} after a demolition")

    def _early(self, slot: int, ticks: int, findings: Findings) -> None:
        findings.add(
            f"players[{slot}].demolished_timeout",
            f"-1 after {ticks} ticks",
            f"the car back after {self._period}",
        )

    def _credit(self, step: Step, new: int, findings: Findings) -> None:
        """Every new demolition stands on somebody's scoreboard."""
        if not step.followed or step.before is None or len(step.before.players) != len(step.packet.players):
            return
        if step.packet.players and not new and not self._away:
            return
        now = sum(player.score_info.demolitions for player in step.packet.players)
        before = sum(player.score_info.demolitions for player in step.before.players)
        if now - before != new:
            findings.add(
                "score_info.demolitions", f"{now - before} more", f"{new}: cars demolished in this tick"
            )
