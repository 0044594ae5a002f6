"""Jumps and dodges: air state, the three flags, and the two timers."""

from math import hypot
from typing import Final

from rlbot import flat

from rlgym_bridge.game import DODGE_DEADLINE_SECONDS, TICK_SECONDS
from rlgym_bridge.protocol_variant import ProtocolVariant
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.limits import MAX_HOLD_SECONDS, TIMER_SLACK, UNIT_SLACK, Rules

_ON_GROUND: Final = flat.AirState.OnGround
_JUMPING: Final = flat.AirState.Jumping
_DOUBLE_JUMPING: Final = flat.AirState.DoubleJumping
_DODGING: Final = flat.AirState.Dodging
_IN_AIR: Final = flat.AirState.InAir

# air state -> what it says of has_jumped, has_double_jumped, has_dodged; None for nothing
_FLAGS: Final[dict[int, tuple[bool | None, bool | None, bool | None]]] = {
    int(_ON_GROUND): (None, False, False),
    int(_JUMPING): (True, False, False),
    int(_DOUBLE_JUMPING): (None, True, False),
    int(_DODGING): (None, False, True),
    int(_IN_AIR): (None, None, None),
}
_NAMES: Final = ("has_jumped", "has_double_jumped", "has_dodged")


class Jumps:
    """Holds what a packet says of jumps against itself and the packet before."""

    def __init__(self, dialect: ProtocolVariant, rules: Rules) -> None:
        self._flags_last = self._dodge_is_a_jump = rules.rocketsim3
        self._formula = dialect.get("dodge_timeout")
        self._jumping = dialect.get("dodge_timeout_jumping")
        self._used = dialect.get("dodge_timeout_used")
        self._expired = dialect.get("dodge_timeout_expired")
        self._longest = DODGE_DEADLINE_SECONDS
        if self._formula != "after_jump":
            self._longest += MAX_HOLD_SECONDS

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        before = step.before.players if step.before is not None and step.followed else None
        for slot, player in enumerate(step.packet.players):
            if player.demolished_timeout >= 0.0:
                continue
            flags = (player.has_jumped, player.has_double_jumped, player.has_dodged)
            landed = before is None or before[slot].air_state != _ON_GROUND
            if player.air_state != _ON_GROUND or not (self._flags_last and landed):
                self._state(slot, player, flags, findings)
            self._timeout_alone(slot, player, flags, findings)
            earlier = before[slot] if before and slot < len(before) else None
            if earlier is not None and earlier.demolished_timeout < 0.0:
                self._elapsed(slot, player, earlier, step.ticks[1], findings)
                self._timeout(slot, player, earlier, step.ticks[1], findings)

    @staticmethod
    def _state(
        slot: int, player: flat.PlayerInfo, flags: tuple[bool, bool, bool], findings: Findings
    ) -> None:
        state = player.air_state
        for name, flag, expected in zip(_NAMES, flags, _FLAGS[int(state)], strict=True):
            if expected is not None and flag is not expected:
                findings.add(f"players[{slot}].{name}", flag, f"{expected} in air_state {state}")
        if flags[1] and flags[2]:
            findings.add(f"players[{slot}].has_dodged", True, "False after a double jump")
        elapsed, to = player.dodge_elapsed, player.dodge_dir
        if not (elapsed == 0.0 if not flags[2] else elapsed > 0.0):
            expected = "more than 0 after a dodge" if flags[2] else "0 without has_dodged"
            findings.add(f"players[{slot}].dodge_elapsed", shown(elapsed), expected)
        if to.x or to.y:
            length = hypot(to.x, to.y)
            if not abs(length - 1.0) <= UNIT_SLACK:
                findings.add(
                    f"players[{slot}].dodge_dir", f"{shown(length)} long", "a unit vector, or (0, 0)"
                )

    @staticmethod
    def _elapsed(
        slot: int, player: flat.PlayerInfo, before: flat.PlayerInfo, ticks: int, findings: Findings
    ) -> None:
        if not player.has_dodged:
            return
        expected = before.dodge_elapsed + ticks * TICK_SECONDS
        if before.has_dodged and player.dodge_elapsed < before.dodge_elapsed:
            expected = ticks * TICK_SECONDS  # landed and dodged again
        if not abs(player.dodge_elapsed - expected) <= TIMER_SLACK:
            findings.add(f"players[{slot}].dodge_elapsed", shown(player.dodge_elapsed), shown(expected))

    def _timeout_alone(
        self, slot: int, player: flat.PlayerInfo, flags: tuple[bool, bool, bool], findings: Findings
    ) -> None:
        timeout, state = player.dodge_timeout, player.air_state
        name = f"players[{slot}].dodge_timeout"
        if timeout == -1.0:
            if state == _JUMPING and self._jumping == "full":
                findings.add(name, -1.0, "the whole time while jumping")
            return
        if not 0.0 <= timeout <= self._longest + TIMER_SLACK:
            findings.add(name, timeout, f"-1, or 0..{self._longest:g}")
        elif state == _ON_GROUND:
            findings.add(name, shown(timeout), "-1 on the ground")
        elif not flags[0]:
            findings.add(name, shown(timeout), "-1 without has_jumped")
        elif state == _JUMPING:
            if self._jumping == "minus_one":
                findings.add(name, shown(timeout), "-1 while jumping")
            elif timeout < DODGE_DEADLINE_SECONDS - TIMER_SLACK:
                findings.add(name, shown(timeout), "the whole time while jumping")
        elif (flags[1] or flags[2]) and self._used == "minus_one":
            findings.add(name, shown(timeout), "-1 after a dodge or double jump")
        elif timeout == 0.0 and self._expired == "minus_one":
            findings.add(name, 0.0, "-1 when the time is up")

    def _timeout(
        self, slot: int, player: flat.PlayerInfo, before: flat.PlayerInfo, ticks: int, findings: Findings
    ) -> None:
        """Hold the timer in the air against the packet before: it begins with the jump's end and falls."""
        now, then = player.dodge_timeout, before.dodge_timeout
        name = f"players[{slot}].dodge_timeout"
        if player.air_state == _JUMPING or (now <= 0.0 and then <= 0.0):
            return
        if before.air_state == _JUMPING:
            least = DODGE_DEADLINE_SECONDS - 1.5 * TICK_SECONDS
            if now > 0.0 and now < least:
                findings.add(name, shown(now), f"{least:.4f} or more when the jump ends")
        elif now > 0.0 and then > 0.0:
            if not abs(then - ticks * TICK_SECONDS - now) <= TIMER_SLACK:
                findings.add(name, shown(now), f"{then - ticks * TICK_SECONDS:.4f}")
        elif now > 0.0:
            used, had = (one.has_dodged or one.has_double_jumped for one in (player, before))
            jumps = self._dodge_is_a_jump and (not before.has_jumped or (had and not used))
            if before.air_state != _ON_GROUND and not jumps:
                findings.add(name, shown(now), f"{shown(then)} still: no jump has ended")
        elif then > (ticks + 0.5) * TICK_SECONDS:
            used = player.has_dodged or player.has_double_jumped
            if player.air_state != _ON_GROUND and player.has_jumped and not used:
                findings.add(name, shown(now), f"{then - ticks * TICK_SECONDS:.4f}: not used and not landed")
