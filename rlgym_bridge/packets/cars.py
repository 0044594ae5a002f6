"""Write one car of a packet into a `MatchState`.

What packets carry is copied, the rest is inferred tick by tick.
"""

import struct
from math import dist
from operator import attrgetter

from rlbot import flat

from rlgym_bridge.game import CONTROL_NAMES, FLIP_TORQUE_SECONDS, TICK_SECONDS
from rlgym_bridge.packets.dialect_detector import DialectDetector
from rlgym_bridge.packets.rotation import matrix
from rlgym_bridge.packets.timers import DODGE_TICKS, JUMPING, ON_GROUND, CarTimers, seconds_in_air
from rlgym_bridge.packets.wheels import floor_contact
from rlgym_bridge.state import CAR_FORMAT

_WHEELS_TOUCH_TICKS = 5  # a jumping car's wheels still touch for this many ticks [RocketSim 2.2.1, measured]
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


class CarCounters(CarTimers):
    """One car of a live match, followed packet by packet."""

    __slots__ = (
        "_demolished", "_dodged", "_motion", "_pose", "_touch_seconds", "_touches_known", "_wheels",
        "_wheels_known", "touches",
    )  # fmt: skip

    def __init__(self, detector: DialectDetector, of_rocketsim3: bool) -> None:
        super().__init__(detector, of_rocketsim3)
        self._dodged = True  # since the car was new; a packet's dodge before that is from its last life
        self.touches = 0  # since the last decision; the decoder clears it
        self._touch_seconds = -1.0

    def forget(self) -> None:
        """Forget what was counted: it no longer holds."""
        super().forget()
        self._pose: tuple[float, ...] | None = None  # one tick ago
        self._motion: tuple[float, ...] = (0.0,) * 6
        self._wheels: tuple[float, ...] = _AIRBORNE
        self._wheels_known = False
        self._demolished = False
        self._touches_known = False

    def clear_touches(self) -> None:
        """Set the touches to zero, after a decision has seen them."""
        self.touches, self._touches_known = 0, True

    def rest(self) -> None:
        """Treat the car as new: it stands on its kickoff spot, or has just respawned."""
        super().rest()
        self.touches = 0
        self._dodged = False

    def write(
        self, target: memoryview, offset: int, player: flat.PlayerInfo, ticks: int, hitbox: int, at_rest: bool
    ) -> None:
        """Update the counters from a packet's player and write the car, the fields of `state.CAR_FIELDS`.

        Args:
            target: The state's buffer as bytes; float32 values are written.
            offset: Byte at which the car begins.
            player: The car in this packet.
            ticks: Ticks since the last packet; 0 for a repeated frame.
            hitbox: Index of the car's hitbox in `game.HITBOXES`.
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

    def _follow(self, here: tuple[float, float, float], boost: float, respawn: float, ticks: int) -> bool:
        """Begin anew where the car is another or elsewhere; return whether its inputs have acted.

        In RocketSim 3 a car that comes back from a demolition has none in that tick.
        """
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
        """Estimate which wheels touch: by geometry over the flat floor, else all or none by the air state.

        A wheel may also touch another car or the ball, so this is never exact.
        """
        if self._demolished:  # it has come back in the air
            self._wheels, self._wheels_known = _AIRBORNE, ticks == 1
            return
        self._wheels_known = False
        grounded = air_state == ON_GROUND
        if self._pose is not None and ticks == 1:
            wheels = floor_contact(self._pose, hitbox)
            # The packet's air state takes precedence, except while a jump pushes: it says nothing then.
            if wheels is not None and (air_state == JUMPING or (sum(wheels) >= 3) == grounded):
                self._wheels = wheels
                return
        lifting = air_state == JUMPING and self._jump_ticks <= _WHEELS_TOUCH_TICKS
        self._wheels = _GROUNDED if grounded or lifting else _AIRBORNE

    def _count_touch(self, seconds: float) -> None:
        if seconds != self._touch_seconds:
            self._touch_seconds = seconds
            if not self._new:
                self.touches += 1
