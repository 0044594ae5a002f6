"""Boost pads: who takes them, how long they are away."""

from dataclasses import dataclass
from math import hypot

from rlbot import flat

from rlgym_bridge.game import BIG_PADS, PAD_POSITIONS, TICKS_PER_SECOND, Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.limits import PAD_HEIGHT, PAD_REACH, PAD_SECONDS, PAD_TICKS, TIMER_SLACK, Rules


@dataclass(frozen=True)
class _Place:
    x: float
    y: float
    big: bool


@dataclass
class _Away:
    """Ticks since a pad was taken, at least and at most."""

    least: int
    most: int


class Pads:
    """Follows the pads.

    Attributes:
        taken: For each car that may have taken pads in this tick, whether each of them was big.
    """

    def __init__(self, field: flat.FieldInfo | None, dialect: ProtocolVariant, rules: Rules) -> None:
        self._at_pickup = int(rules.rocketsim3)  # ticks on the timer
        if field is None:
            pads = sorted((y, x, number in BIG_PADS) for number, (x, y) in enumerate(PAD_POSITIONS))
            self._places = [_Place(x, y, big) for y, x, big in pads]
        else:
            self._places = [
                _Place(pad.location.x, pad.location.y, pad.is_full_boost) for pad in field.boost_pads
            ]
        self._timer = dialect.get("pad_timer")
        self._away: dict[int, _Away] = {}
        self.taken: dict[int, list[bool]] = {}

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        pads = step.packet.boost_pads
        self.taken = {}
        if len(pads) != len(self._places):
            findings.add("boost_pads", f"{len(pads)} long", f"{len(self._places)}, as in the field info")
            return
        if step.reset:
            self._away.clear()
        there = step.phase == Phase.COUNTDOWN or (step.reset and step.exact)
        for number, pad in enumerate(pads):
            active = pad.is_active
            if active and number not in self._away and pad.timer == 0.0:
                continue
            if there and not active:
                findings.add(
                    f"boost_pads[{number}].is_active", False, "True: all pads are there at a kickoff"
                )
            if active:
                self._there(step, findings, number, pad)
            else:
                self._gone(step, findings, number, pad)

    def _there(self, step: Step, findings: Findings, number: int, pad: flat.BoostPadState) -> None:
        if pad.timer != 0.0:
            findings.add(f"boost_pads[{number}].timer", shown(pad.timer), "0 while the pad is there")
        away = self._away.pop(number, None)
        if away is None:
            return
        least, _ = PAD_TICKS[self._places[number].big]
        back_after = away.most + step.ticks[1]
        if back_after < least and (step.followed or step.bounded):
            findings.add(
                f"boost_pads[{number}].is_active", f"True after {back_after} ticks", f"False for {least}"
            )

    def _gone(self, step: Step, findings: Findings, number: int, pad: flat.BoostPadState) -> None:
        """Read a pad that is away: newly, still, or again."""
        name, big = f"boost_pads[{number}]", self._places[number].big
        timer, period = pad.timer, PAD_SECONDS[big]
        if not -TIMER_SLACK <= timer <= period + TIMER_SLACK:
            findings.add(f"{name}.timer", shown(timer), f"0..{period:g}")
            return
        away = self._away.get(number)
        if step.before is None or not step.followed:
            # Taken, kept or back and taken again, nobody knows: the timer alone tells.
            if step.bounded and away is not None:
                self._hold_lost(step, findings, number, timer, away)
            self._away[number] = self._by_timer(timer, period)
            return
        least, most = PAD_TICKS[big]
        if away is not None:
            away.least += step.ticks[0]
            away.most += step.ticks[1]
            if self._fits(timer, period, away.least, away.most) and away.least < most:
                return
            if away.most < least or not self._fits(timer, period, self._at_pickup, self._at_pickup):
                late = away.least >= most
                expected = (
                    f"away for {most} ticks at most, not for {away.least}" if late
                    else f"{self._expected(period, away.least)}, {away.least} ticks after the pickup"
                )  # fmt: skip
                findings.add(f"{name}.timer", shown(timer), expected)
                self._away[number] = self._by_timer(timer, period)
                return
        elif not self._fits(timer, period, self._at_pickup, self._at_pickup):
            findings.add(
                f"{name}.timer", shown(timer), f"{self._expected(period, self._at_pickup)} at the pickup"
            )
        self._away[number] = _Away(self._at_pickup, self._at_pickup)
        self._taken(step, findings, number)

    def _hold_lost(self, step: Step, findings: Findings, number: int, timer: float, away: _Away) -> None:
        """Hold a pad against the last time it was seen, with packets lost between."""
        big = self._places[number].big
        most = away.most + step.ticks[1]
        if most >= PAD_TICKS[big][0] or self._timer is None:
            return
        if not self._fits(timer, PAD_SECONDS[big], away.least + step.ticks[0], most):
            expected = f"the time of a pad that was taken {most} ticks ago"
            findings.add(f"boost_pads[{number}].timer", shown(timer), expected)

    def _taken(self, step: Step, findings: Findings, number: int) -> None:
        """Find the cars that may have taken a pad in this tick."""
        place, near = self._places[number], False
        for slot, player in enumerate(step.packet.players):
            spot = player.physics.location
            if player.demolished_timeout >= 0.0 or spot.z > PAD_HEIGHT:
                continue
            if hypot(spot.x - place.x, spot.y - place.y) <= PAD_REACH[place.big]:
                near = True
                self.taken.setdefault(slot, []).append(place.big)
        if not near:
            findings.add(f"boost_pads[{number}].is_active", False, "True: no car is near")

    def _fits(self, timer: float, period: float, least: int, most: int) -> bool:
        """Tell whether a timer shows a time between two numbers of ticks since the pickup."""
        low, high = least / TICKS_PER_SECOND - TIMER_SLACK, most / TICKS_PER_SECOND + TIMER_SLACK
        elapsed = low <= timer <= high
        remaining = low <= period - timer <= high
        if self._timer == "elapsed":
            return elapsed
        return remaining if self._timer == "remaining" else elapsed or remaining

    def _by_timer(self, timer: float, period: float) -> _Away:
        if self._timer is None:
            return _Away(0, round(period * TICKS_PER_SECOND))
        ticks = round((timer if self._timer == "elapsed" else period - timer) * TICKS_PER_SECOND)
        return _Away(ticks, ticks)

    def _expected(self, period: float, ticks: int) -> str:
        elapsed = ticks / TICKS_PER_SECOND
        if self._timer is None:
            return f"{elapsed:.4f} or {period - elapsed:.4f}"
        return f"{elapsed if self._timer == 'elapsed' else period - elapsed:.4f}"
