"""Count in ticks the times that packets do not carry: boost, jump, dodge, handbrake, supersonic.

Each counter knows whether it is exact. After joining a match or losing a packet it is an estimate, until
the car lands, releases boost, or has had time to ramp its handbrake to the end. RocketSim 3 counts jumps and
boost otherwise than RocketSim 2.2.1: a simulator's own way is counted. The thresholds were measured tick by
tick.
"""

import numpy as np
from rlbot import flat

from rlgym_bridge.game import (
    BOOST_MIN_SECONDS,
    BOOST_PER_SECOND,
    DODGE_DEADLINE_SECONDS,
    HANDBRAKE_FALL_PER_SECOND,
    HANDBRAKE_RISE_PER_SECOND,
    JUMP_MAX_SECONDS,
    TICK_SECONDS,
    TICKS_PER_SECOND,
)
from rlgym_bridge.packets.dialect_detector import DialectDetector

ON_GROUND = int(flat.AirState.OnGround)
JUMPING = int(flat.AirState.Jumping)
DODGE_TICKS = round(DODGE_DEADLINE_SECONDS * TICKS_PER_SECOND)
"""Ticks from the end of a jump to the last one on which a dodge is possible."""

_RISE = HANDBRAKE_RISE_PER_SECOND * TICK_SECONDS
_FALL = HANDBRAKE_FALL_PER_SECOND * TICK_SECONDS
_BOOST_MIN_TICKS = round(BOOST_MIN_SECONDS * TICKS_PER_SECOND)
_LONGEST_TIMEOUT = 2.0  # s, a little more than in any dialect; infinity cannot be converted to ticks
_MOST_HOLD_TICKS = round(JUMP_MAX_SECONDS * TICKS_PER_SECOND)  # added to the deadline in some dialects
_FULL = 100.0  # boost, at which a pad or a mutator may have made up for what was used
_BURNT_A_TICK = BOOST_PER_SECOND * TICK_SECONDS
_COST = float(np.float32(BOOST_PER_SECOND) * np.float32(TICK_SECONDS))  # of a tick in RocketSim 3
_AIR_SECONDS = np.cumsum(np.full(1200, TICK_SECONDS, np.float32), dtype=np.float32).tolist()
"""Seconds after 1, 2, ... ticks as the simulator sums them up in float32: just below 1.25 after 150, so that
a dodge is still possible on that tick."""


class CarTimers:
    """The times of one car, followed packet by packet."""

    __slots__ = (
        "_air_known", "_air_ticks", "_boost", "_boost_doubt", "_boost_ticks", "_detector", "_grounded",
        "_had_jumped", "_hand", "_hand_high", "_hand_low", "_hold_known", "_hold_ticks", "_jump_known",
        "_jump_ticks", "_jumping", "_new", "_of_rocketsim3", "_supersonic_known", "_supersonic_ticks",
        "_was_spent",
    )  # fmt: skip

    def __init__(self, detector: DialectDetector, of_rocketsim3: bool) -> None:
        self._detector, self._of_rocketsim3 = detector, of_rocketsim3
        self._hand = 0.0  # the best guess
        self.forget()

    def forget(self) -> None:
        """Forget what was counted: it no longer holds."""
        self._new = True
        self._supersonic_ticks, self._supersonic_known = 0, False
        self._boost_ticks, self._boost_doubt, self._boost = 0, _BOOST_MIN_TICKS, 0.0
        self._hand_low, self._hand_high = 0.0, 1.0
        self._jump_ticks, self._jump_known, self._jumping = 0, False, False
        self._hold_ticks, self._hold_known = 0, False  # of the last jump, while its button was held
        self._air_ticks, self._air_known = 0, False
        self._had_jumped = self._grounded = self._was_spent = False  # in the packet before

    def rest(self) -> None:
        """Treat the car as new: it stands on its kickoff spot, or has just respawned."""
        self.forget()
        self._hand = self._hand_high = 0.0
        self._supersonic_known = self._jump_known = self._air_known = self._grounded = True
        self._boost_doubt = 0

    def _count(
        self, supersonic: bool, boost: float, boosting: bool, handbrake: bool, has_jumped: bool,
        air_state: int, timeout: float, spent: bool, ticks: int,
    ) -> None:  # fmt: skip
        """Update the counters that are running, begin now or are uncertain."""
        gap = ticks > 1 or self._new
        if supersonic or self._supersonic_ticks or gap:
            self._count_supersonic(supersonic, ticks, gap)
        if boosting or self._boost_ticks or self._boost_doubt or gap:
            self._count_boost(boost, boosting, ticks, gap)
        if handbrake or self._hand_high or gap:
            self._count_handbrake(handbrake, ticks)
        if has_jumped or self._had_jumped or self._jump_ticks or self._air_ticks or gap:
            self._count_jump(has_jumped, air_state, timeout, spent, ticks, gap)
        self._had_jumped, self._grounded, self._was_spent = has_jumped, air_state == ON_GROUND, spent

    def _count_supersonic(self, supersonic: bool, ticks: int, gap: bool) -> None:
        if not supersonic:
            self._supersonic_ticks, self._supersonic_known = 0, True
            return
        if self._supersonic_ticks == 0:
            self._supersonic_known = not gap
        self._supersonic_ticks += ticks

    def _count_boost(self, boost: float, pressed: bool, ticks: int, gap: bool) -> None:
        """Count how long boost has been burning.

        After a gap the boost left shows for how many ticks it burnt, if no pad was picked up. Otherwise it
        may still burn from a press that no packet showed. The count is uncertain until the button has been
        released for the shortest burn, or no boost is left.
        """
        if gap and self._boost_doubt == 0 and not self._new and self._read_boost_used(boost, pressed, ticks):
            return
        # Without boost before the tick nothing burns, even if a pad is picked up on that tick.
        fuel = self._boost > 0 or (self._new and boost > 0)
        if gap:
            self._boost_doubt = _BOOST_MIN_TICKS
        elif self._boost_doubt:
            self._boost_doubt = _BOOST_MIN_TICKS if pressed else self._boost_doubt - 1
        if not fuel and not gap:
            self._boost_doubt = 0
        if self._boost_ticks and not gap:
            if self._of_rocketsim3:
                fuel = self._boost - _COST > 0  # a tick that burns begins with the cost of the one before
            elif boost == self._boost < _FULL and not pressed:
                fuel = False  # none was used: a state that was set has ended the burn
        if (pressed or 0 < self._boost_ticks < _BOOST_MIN_TICKS) and fuel:
            self._boost_ticks += ticks
        else:
            self._boost_ticks = 0

    def _read_boost_used(self, boost: float, pressed: bool, ticks: int) -> bool:
        """Reconstruct a gap from the boost used in it; tell whether that was possible."""
        burnt = (self._boost - boost) / _BURNT_A_TICK
        count = round(burnt)
        # At 100 a pad may have filled it, or boost is unlimited; at 0 it has stopped burning at some tick.
        if abs(burnt - count) > 0.05 or not 0 <= count <= min(ticks, _BOOST_MIN_TICKS) or not 0 < boost < 100:
            return False
        if count == ticks:
            self._boost_ticks += ticks
        elif count == 0 or (self._boost_ticks and not pressed):
            self._boost_ticks = 0
        elif self._boost_ticks == 0 and pressed:
            self._boost_ticks = count
        else:
            return False
        return True

    def _count_handbrake(self, pressed: bool, ticks: int) -> None:
        """Update the best guess with its lower and upper bound, which meet within half a second."""
        if ticks > 1:
            self._hand_low = max(0.0, self._hand_low - _FALL * (ticks - 1))
            self._hand_high = min(1.0, self._hand_high + _RISE * (ticks - 1))
        change = _RISE if pressed else -_FALL
        self._hand_low = min(1.0, max(0.0, self._hand_low + change))
        self._hand_high = min(1.0, max(0.0, self._hand_high + change))
        self._hand = min(self._hand_high, max(self._hand_low, self._hand + change * ticks))

    def _count_jump(
        self, has_jumped: bool, air_state: int, timeout: float, spent: bool, ticks: int, gap: bool
    ) -> None:
        jumping = air_state == JUMPING
        if not has_jumped:
            self._jump_ticks, self._jump_known = 0, True
        elif self._of_rocketsim3 and not (jumping or self._jump_ticks or gap):
            self._jump_known = True  # RocketSim 3 says so of a dodge without a jump, too
        elif self._jump_ticks == 0 or (jumping and not self._jumping):
            self._jump_ticks, self._jump_known = ticks, not gap
        else:
            self._jump_ticks += ticks
        was_jumping, self._jumping = self._jumping, jumping
        if jumping:
            self._hold_ticks, self._hold_known = self._jump_ticks, self._jump_known
        elif was_jumping and gap:
            self._hold_known = False  # its end was not seen
        if self._of_rocketsim3 and not gap:
            # It looks at the wheels and at the end of a jump one tick late; landing ends a dodge.
            landed = self._grounded or (self._was_spent and not spent)
            at_zero = jumping or was_jumping or landed or not self._had_jumped
        else:
            at_zero = jumping or air_state == ON_GROUND or not has_jumped
        if at_zero:
            self._air_ticks, self._air_known = 0, True
            if was_jumping and not jumping and has_jumped and air_state != ON_GROUND:  # of RocketSim 3
                self._observe_hold(timeout)
            return
        if gap and timeout >= 0:
            self._air_ticks = self._ticks_of(timeout)
            adds_hold = self._detector.adds_hold
            self._air_known = adds_hold is not None and (self._hold_known or not adds_hold)
            return
        self._air_ticks += ticks
        self._air_known = self._air_known and not gap
        if was_jumping:
            self._observe_hold(timeout)
        # The packet decides whether a dodge is left, whatever was counted.
        if timeout < 0 and not spent and air_state != ON_GROUND:
            if self._air_known and self._air_ticks < DODGE_TICKS - _MOST_HOLD_TICKS:
                self._air_ticks = 0  # too early: the car stands, on fewer wheels than the packet counts
            else:
                self._air_ticks = max(self._air_ticks, DODGE_TICKS + 1)
        elif timeout > 0 and self._air_ticks > DODGE_TICKS:
            self._air_ticks = self._ticks_of(timeout)

    def _observe_hold(self, timeout: float) -> None:
        """Look whether the timeout of a jump that has just ended holds the time for which it pushed."""
        observing = self._hold_known and "adds_hold" in self._detector.undecided
        if observing and 0 < timeout < _LONGEST_TIMEOUT:
            more = _ticks_since_jump(timeout) + self._hold_ticks - self._air_ticks
            self._detector.observe("adds_hold", abs(more) < 0.5 * self._hold_ticks)

    def _ticks_of(self, timeout: float) -> int:
        """Return the ticks since the jump ended, 0 or more."""
        return max(0, _ticks_since_jump(timeout) + (self._hold_ticks if self._detector.adds_hold else 0))


def seconds_in_air(ticks: int) -> float:
    """Return the time since the jump ended as the simulator sums it up, s."""
    if ticks == 0:
        return 0.0
    return _AIR_SECONDS[ticks - 1] if ticks <= len(_AIR_SECONDS) else ticks * TICK_SECONDS


def _ticks_since_jump(timeout: float) -> int:
    return round((DODGE_DEADLINE_SECONDS - min(_LONGEST_TIMEOUT, timeout)) * TICKS_PER_SECOND)
