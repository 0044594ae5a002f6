"""What a packet does not say of a car, derived by counting ticks.

Each counter knows when it is sure of itself: after joining a match or losing a packet it is an
estimate until something fixes it again (the car lands, lets go of boost, the handbrake has had time to
ramp to its end). The thresholds were read off RocketSim 2.2.1, tick by tick.
"""

import struct
from operator import attrgetter

import numpy as np
from rlbot import flat

from rlgym_bridge.game import (
    BOOST_PER_SECOND,
    CONTROL_NAMES,
    DODGE_DEADLINE_SECONDS,
    FLIP_TORQUE_SECONDS,
    HANDBRAKE_FALL_PER_SECOND,
    HANDBRAKE_RISE_PER_SECOND,
    TICK_SECONDS,
    TICKS_PER_SECOND,
)
from rlgym_bridge.live.rotation import matrix
from rlgym_bridge.live.settled import Settled
from rlgym_bridge.live.wheels import floor_contact
from rlgym_bridge.state import CAR_FORMAT

_ON_GROUND = int(flat.AirState.OnGround)
_JUMPING = int(flat.AirState.Jumping)
_RISE = HANDBRAKE_RISE_PER_SECOND * TICK_SECONDS
_FALL = HANDBRAKE_FALL_PER_SECOND * TICK_SECONDS
_BOOST_MIN_TICKS = 12  # a tapped boost burns 0.1 s
_BURNT_A_TICK = BOOST_PER_SECOND * TICK_SECONDS
_DODGE_TICKS = round(DODGE_DEADLINE_SECONDS * TICKS_PER_SECOND)
_WHEELS_TOUCH_TICKS = 5  # a jumping car's wheels still touch for this many ticks
_AIR_SECONDS = np.cumsum(np.full(1200, TICK_SECONDS, np.float32), dtype=np.float32).tolist()
"""Seconds after 1, 2, ... ticks as the simulator adds them up: after 150 a hair below 1.25, so that a
dodge is still there on that tick."""
_PLAYER = attrgetter(
    "player_id", "team", "physics", "boost", "air_state", "has_jumped", "has_double_jumped",
    "has_dodged", "dodge_elapsed", "dodge_dir", "dodge_timeout", "demolished_timeout",
    "is_supersonic", "latest_touch", "last_input",
)  # fmt: skip
_PACK = struct.Struct(CAR_FORMAT).pack_into
_PHYSICS = attrgetter("location", "rotation", "velocity", "angular_velocity")
_XYZ = attrgetter("x", "y", "z")
_CONTROLS = attrgetter(*CONTROL_NAMES)
_LEAP = 40.0  # uu a tick; at its top speed of 2,300 uu/s a car moves 19
_ORIGIN = (0.0, 0.0, 0.0)
_AIRBORNE = (0.0,) * 4
_GROUNDED = (1.0,) * 4


class CarCounters:
    """One car of a live match, packet by packet."""

    __slots__ = (
        "_air_known",
        "_air_ticks",
        "_boost",
        "_boost_doubt",
        "_boost_ticks",
        "_demolished",
        "_dodged",
        "_hand",
        "_hand_high",
        "_hand_low",
        "_hold_known",
        "_hold_ticks",
        "_jump_known",
        "_jump_ticks",
        "_jumping",
        "_motion",
        "_new",
        "_pose",
        "_settled",
        "_supersonic_known",
        "_supersonic_ticks",
        "_touch_seconds",
        "_touches_known",
        "_wheels",
        "_wheels_known",
        "touches",
    )  # fmt: skip

    def __init__(self, settled: Settled) -> None:
        self._settled = settled
        self.touches = 0  # since the last decision; the decoder clears it
        self._hand = 0.0  # the best guess
        self._touch_seconds = -1.0
        self.forget()

    def forget(self) -> None:
        """Start anew: what was counted no longer holds."""
        self._new = True
        self._pose: tuple[float, ...] | None = None  # one tick ago
        self._wheels: tuple[float, ...] = _AIRBORNE
        self._wheels_known = False
        self._demolished = False
        self._supersonic_ticks, self._supersonic_known = 0, False
        self._boost_ticks, self._boost_doubt, self._boost = 0, _BOOST_MIN_TICKS, 0.0
        self._hand_low, self._hand_high = 0.0, 1.0
        self._jump_ticks, self._jump_known, self._jumping = 0, False, False
        self._hold_ticks, self._hold_known = 0, False  # for which the last jump has pushed
        self._motion: tuple[float, ...] = (0.0,) * 6
        self._dodged = True  # since the car was new; until then the packet's dodge is of its last life
        self._air_ticks, self._air_known = 0, False
        self._touches_known = False

    def clear_touches(self) -> None:
        """Count touches anew: called when a decision has seen them."""
        self.touches, self._touches_known = 0, True

    def rest(self) -> None:
        """Take the car as new: it stands on its kickoff spot, or has just come back."""
        self.forget()
        self.touches = 0
        self._dodged = False
        self._hand = self._hand_high = 0.0
        self._supersonic_known = self._jump_known = self._air_known = True
        self._boost_doubt = 0

    def write(
        self,
        target: memoryview,
        offset: int,
        player: flat.PlayerInfo,
        ticks: int,
        hitbox: int,
        at_rest: bool,
    ) -> None:
        """Take in one packet's player and write its car, the fields of `state.CAR_FIELDS`.

        Args:
            target: The state's buffer as bytes.
            offset: Where in it the car begins.
            player: The car in this packet.
            ticks: Ticks since the last packet; 0 for a repeated frame.
            hitbox: Number of the car's hitbox.
            at_rest: Whether nothing has moved yet: countdown, and the first packet of a kickoff.
        """
        # One call each into the flatbuffer's objects: attribute by attribute takes half as long again.
        (
            player_id, team, physics, boost, air, has_jumped, double_jumped, flipped, elapsed, dodge,
            timeout, respawn, supersonic, touch, inputs,
        ) = _PLAYER(player)  # fmt: skip
        place, rotation, velocity, spin = _PHYSICS(physics)
        controls = _CONTROLS(inputs)
        holding, boosting, handbrake = controls[5:]
        air_state = int(air)
        demolished = respawn > 0
        here, before = _XYZ(place), self._pose
        alive = respawn < 0 and not self._demolished
        if ticks and alive and before is not None and _is_leap(here, before, ticks):
            self.forget()  # it was put there: what was counted belongs to another place
        if at_rest:
            self.rest()
            self._wheels = _GROUNDED
        elif ticks and not (respawn >= 0 and self._demolished):  # a demolished car's counters stand still
            if self._demolished:  # it came back in this tick, which has moved it already
                self.rest()
                self._boost, self._new = boost, False
            self._count(
                supersonic, boost, boosting, handbrake, has_jumped, air_state, timeout,
                flipped or double_jumped, ticks,
            )  # fmt: skip
            if self._demolished:
                self._wheels, self._wheels_known = _AIRBORNE, ticks == 1
            else:
                self._count_wheels(air_state, hitbox, ticks)
            self._demolished = respawn >= 0
        self._boost = boost
        self._dodged |= flipped
        if touch is not None:
            self._count_touch(touch.game_seconds)
        if ticks > 1:
            self._touches_known = False
        self._new = False
        if respawn >= 0 and self._is_displaced(here):
            pose, motion = before or (*here, *matrix(rotation)), self._motion
        else:
            pose, motion = (*here, *matrix(rotation)), (*_XYZ(velocity), *_XYZ(spin))
        self._pose, self._motion = pose, motion
        wheels, boost_ticks, supersonic_ticks = self._wheels, self._boost_ticks, self._supersonic_ticks
        grounded = sum(wheels) >= 3
        has_flip = not flipped and not double_jumped and self._air_ticks <= _DODGE_TICKS
        torque_x, torque_y = (-dodge.y, dodge.x) if self._dodged else (0.0, 0.0)
        _PACK(
            target, offset, player_id, team, hitbox, *pose, *motion,
            boost, respawn if demolished else 0.0, *wheels,
            supersonic_ticks * TICK_SECONDS, boost_ticks * TICK_SECONDS,
            self._hand, has_jumped, holding, air_state == _JUMPING,
            self._jump_ticks * TICK_SECONDS, flipped, double_jumped,
            _seconds(self._air_ticks), elapsed, torque_x, torque_y, 0.0, 0.0, 0.0, 0.0, -1.0,
            self.touches, *controls, grounded, demolished, boost_ticks > 0, supersonic_ticks > 0,
            flipped and elapsed < FLIP_TORQUE_SECONDS, has_flip,
            has_flip and not grounded and not holding,
            self._wheels_known, self._supersonic_known, self._boost_doubt == 0,
            self._hand_high - self._hand_low < 1e-6, self._jump_known, self._air_known, 0.0, 0.0,
            self._touches_known,
        )  # fmt: skip

    def _is_displaced(self, here: tuple[float, float, float]) -> bool:
        """Tell whether a demolished car is shown elsewhere: its last place stands for it then."""
        if self._settled.at_origin is None:
            self._settled.at_origin = here == _ORIGIN
        return self._settled.at_origin

    def _count(
        self, supersonic: bool, boost: float, boosting: bool, handbrake: bool, has_jumped: bool,
        air_state: int, timeout: float, spent: bool, ticks: int,
    ) -> None:  # fmt: skip
        """Count on what is under way, begins or is in doubt."""
        gap = ticks > 1 or self._new
        if supersonic or self._supersonic_ticks or gap:
            self._count_supersonic(supersonic, ticks, gap)
        if boosting or self._boost_ticks or self._boost_doubt or gap:
            self._count_boost(boost, boosting, ticks, gap)
        if handbrake or self._hand_high or gap:
            self._count_handbrake(handbrake, ticks)
        if has_jumped or self._jump_ticks or gap:
            self._count_jump(has_jumped, air_state, timeout, spent, ticks, gap)

    def _count_supersonic(self, supersonic: bool, ticks: int, gap: bool) -> None:
        if not supersonic:
            self._supersonic_ticks, self._supersonic_known = 0, True
            return
        if self._supersonic_ticks == 0:
            self._supersonic_known = not gap
        self._supersonic_ticks += ticks

    def _count_boost(self, boost: float, pressed: bool, ticks: int, gap: bool) -> None:
        """Count how long boost has burnt.

        After a gap the tank tells how many ticks it burnt, if nothing was picked up. Otherwise it may burn
        on from a tap that was not seen, or from an earlier press: in doubt until the button has been up for
        the shortest burn, or the tank is empty.
        """
        if gap and self._boost_doubt == 0 and not self._new and self._read_tank(boost, pressed, ticks):
            return
        # A tank that was empty before the tick does not burn, even where a pad fills it on that tick.
        fuel = self._boost > 0 or (self._new and boost > 0)
        if gap:
            self._boost_doubt = _BOOST_MIN_TICKS
        elif self._boost_doubt:
            self._boost_doubt = _BOOST_MIN_TICKS if pressed else self._boost_doubt - 1
        if not fuel and not gap:
            self._boost_doubt = 0
        if (pressed or 0 < self._boost_ticks < _BOOST_MIN_TICKS) and fuel:
            self._boost_ticks += ticks
        else:
            self._boost_ticks = 0

    def _read_tank(self, boost: float, pressed: bool, ticks: int) -> bool:
        """Settle a gap by the boost that burnt in it; tell whether that was possible."""
        burnt = (self._boost - boost) / _BURNT_A_TICK
        count = round(burnt)
        # Full tanks tell nothing: a pad fills them, or boost is unlimited. An empty one has stopped burning.
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
        """Keep a guess, and the least and the most that it can be; they meet within half a second."""
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
        jumping = air_state == _JUMPING
        if not has_jumped:
            self._jump_ticks, self._jump_known = 0, True
        elif self._jump_ticks == 0 or (jumping and not self._jumping):
            self._jump_ticks, self._jump_known = ticks, not gap
        else:
            self._jump_ticks += ticks
        was_jumping, self._jumping = self._jumping, jumping
        if jumping:
            self._hold_ticks, self._hold_known = self._jump_ticks, self._jump_known
        elif was_jumping and gap:
            self._hold_known = False  # it ended unseen
        if jumping or air_state == _ON_GROUND or not has_jumped:
            self._air_ticks, self._air_known = 0, True
            return
        if gap and timeout >= 0:
            self._air_ticks = self._ticks_of(timeout)
            adds_hold = self._settled.adds_hold
            self._air_known = adds_hold is not None and (self._hold_known or not adds_hold)
            return
        self._air_ticks += ticks
        self._air_known = self._air_known and not gap
        if timeout > 0 and was_jumping and self._hold_known and self._settled.adds_hold is None:
            more = _ticks_since_jump(timeout) + self._hold_ticks - self._air_ticks
            self._settled.adds_hold = abs(more) < 0.5 * self._hold_ticks
        # The packet decides whether a dodge is left, whatever was counted.
        if timeout < 0 and not spent:
            self._air_ticks = max(self._air_ticks, _DODGE_TICKS + 1)
        elif timeout > 0 and self._air_ticks > _DODGE_TICKS:
            self._air_ticks = max(self._ticks_of(timeout), 0)

    def _ticks_of(self, timeout: float) -> int:
        """Return the ticks since the jump ended."""
        return _ticks_since_jump(timeout) + (self._hold_ticks if self._settled.adds_hold else 0)

    def _count_wheels(self, air_state: int, hitbox: int, ticks: int) -> None:
        """Estimate the wheels: by geometry over the flat floor, else all or none by the air state.

        They may touch another car or the ball as well, so this is never known.
        """
        self._wheels_known = False
        grounded = air_state == _ON_GROUND
        if self._pose is not None and ticks == 1:
            wheels = floor_contact(self._pose, hitbox)
            # The packet's own word on the ground goes first; a jump's push says nothing of it.
            if wheels is not None and (air_state == _JUMPING or (sum(wheels) >= 3) == grounded):
                self._wheels = wheels
                return
        lifting = air_state == _JUMPING and self._jump_ticks <= _WHEELS_TOUCH_TICKS
        self._wheels = _GROUNDED if grounded or lifting else _AIRBORNE

    def _count_touch(self, seconds: float) -> None:
        if seconds != self._touch_seconds:
            self._touch_seconds = seconds
            if not self._new:
                self.touches += 1


def _is_leap(here: tuple[float, float, float], before: tuple[float, ...], ticks: int) -> bool:
    reach = _LEAP * ticks
    return (
        abs(here[0] - before[0]) > reach
        or abs(here[1] - before[1]) > reach
        or abs(here[2] - before[2]) > reach
    )


def _seconds(ticks: int) -> float:
    if ticks == 0:
        return 0.0
    return _AIR_SECONDS[ticks - 1] if ticks <= len(_AIR_SECONDS) else ticks * TICK_SECONDS


def _ticks_since_jump(timeout: float) -> int:
    return round((DODGE_DEADLINE_SECONDS - timeout) * TICKS_PER_SECOND)
