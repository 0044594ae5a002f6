"""Boost: what it rises by and how fast it falls."""

from rlgym_bridge.game import Phase
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.limits import BOOST_SLACK, BURN_TICKS, SMALL_PAD_BOOST, Rules
from tests.packet_checker.pads import Pads


class Boost:
    """Follows the boost of every car; the pads have been read."""

    def __init__(self, rules: Rules, pads: Pads) -> None:
        self._rules = rules
        self._pads = pads
        self._boost: list[float] = []
        self._released: list[int] = []  # packets since the button was down

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        players = step.packet.players
        if len(self._boost) != len(players):
            self._boost = [player.boost for player in players]
            self._released = [0] * len(players)
        kickoff = self._rules.kickoff_boost
        lined_up = step.phase == Phase.COUNTDOWN or (
            step.phase == Phase.KICKOFF and step.reset and step.exact
        )
        for slot, player in enumerate(players):
            boost, before = player.boost, self._boost[slot]
            self._released[slot] = 0 if player.last_input.boost else self._released[slot] + 1
            if not -BOOST_SLACK <= boost <= 100.0 + BOOST_SLACK:
                findings.add(f"players[{slot}].boost", boost, "0..100")
            elif lined_up:
                if not abs(boost - kickoff) <= BOOST_SLACK:
                    findings.add(f"players[{slot}].boost", shown(boost), f"{shown(kickoff)} at a kickoff")
            elif step.followed:
                if boost != before or slot in self._pads.taken:
                    self._followed(step, slot, boost, before, findings)
            elif step.bounded and not step.before_or_now_demolished(slot):
                self._fell(slot, boost, before, step.ticks[1], findings)
            self._boost[slot] = boost

    def _followed(self, step: Step, slot: int, boost: float, before: float, findings: Findings) -> None:
        assert step.before is not None
        player = step.packet.players[slot]
        if step.before.players[slot].demolished_timeout >= 0.0 > player.demolished_timeout:
            return  # back from a demolition, which is looked at there
        taken = self._pads.taken.get(slot)
        if boost > before + BOOST_SLACK:
            self._rose(slot, boost, before, taken, findings)
        elif boost < before - BOOST_SLACK:
            self._fell(slot, boost, before, step.ticks[1], findings)
            if self._released[slot] > BURN_TICKS + self._rules.rocketsim3 and step.exact:
                findings.add(
                    f"players[{slot}].boost", f"{shown(boost)} after {shown(before)}",
                    f"no boost used {self._released[slot]} ticks after the button was let go",
                )  # fmt: skip

    def _rose(
        self, slot: int, boost: float, before: float, taken: list[bool] | None, findings: Findings
    ) -> None:
        name, came = f"players[{slot}].boost", f"{shown(boost)} after {shown(before)}"
        if not taken:
            findings.add(name, came, "no more than before: no pad near the car has gone")
            return
        gains = [100.0 if big else SMALL_PAD_BOOST for big in taken]
        least = min(100.0, before - self._rules.burn + min(gains))
        most = min(100.0, before + sum(gains))
        if not least - self._rules.burn - BOOST_SLACK <= boost <= most + BOOST_SLACK:
            findings.add(name, came, f"{shown(least)}..{shown(most)} after the pads that it took")

    def _fell(self, slot: int, boost: float, before: float, ticks: int, findings: Findings) -> None:
        if boost < before - ticks * self._rules.burn - BOOST_SLACK:
            findings.add(
                f"players[{slot}].boost", f"{shown(boost)} after {shown(before)}",
                f"{shown(self._rules.burn)} less a tick at most",
            )  # fmt: skip
