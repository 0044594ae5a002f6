"""Build the part of a packet about one car. Sources are named as in `packer.py`."""

from collections.abc import Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import (
    DODGE_DEADLINE_SECONDS,
    FLIP_TORQUE_SECONDS,
    HITBOXES,
    TICK_SECONDS,
    TICKS_PER_SECOND,
)
from rlgym_bridge.rotations import angles_of
from rlgym_bridge.server.game.body_numbers import CAR
from rlgym_bridge.server.game.roster import AgentSeat

_TORQUE, _WHEELS = CAR["flip_torque"], CAR["wheels_with_contact"]
_BOOST, _RESPAWN, _FLIP_TIME = CAR["boost_amount"], CAR["demo_respawn_timer"], CAR["flip_time"]
_IS_DEMOED, _IS_SUPERSONIC, _IS_ON_GROUND = CAR["is_demoed"], CAR["is_supersonic"], CAR["on_ground"]
_IS_JUMPING, _JUMP_TIME, _SINCE_JUMP = CAR["is_jumping"], CAR["jump_time"], CAR["air_time_since_jump"]
_HAS_JUMPED, _HAS_FLIPPED, _HAS_DOUBLE_JUMPED = (
    CAR["has_jumped"], CAR["has_flipped"], CAR["has_double_jumped"]
)  # fmt: skip

_DOUBLE_JUMP_TICKS: Final = 13
"""Packets that show a double jump [flatbuffers, `AirState.DoubleJumping`]."""

_LONGEST_DODGE: Final = FLIP_TORQUE_SECONDS + 1.5 * TICK_SECONDS
"""Seconds since the dodge began, before its 80th tick: it turns the car for 79."""

_NEVER: Final = -(1 << 30)
_NEUTRAL: Final = flat.ControllerState(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, False)
_NOWHERE: Final = flat.Physics(
    flat.Vector3(0.0, 0.0, 0.0), flat.Rotator(0.0, 0.0, 0.0),
    flat.Vector3(0.0, 0.0, 0.0), flat.Vector3(0.0, 0.0, 0.0),
)  # fmt: skip

_ON_GROUND: Final = flat.AirState.OnGround
_JUMPING: Final = flat.AirState.Jumping
_DOUBLE_JUMPING: Final = flat.AirState.DoubleJumping
_DODGING: Final = flat.AirState.Dodging
_IN_AIR: Final = flat.AirState.InAir


class Player:
    """One car in the packets: its numbers in the simulation, and what no simulation keeps of it.

    `info` has to be called for every frame, in order: the length of a double jump and the input of
    a demolished car are known only from the frames before.
    """

    __slots__ = ("_air_state", "_body", "_dialect", "_dodge_direction", "_dodge_timeout",
                 "_double_jump_frame", "_had_double_jumped", "_last_input", "_offset", "_physics", "_seat",
                 "_touch")  # fmt: skip

    def __init__(self, seat: AgentSeat, dialect: Dialect) -> None:
        self._seat = seat
        self.set_hitbox(seat.hitbox)
        self._last_input = _NEUTRAL
        self._dialect = dialect
        # Which formulas to use is decided here, once: packets are built thousands of times a second.
        self._air_state = _air_state if dialect["on_ground"] == "three_wheels" else _air_state_of_four
        self._physics = physics if dialect["demolished_place"] == "kept" else _physics_if_there
        self.kickoff()

    def set_hitbox(self, hitbox: int) -> None:
        """Show another hitbox (`game.HITBOXES`)."""
        box = HITBOXES[hitbox]
        self._body = flat.BoxShape(box.length, box.width, box.height)
        self._offset = flat.Vector3(box.offset_x, 0.0, box.offset_z)

    def kickoff(self) -> None:
        """Forget what a kickoff resets: the car is new."""
        self._touch: flat.Touch | None = None
        self._had_double_jumped = False
        self._double_jump_frame = _NEVER
        self._dodge_direction = flat.Vector2(0.0, 0.0)
        self._dodge_timeout = _DodgeTimeout(self._dialect)

    def take_over(self, earlier: "Player") -> None:
        """Show what another match has seen of this car: its latest touch and dodge."""
        self._touch = earlier._touch
        self._dodge_direction = earlier._dodge_direction
        self._had_double_jumped = earlier._had_double_jumped

    def touched(self, contact: Sequence[float], frame: int) -> None:
        """Keep a contact, its place and that relative to the ball's centre [uu], which a frame shows first.

        The touch is stamped with the time of the packet, so that a bot sees it as new.
        """
        x, y, z, *arm = contact
        length = sum(value * value for value in arm) ** 0.5 or 1.0
        self._touch = flat.Touch(
            frame / TICKS_PER_SECOND,
            flat.Vector3(x, y, z),
            flat.Vector3(*(-value / length for value in arm)),
            0,
        )

    def info(
        self,
        car: Sequence[float],
        score: flat.ScoreInfo,
        accolades: list[str],
        controls: flat.ControllerState,
        frame: int,
    ) -> flat.PlayerInfo:
        """Return the car's part of the packet of a frame, from its numbers and its line on the scoreboard."""
        seat = self._seat
        demolished = car[_IS_DEMOED]
        if not demolished:  # RocketSim applies no controls to a car that is not there
            self._last_input = controls
        double_jumped, dodged = car[_HAS_DOUBLE_JUMPED] > 0, car[_HAS_FLIPPED] > 0
        if double_jumped and not self._had_double_jumped:
            self._double_jump_frame = frame
        self._had_double_jumped = double_jumped
        if dodged:
            # The torque turns about the axis at right angles to the dodge (measured).
            self._dodge_direction = flat.Vector2(car[_TORQUE + 1], -car[_TORQUE])
        return flat.PlayerInfo(
            self._physics(car),
            score,
            self._body,
            self._offset,
            self._touch,
            self._air_state(car, double_jumped and frame - self._double_jump_frame < _DOUBLE_JUMP_TICKS),
            self._dodge_timeout(car),
            car[_RESPAWN] if demolished else -1.0,
            car[_IS_SUPERSONIC] > 0,
            not seat.is_idle,  # is_bot: humans and Psyonix bots are none [RLBot core, `GameStateToFlat.cs`]
            seat.name,
            seat.team,
            car[_BOOST],
            seat.identifier,
            accolades,
            self._last_input,
            car[_HAS_JUMPED] > 0,
            double_jumped,
            dodged,
            car[_FLIP_TIME] if dodged else 0.0,
            self._dodge_direction,
            None,  # rumble_item
            0.0,
            0.0,
        )


def physics(numbers: Sequence[float]) -> flat.Physics:
    """Return place, turn and speeds of a car or ball, which its numbers begin with."""
    pitch, yaw, roll = angles_of(numbers, 3)
    return flat.Physics(
        flat.Vector3(numbers[0], numbers[1], numbers[2]),
        flat.Rotator(pitch, yaw, roll),
        flat.Vector3(numbers[12], numbers[13], numbers[14]),
        flat.Vector3(numbers[15], numbers[16], numbers[17]),
    )


def _physics_if_there(car: Sequence[float]) -> flat.Physics:
    return _NOWHERE if car[_IS_DEMOED] else physics(car)


def _air_state(car: Sequence[float], double_jumping: bool) -> flat.AirState:
    """Name the strongest thing that acts on a car: jump, dodge, double jump, ground, nothing."""
    if car[_IS_JUMPING]:
        return _JUMPING
    if car[_HAS_FLIPPED] and car[_FLIP_TIME] < _LONGEST_DODGE:
        return _DODGING
    if double_jumping:
        return _DOUBLE_JUMPING
    return _ON_GROUND if car[_IS_ON_GROUND] else _IN_AIR


def _air_state_of_four(car: Sequence[float], double_jumping: bool) -> flat.AirState:
    """Do the same, where a car is on the ground with all its wheels only; RocketSim asks for three."""
    named = _air_state(car, double_jumping)
    return _IN_AIR if named == _ON_GROUND and not all(car[_WHEELS : _WHEELS + 4]) else named


class _DodgeTimeout:
    """The seconds in which a dodge of a car is still possible, -1 where it is not or not timed."""

    __slots__ = ("_adds_hold", "_counts_on", "_expired", "_full", "_hold")

    def __init__(self, dialect: Dialect) -> None:
        self._adds_hold = dialect["dodge_timeout"] == "plus_hold"
        self._full = dialect["dodge_timeout_jumping"] == "full"
        self._counts_on = dialect["dodge_timeout_used"] == "counting"
        self._expired = 0.0 if dialect["dodge_timeout_expired"] == "zero" else -1.0
        self._hold = 0.0  # seconds for which the latest jump has pushed

    def __call__(self, car: Sequence[float]) -> float:
        if car[_IS_JUMPING]:
            if self._adds_hold:  # RocketSim's `jump_time` goes on after the jump: only now it is the hold
                self._hold = car[_JUMP_TIME]
            return DODGE_DEADLINE_SECONDS + self._hold if self._full else -1.0
        if car[_IS_ON_GROUND] or not car[_HAS_JUMPED]:
            return -1.0
        if not self._counts_on and (car[_HAS_DOUBLE_JUMPED] or car[_HAS_FLIPPED]):
            return -1.0
        left = DODGE_DEADLINE_SECONDS + self._hold - car[_SINCE_JUMP]
        return left if left > 0.0 else self._expired
