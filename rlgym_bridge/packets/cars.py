"""Write one car of a packet into a `MatchState`: what packets carry is copied, the rest is counted.

The thresholds were measured in RocketSim tick by tick.
"""

import struct
from math import dist, nan
from operator import attrgetter

import numpy as np
from rlbot import flat

from rlgym_bridge import game
from rlgym_bridge.game import DODGE_DEADLINE_SECONDS, FLIP_TORQUE_SECONDS, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.protocol_variant import VariantDetector
from rlgym_bridge.rotations import rotation_of
from rlgym_bridge.state import CAR_FORMAT

ON_GROUND = int(flat.AirState.OnGround)
JUMPING = int(flat.AirState.Jumping)
DODGE_TICKS = round(DODGE_DEADLINE_SECONDS * TICKS_PER_SECOND)
"""Ticks from the end of a jump to the last one on which a dodge is possible."""

_RISE = game.HANDBRAKE_RISE_PER_SECOND * TICK_SECONDS
_FALL = game.HANDBRAKE_FALL_PER_SECOND * TICK_SECONDS
_BOOST_MIN_TICKS = round(game.BOOST_MIN_SECONDS * TICKS_PER_SECOND)
_LONGEST_TIMEOUT = 2.0  # s, a little more than in any dialect; infinity cannot be converted to ticks
_MOST_HOLD_TICKS = round(game.JUMP_MAX_SECONDS * TICKS_PER_SECOND)  # added to the deadline in some dialects
_FULL = 100.0  # boost, at which a pad or a mutator may have made up for what was used
_BURNT_A_TICK = game.BOOST_PER_SECOND * TICK_SECONDS
_COST = float(np.float32(game.BOOST_PER_SECOND) * np.float32(TICK_SECONDS))  # of a tick in RocketSim 3
_AIR_SECONDS = np.cumsum(np.full(1200, TICK_SECONDS, np.float32), dtype=np.float32).tolist()
"""Seconds after 1, 2, ... ticks as the simulator sums them up in float32: just below 1.25 after 150, so that
a dodge is still possible on that tick."""


def seconds_in_air(ticks: int) -> float:
    """Return the time since the jump ended as the simulator sums it up, s."""
    if ticks == 0:
        return 0.0
    return _AIR_SECONDS[ticks - 1] if ticks <= len(_AIR_SECONDS) else ticks * TICK_SECONDS


def _ticks_since_jump(timeout: float) -> int:
    return round((DODGE_DEADLINE_SECONDS - min(_LONGEST_TIMEOUT, timeout)) * TICKS_PER_SECOND)


_ANGLES = attrgetter("pitch", "yaw", "roll")
_NOWHERE = (nan,) * 9


def matrix(rotation: flat.Rotator) -> tuple[float, ...]:
    """Return the nine numbers of a packet's rotation, row by row; NaN where an angle is infinite or NaN.

    What float32 angles cost an element is below 1e-6 where the server takes them as this project's does, and
    up to 3e-4 within a degree of vertical where each was taken by itself.
    """
    try:
        return rotation_of(*_ANGLES(rotation))
    except ValueError:  # an angle is infinite
        return _NOWHERE


_WHEELS_TOUCH_TICKS = 5  # a jumping car's wheels still touch for this many ticks [RocketSim 2.2.1, measured]
_PLAYER = attrgetter(
    "player_id", "team", "physics", "boost", "air_state", "has_jumped", "has_double_jumped",
    "has_dodged", "dodge_elapsed", "dodge_dir", "dodge_timeout", "demolished_timeout",
    "is_supersonic", "latest_touch", "last_input",
)  # fmt: skip
_PACK = struct.Struct(CAR_FORMAT).pack_into
_PHYSICS = attrgetter("location", "rotation", "velocity", "angular_velocity")
_XYZ = attrgetter("x", "y", "z")
_CONTROLS = attrgetter(*game.CONTROL_NAMES)
_LEAP = 40.0  # uu a tick; at its top speed of 2,300 uu/s a car moves 19
_ORIGIN = (0.0, 0.0, 0.0)
_AIRBORNE = (0.0,) * 4
_GROUNDED = (1.0,) * 4


class CarCounters:
    """One car of a live match, followed packet by packet, with the times that packets do not carry, in ticks.

    A counter is exact or an estimate. After joining a match or losing a packet it is an estimate, until the
    car lands, releases boost, or has had time to ramp its handbrake to the end. RocketSim 3 counts jumps and
    boost otherwise than RocketSim 2.2.1: a simulator's own way is counted.
    """

    __slots__ = (
        "_air_known", "_air_ticks", "_boost", "_boost_doubt", "_boost_ticks", "_demolished", "_detector",
        "_dodged", "_grounded", "_had_jumped", "_hand", "_hand_high", "_hand_low", "_hold_known",
        "_hold_ticks", "_jump_known", "_jump_ticks", "_jumping", "_motion", "_new", "_of_rocketsim3",
        "_pose", "_supersonic_known", "_supersonic_ticks", "_touch_seconds", "_touches_known", "_was_spent",
        "_wheels", "_wheels_known", "touches",
    )  # fmt: skip

    def __init__(self, detector: VariantDetector, of_rocketsim3: bool) -> None:
        self._detector, self._of_rocketsim3 = detector, of_rocketsim3
        self._hand = 0.0  # the best guess
        self.forget()
        self._dodged = True  # since the car was new; a packet's dodge before that is from its last life
        self.touches = 0  # since the last decision; the decoder clears it
        self._touch_seconds = -1.0

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
        self._pose: tuple[float, ...] | None = None  # one tick ago
        self._motion: tuple[float, ...] = (0.0,) * 6
        self._wheels: tuple[float, ...] = _AIRBORNE
        self._wheels_known = self._touches_known = self._demolished = False

    def rest(self) -> None:
        """Treat the car as new: it stands on its kickoff spot, or has just respawned."""
        self.forget()
        self._hand = self._hand_high = 0.0
        self._supersonic_known = self._jump_known = self._air_known = self._grounded = True
        self._boost_doubt = 0
        self.touches, self._dodged = 0, False

    def clear_touches(self) -> None:
        """Set the touches to zero, after a decision has seen them."""
        self.touches, self._touches_known = 0, True

    def write(
        self, target: memoryview, offset: int, player: flat.PlayerInfo, ticks: int, hitbox: int, at_rest: bool
    ) -> None:
        """Update the counters from a packet's player and write the car, the fields of `state.CAR_FIELDS`.

        They go as float32 into `target`, the state's buffer as bytes, from `offset` on. `ticks` have passed
        since the last packet, 0 for a repeated frame. `at_rest`: nothing has moved yet, as in a countdown.
        """
        # One call each into the flatbuffer's objects: attribute by attribute takes half as long again.
        (
            player_id, team, physics, boost, air, has_jumped, double_jumped, flipped, elapsed, dodge,
            timeout, respawn, supersonic, touch, inputs,
        ) = _PLAYER(player)  # fmt: skip
        place, rotation, velocity, spin = _PHYSICS(physics)
        controls = _CONTROLS(inputs)
        holding, boosting, handbrake = controls[5:]
        air_state, spent, here, before = int(air), flipped or double_jumped, _XYZ(place), self._pose
        if at_rest:
            self.rest()
            self._wheels = _GROUNDED
        elif ticks and (respawn < 0 or not self._demolished):  # counters of a demolished car stand still
            if self._follow(here, boost, respawn, ticks):
                self._count(
                    supersonic, boost, boosting, handbrake, has_jumped, air_state, timeout, spent, ticks
                )
            else:
                holding = False
            self._count_wheels(air_state, hitbox, ticks)
            self._demolished = respawn >= 0
        self._boost, self._dodged = boost, self._dodged or flipped
        if touch is not None:
            self._count_touch(touch.game_seconds)
        self._new, self._touches_known = False, self._touches_known and ticks <= 1
        pose = (*here, *matrix(rotation))
        motion: tuple[float, ...] = _XYZ(velocity) + _XYZ(spin)
        if respawn >= 0 and self._is_displaced(here):
            pose, motion = before or pose, self._motion
        self._pose, self._motion = pose, motion
        wheels, boost_ticks, supersonic_ticks = self._wheels, self._boost_ticks, self._supersonic_ticks
        grounded, has_flip = sum(wheels) >= 3, not spent and self._air_ticks <= DODGE_TICKS
        torque_x, torque_y = (-dodge.y, dodge.x) if self._dodged else (0.0, 0.0)
        _PACK(
            target, offset, player_id, team, hitbox, *pose, *motion, boost, max(respawn, 0.0),
            *wheels, supersonic_ticks * TICK_SECONDS, boost_ticks * TICK_SECONDS, self._hand, has_jumped,
            holding, air_state == JUMPING, self._jump_ticks * TICK_SECONDS, flipped, double_jumped,
            seconds_in_air(self._air_ticks), elapsed, torque_x, torque_y, 0.0, 0.0, 0.0, 0.0, -1.0,
            self.touches, *controls, grounded, respawn > 0, boost_ticks > 0, supersonic_ticks > 0,
            flipped and elapsed < FLIP_TORQUE_SECONDS, has_flip, has_flip and not grounded and not holding,
            self._wheels_known, self._supersonic_known, self._boost_doubt == 0,
            self._hand_high - self._hand_low < 1e-6, self._jump_known, self._air_known, 0.0, 0.0,
            self._touches_known,
        )  # fmt: skip

    def _count(
        self, supersonic: bool, boost: float, boosting: bool, handbrake: bool, has_jumped: bool,
        air_state: int, timeout: float, spent: bool, ticks: int,
    ) -> None:  # fmt: skip
        gap = ticks > 1 or self._new
        if supersonic or self._supersonic_ticks or gap:
            if not supersonic or self._supersonic_ticks == 0:
                self._supersonic_known = not (supersonic and gap)
            self._supersonic_ticks = self._supersonic_ticks + ticks if supersonic else 0
        if boosting or self._boost_ticks or self._boost_doubt or gap:
            self._count_boost(boost, boosting, ticks, gap)
        if handbrake or self._hand_high or gap:
            self._count_handbrake(handbrake, ticks)
        if has_jumped or self._had_jumped or self._jump_ticks or self._air_ticks or gap:
            self._count_jump(has_jumped, air_state, timeout, spent, ticks, gap)
        self._had_jumped, self._grounded, self._was_spent = has_jumped, air_state == ON_GROUND, spent

    def _count_boost(self, boost: float, pressed: bool, ticks: int, gap: bool) -> None:
        """Count how long boost has been burning; uncertain until the shortest burn is over."""
        if gap and self._boost_doubt == 0 and not self._new and self._read_boost_used(boost, pressed, ticks):
            return
        # Without boost before the tick nothing burns, even if a pad is picked up on that tick.
        fuel = self._boost > 0 or (self._new and boost > 0)
        if gap:
            self._boost_doubt = _BOOST_MIN_TICKS
        elif self._boost_doubt:
            self._boost_doubt = _BOOST_MIN_TICKS if pressed else self._boost_doubt - 1
            if not pressed and 0 < boost == self._boost < _FULL:  # no tick took any: nothing burns
                self._boost_ticks = self._boost_doubt = 0
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
        if abs(burnt - count) > 0.05 or not 0 <= count <= ticks or not 0 < boost < _FULL:
            return False
        if count and ticks > _BOOST_MIN_TICKS:
            return False
        found = self._burns_after(count, pressed, ticks)
        if len(found) != 1:
            return False
        (self._boost_ticks,) = found
        return True

    def _burns_after(self, count: int, pressed: bool, ticks: int) -> set[int]:
        """Return all possible lengths of the burn after a gap that cost `count` ticks of boost.

        Only the last of the gap's inputs is known. RocketSim 3 takes a tick's boost on the tick after it.
        """
        burns = {(self._boost_ticks, 0)}  # how long it has been burning, and what the gap has cost by then
        for tick in range(ticks):
            inputs = (pressed,) if tick == ticks - 1 else (False, True)
            burns = {
                (after, cost)
                for length, cost_before in burns
                for is_pressed in inputs
                for after in [length + 1 if is_pressed or 0 < length < _BOOST_MIN_TICKS else 0]
                if (cost := cost_before + ((length if self._of_rocketsim3 else after) > 0)) <= count
            }
        return {length for length, cost in burns if cost == count}

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
            # RocketSim 3 clears it on the tick after a landing, and that of a gap may be its last tick.
            stood = not self._had_jumped or self._grounded or (self._was_spent and not spent)
            known = stood or jumping or not (gap and self._of_rocketsim3)
            self._air_ticks, self._air_known = 0, known
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
        return max(0, _ticks_since_jump(timeout) + (self._hold_ticks if self._detector.adds_hold else 0))

    def _follow(self, here: tuple[float, float, float], boost: float, respawn: float, ticks: int) -> bool:
        """Begin anew where the car is another or elsewhere; return whether its inputs have acted."""
        before = self._pose
        if self._demolished:
            self.rest()
            self._boost, self._new = boost, False
            return not self._of_rocketsim3
        if before is not None and respawn < 0 and dist(here, before[:3]) > _LEAP * ticks:
            self.forget()  # somebody put the car there: the counts are from another place
        return True

    def _is_displaced(self, here: tuple[float, float, float]) -> bool:
        """Tell whether the server shows a demolished car at the origin; its last position is used then."""
        if "at_origin" in self._detector.undecided:
            self._detector.observe("at_origin", here == _ORIGIN)
        return self._detector.at_origin is True

    def _count_wheels(self, air_state: int, hitbox: int, ticks: int) -> None:
        """Estimate which wheels touch: by geometry over the flat floor, else all or none by the air state."""
        if self._demolished:  # it has come back in the air
            self._wheels, self._wheels_known = _AIRBORNE, ticks == 1
            return
        self._wheels_known = False
        grounded = air_state == ON_GROUND
        if self._pose is not None and ticks == 1:
            wheels = floor_contact(self._pose, hitbox)
            # The packet's air state takes precedence, except while a jump pushes: it says nothing then.
            if wheels is not None and (
                air_state == JUMPING or (sum(wheels) >= self._detector.wheels_on_ground) == grounded
            ):
                self._wheels = wheels
                return
        lifting = air_state == JUMPING and self._jump_ticks <= _WHEELS_TOUCH_TICKS
        self._wheels = _GROUNDED if grounded or lifting else _AIRBORNE

    def _count_touch(self, seconds: float) -> None:
        if seconds != self._touch_seconds:
            self._touch_seconds = seconds
            if not self._new:
                self.touches += 1


_FLAT_X, _FLAT_Y, _FLAT_CORNER = 3700.0, 4700.0, 7400.0  # uu; inside, no ramp is near
_REACH_Z = 100.0  # uu; above, no wheel of an upright car reaches the floor
_UPRIGHT = 0.3  # least z of the car's up direction

_MOUNTS = tuple(
    tuple((x, side * y, z, reach) for (x, y, z, reach) in (wheels.front, wheels.back) for side in (1.0, -1.0))
    for wheels in game.WHEELS
)


def floor_contact(pose: tuple[float, ...], hitbox: int) -> tuple[float, ...] | None:
    """Return which wheels touch the flat floor in the tick after a pose, 0 or 1 each; or None.

    RocketSim casts a ray down from each wheel's mount at the start of a tick. Over the flat floor its length
    is simple geometry: in 30,000 car ticks of 2v2 play it gave every contact but those on other cars
    (measured, RocketSim 2.2.1). None where the floor is not flat, or the car not upright and near it. `pose`
    is position x, y, z in uu, then the rotation matrix row by row.
    """
    x, y, z = pose[:3]
    up = pose[11]
    if z > _REACH_Z or up < _UPRIGHT or abs(x) > _FLAT_X or abs(y) > _FLAT_Y:
        return None
    if abs(x) + abs(y) > _FLAT_CORNER:
        return None
    forward, right = pose[9], pose[10]
    a, b, c, d = _MOUNTS[hitbox]
    return (
        1.0 if z + forward * a[0] + right * a[1] + up * a[2] <= up * a[3] else 0.0,
        1.0 if z + forward * b[0] + right * b[1] + up * b[2] <= up * b[3] else 0.0,
        1.0 if z + forward * c[0] + right * c[1] + up * c[2] <= up * c[3] else 0.0,
        1.0 if z + forward * d[0] + right * d[1] + up * d[2] <= up * d[3] else 0.0,
    )
