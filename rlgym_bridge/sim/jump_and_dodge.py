"""Jump, dodge and air control of a car in one tick, as the game has them or as RocketSim does.

Timers count in seconds, as RocketSim's state does. Units are uu, s and rad. Constants and order are those of
RocketSim's `Car.cpp`, 2.2.1; what the game does otherwise stands in docs/gap/physics.md, with its evidence.
"""

import math
from dataclasses import dataclass
from typing import Final

import RocketSim as rsim

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.sim.chassis import Chassis
from rlgym_bridge.sim.vectors import UP, Vector, add, cross, dot, scaled

_ROUNDING: Final = 1e-4  # s: RocketSim adds its timers in float32
_LEAST_JUMP, _LONGEST_JUMP = 0.025, 0.2  # s [JUMP_MIN_TIME, JUMP_MAX_TIME]
_JUMP_RESET: Final = (
    0.05  # s after which wheels on the floor end a jump [JUMP_MIN_TIME + JUMP_RESET_TIME_PAD]
)
_WEAK_PUSH: Final = 0.62  # of a jump's push in its first ticks [JUMP_PRE_MIN_ACCEL_SCALE]
_LATEST_DODGE: Final = 1.25  # s after a jump [DOUBLEJUMP_MAX_DELAY]
_TORQUES = (260.0, 224.0)  # rad/s^2 to the side, ahead [FLIP_TORQUE_X, FLIP_TORQUE_Y]
_DODGE_SECONDS: Final = 0.65  # [FLIP_TORQUE_TIME]
_GAME_TICKS: Final = 79  # ticks of a dodge from the press on [half flip and dodge of 2026]
_NO_PITCH: Final = 0.3  # s after a dodge [FLIP_PITCHLOCK_EXTRA_TIME]
_DAMPED_Z: Final = 0.65  # share of vertical speed that a tick leaves [FLIP_Z_DAMP_120]
_CONTROL = (130.0, 95.0, 400.0)  # pitch, yaw, roll [CAR_AIR_CONTROL_TORQUE]
_DAMPING = (30.0, 20.0, 50.0)  # [CAR_AIR_CONTROL_DAMPING]
_SCALE: Final = 2 * math.pi / 65536 * 1000  # of both [CAR_TORQUE_SCALE]
AIR_THROTTLE: Final = 200 / 3  # uu/s^2 [THROTTLE_AIR_ACCEL]
_ROLL_FORCE, _ROLL_TORQUE = 100.0, 80.0  # [CAR_AUTOROLL_FORCE, CAR_AUTOROLL_TORQUE]
_SIDE_BY_SPEED, _BACK_BY_SPEED, _BACK = 0.9, 1.5, 16 / 15  # of a dodge [FLIP_*_IMPULSE_*]
_DODGE: Final = 500.0  # uu/s [FLIP_INITIAL_VEL_SCALE]
_FASTEST: Final = 2300.0  # uu/s [CAR_MAX_SPEED]


@dataclass
class JumpMemory:
    """A car's memory of its jump and dodge; fields as in RocketSim's `CarState`."""

    is_jumping: bool
    has_jumped: bool
    jump_time: float
    has_flipped: bool
    is_flipping: bool
    has_double_jumped: bool
    flip_time: float
    air_time: float
    air_time_since_jump: float
    torque: Vector

    @classmethod
    def of(cls, state: rsim.CarState) -> "JumpMemory":
        """Read it from a car's state."""
        return cls(
            state.is_jumping, state.has_jumped, state.jump_time, state.has_flipped, state.is_flipping,
            state.has_double_jumped, state.flip_time, state.air_time, state.air_time_since_jump,
            state.flip_rel_torque.as_tuple(),
        )  # fmt: skip

    def write(self, state: rsim.CarState) -> None:
        """Write it into a car's state."""
        state.is_jumping, state.has_jumped, state.jump_time = self.is_jumping, self.has_jumped, self.jump_time
        state.has_flipped, state.is_flipping = self.has_flipped, self.is_flipping
        state.has_double_jumped, state.flip_time = self.has_double_jumped, self.flip_time
        state.air_time, state.air_time_since_jump = self.air_time, self.air_time_since_jump
        state.flip_rel_torque = rsim.Vec(*self.torque)

    def jump(self, chassis: Chassis, held: bool, pressed: bool, on_ground: bool, force: tuple[float, float],
             full: bool) -> None:  # fmt: skip
        """Begin, go on with, or end a jump.

        Args:
            chassis: The car; takes the impulse and the push.
            held: Whether the button is pressed.
            pressed: Whether it is pressed for the first time.
            on_ground: Whether three wheels or more touch.
            force: The impulse in uu/s and the push in uu/s^2.
            full: Whether the push is whole from its first tick on, as in the game.
        """
        over = not self.has_jumped or self.jump_time >= _JUMP_RESET - _ROUNDING
        if on_ground and not self.is_jumping and over:
            self.has_jumped, self.jump_time = False, 0.0
        if self.is_jumping:
            least = self.jump_time < _LEAST_JUMP - _ROUNDING
            self.is_jumping = least or (held and self.jump_time < _LONGEST_JUMP - _ROUNDING)
        elif on_ground and pressed:
            self.is_jumping, self.jump_time = True, 0.0
            chassis.velocity = add(chassis.velocity, chassis.axes[2], force[0])
        if self.is_jumping:
            self.has_jumped = True
            weak = not full and self.jump_time < _LEAST_JUMP - _ROUNDING
            chassis.accelerate(chassis.axes[2], force[1] * (_WEAK_PUSH if weak else 1.0))
        if self.has_jumped:
            self.jump_time += TICK_SECONDS

    def dodge(
        self, chassis: Chassis, controls: rsim.CarControls, pressed: bool, on_ground: bool, speed: float,
        limits: tuple[float, float, bool, bool], game: bool,
    ) -> None:  # fmt: skip
        """Begin a dodge or double jump where the button says so; count times.

        Args:
            chassis: The car; takes the impulse.
            controls: Of this tick.
            pressed: Whether jump is pressed for the first time.
            on_ground: Whether three wheels or more touch.
            speed: Forward, uu/s.
            limits: A double jump's impulse in uu/s, the dodge's dead zone, and whether dodges and double
                jumps are without limit.
            game: Whether the torque has whole numbers, as in the game.
        """
        if on_ground:
            self.has_double_jumped = self.has_flipped = self.is_flipping = False
            self.air_time = self.air_time_since_jump = self.flip_time = 0.0
            return
        self.air_time += TICK_SECONDS
        after = self.has_jumped and not self.is_jumping
        self.air_time_since_jump = self.air_time_since_jump + TICK_SECONDS if after else 0.0
        if not pressed or self.air_time_since_jump >= _LATEST_DODGE - _ROUNDING:
            return
        used = self.has_double_jumped or self.has_flipped
        if abs(controls.yaw) + abs(controls.pitch) + abs(controls.roll) >= limits[1]:
            if not used or limits[2]:
                self._begin(chassis, controls, speed, game)
        elif not used or limits[3]:
            chassis.velocity = add(chassis.velocity, chassis.axes[2], limits[0])
            self.has_double_jumped = True

    def _begin(self, chassis: Chassis, controls: rsim.CarControls, speed: float, game: bool) -> None:
        self.flip_time, self.has_flipped, self.is_flipping = 0.0, True, True
        ahead, side = -controls.pitch, controls.yaw + controls.roll
        size = math.hypot(ahead, side)
        if size == 0 or (abs(side) < 0.1 and abs(ahead) < 0.1):
            self.torque = (0.0, 0.0, 0.0)
            return
        ahead, side = ahead / size, side / size
        self.torque = (-side, ahead, 0.0)
        if game:
            x, y = _TORQUES
            self.torque = (round(-side * x) / x, round(ahead * y) / y, 0.0)
        ahead, side = (0.0 if abs(part) < 0.1 else part for part in (ahead, side))
        backwards = ahead < 0 if abs(speed) < 100 else (ahead >= 0) != (speed >= 0)
        share = abs(speed) / _FASTEST
        ahead *= _DODGE * ((_BACK_BY_SPEED * share + 1) * _BACK if backwards else 1.0)
        side *= _DODGE * (_SIDE_BY_SPEED * share + 1)
        x, y, _ = chassis.axes[0]
        level = math.hypot(x, y)
        if level:
            x, y = x / level, y / level
            chassis.velocity = add(chassis.velocity, (ahead * x - side * y, ahead * y + side * x, 0.0))

    def damp_fall(self, chassis: Chassis, game: bool) -> None:
        """Count a dodge's time, and damp the vertical speed where its time has come."""
        if self.is_flipping:
            tick = round(self.flip_time / TICK_SECONDS) + (0 if game else 1)
            first, last, until = (18, _GAME_TICKS - 1, 25) if game else (18, 78, 25)
            if first <= tick <= last and (chassis.velocity[2] < 0 or tick <= until):
                x, y, z = chassis.velocity
                chassis.velocity = (x, y, z * _DAMPED_Z)
        if self.has_flipped:
            self.flip_time += TICK_SECONDS

    def turn_in_air(
        self, chassis: Chassis, controls: rsim.CarControls, wheels: int, free: bool, game: bool
    ) -> None:  # fmt: skip
        """Add the torques of dodge and air control, fewer than three wheels touching.

        Args:
            chassis: The car.
            controls: Of this tick.
            wheels: How many touch.
            free: Whether no auto-flip is under way.
            game: Whether damping, yaw and roll act during a dodge, and for 79 ticks from the press on.
        """
        if self.is_flipping:
            limit = _GAME_TICKS * TICK_SECONDS - _ROUNDING if game else _DODGE_SECONDS
            self.is_flipping = self.flip_time < limit
        forward, right, _ = chassis.axes
        acts = game or not self.is_flipping or self.torque == (0.0, 0.0, 0.0)
        if self.is_flipping:
            side, ahead, _ = self.torque
            if ahead and controls.pitch and (ahead > 0) == (controls.pitch > 0):
                ahead *= 1 - min(abs(controls.pitch), 1.0)
                acts = True
            chassis.twist(forward, side * _TORQUES[0])
            chassis.twist(right, ahead * _TORQUES[1])
        if acts and free and wheels == 0:
            self.control(chassis, controls)

    def control(self, chassis: Chassis, controls: rsim.CarControls) -> None:
        """Add the torques of air control and its damping, as they are while no wheel touches."""
        forward, right, up = chassis.axes
        locked = self.has_flipped and self.flip_time < _DODGE_SECONDS + _NO_PITCH
        pitch = 0.0 if self.is_flipping or locked else controls.pitch
        yaw, roll, spin = controls.yaw, controls.roll, chassis.spin
        chassis.twist(
            right, -(pitch * _CONTROL[0] + dot(right, spin) * _DAMPING[0] * (1 - abs(pitch))) * _SCALE
        )
        chassis.twist(up, (yaw * _CONTROL[1] - dot(up, spin) * _DAMPING[1] * (1 - abs(yaw))) * _SCALE)
        chassis.twist(forward, -(roll * _CONTROL[2] + dot(forward, spin) * _DAMPING[2]) * _SCALE)


def throttle_in_air(chassis: Chassis, throttle: float) -> None:
    """Add the push of throttle where fewer than three wheels touch."""
    chassis.accelerate(chassis.axes[0], throttle * AIR_THROTTLE)


def roll_upright(chassis: Chassis) -> None:
    """Add what turns a car with throttle onto its wheels, one to three touching the flat floor."""
    forward, right, _ = chassis.axes
    across = cross(UP, forward)
    ahead = cross(scaled(UP, -1.0), across)
    side = 1 - min(max(dot(right, across), 0.0), 1.0)
    end = 1 - min(max(dot(forward, ahead), 0.0), 1.0)
    chassis.accelerate(UP, -_ROLL_FORCE)
    chassis.twist(forward, (-side if right[2] >= 0 else side) * _ROLL_TORQUE)
    chassis.twist(right, (end if forward[2] >= 0 else -end) * _ROLL_TORQUE)
