"""Name RLGym's classes: its own, or stand-ins where `rlgym-rocket-league` is missing.

Stand-ins have the same fields, properties and units. RLGym's own components take them, too. Its wrappers,
such as `CombinedReward`, exist then as names that nothing is an instance of.
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import numpy as np

from rlgym_bridge.rotations import angles_of, from_euler, from_quaternions, to_quaternions

_Agent = TypeVar("_Agent", bound=Hashable)

_MIRRORED: Final = np.array([-1, -1, 1], np.float32)
"""A state seen from the other side is turned half around the z axis."""

_FLIP_SECONDS: Final = 1.25  # s after a jump in which a car may dodge [RocketSim, DOUBLEJUMP_MAX_DELAY]
_TORQUE_SECONDS: Final = 0.65  # s in which a dodge turns the car [RocketSim, FLIP_TORQUE_TIME]
_WHEELS_ON_GROUND: Final = 3  # wheels that touch, from which a car is on the ground [RocketSim, Car]


class _Record:
    """An object whose fields are all None until they are set."""

    __slots__: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, None)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


class _GameConfig(_Record):
    """Constants of a match: gravity and boost consumption (times the game's), and the dodge's dead zone."""

    __slots__ = ("boost_consumption", "dodge_deadzone", "gravity")

    gravity: float
    boost_consumption: float
    dodge_deadzone: float


class _PhysicsObject(_Record):
    """A body: position (uu), velocity (uu/s), spin (rad/s), each `(3,)`, and a rotation in three forms.

    The rotation is set in one form and read in all: `rotation_mtx` `(3, 3)` with the columns forward, right
    and up, `quaternion` `(4,)` in the order w, x, y, z, `euler_angles` `(3,)` pitch, yaw and roll in radians.
    """

    __slots__ = (
        "_euler_angles", "_quaternion", "_rotation_mtx", "angular_velocity", "linear_velocity", "position",
    )  # fmt: skip

    position: np.ndarray
    linear_velocity: np.ndarray
    angular_velocity: np.ndarray
    _quaternion: np.ndarray | None
    _rotation_mtx: np.ndarray | None
    _euler_angles: np.ndarray | None

    def _set(self, **form: np.ndarray) -> None:
        self._quaternion = self._rotation_mtx = self._euler_angles = None
        for name, value in form.items():
            setattr(self, name, value)

    def inverted(self) -> "_PhysicsObject":
        """Return the body as the other team sees it: turned half around the z axis."""
        other = _PhysicsObject()
        other.position = self.position * _MIRRORED
        other.linear_velocity = self.linear_velocity * _MIRRORED
        other.angular_velocity = self.angular_velocity * _MIRRORED
        if not (self._rotation_mtx is None and self._quaternion is None and self._euler_angles is None):
            other.rotation_mtx = self.rotation_mtx * _MIRRORED[:, None]
        return other

    @property
    def rotation_mtx(self) -> np.ndarray:
        if self._rotation_mtx is None:
            if self._quaternion is not None:
                self._rotation_mtx = from_quaternions(np.asarray(self._quaternion, float)[None])[0]
            elif self._euler_angles is not None:
                self._rotation_mtx = from_euler(np.asarray(self._euler_angles, float)[None])[0]
            else:
                raise ValueError(
                    "no rotation is set, expected rotation_mtx, quaternion or euler_angles before it is read"
                )
        return self._rotation_mtx

    @rotation_mtx.setter
    def rotation_mtx(self, matrix: np.ndarray) -> None:
        self._set(_rotation_mtx=matrix)

    @property
    def quaternion(self) -> np.ndarray:
        if self._quaternion is None:
            matrix = np.asarray(self.rotation_mtx, float)
            turn = to_quaternions(matrix[None])[0]
            # of the two quaternions of a rotation, the one that RLGym's own class gives
            pivot = 0 if np.trace(matrix) > 0 else 1 + int(np.argmax(np.diagonal(matrix)))
            self._quaternion = -turn if turn[pivot] > 0 else turn
        return self._quaternion

    @quaternion.setter
    def quaternion(self, quaternion: np.ndarray) -> None:
        self._set(_quaternion=quaternion)

    @property
    def euler_angles(self) -> np.ndarray:
        if self._euler_angles is None:
            self._euler_angles = np.array(angles_of(np.asarray(self.rotation_mtx, float).ravel().tolist()))
        return self._euler_angles

    @euler_angles.setter
    def euler_angles(self, angles: np.ndarray) -> None:
        self._set(_euler_angles=angles)

    @property
    def forward(self) -> np.ndarray:
        return self.rotation_mtx[:, 0]

    @property
    def right(self) -> np.ndarray:
        return self.rotation_mtx[:, 1]

    @property
    def left(self) -> np.ndarray:
        return -self.rotation_mtx[:, 1]

    @property
    def up(self) -> np.ndarray:
        return self.rotation_mtx[:, 2]

    @property
    def pitch(self) -> float:
        return float(self.euler_angles[0])

    @property
    def yaw(self) -> float:
        return float(self.euler_angles[1])

    @property
    def roll(self) -> float:
        return float(self.euler_angles[2])


class _Car(_Record, Generic[_Agent]):
    """A car: team, boost (0 to 100), times in seconds, flags, and its body in `physics`."""

    __slots__ = (
        "_inverted_physics", "air_time_since_jump", "autoflip_direction", "autoflip_timer", "ball_touches",
        "boost_active_time", "boost_amount", "bump_victim_id", "demo_respawn_timer", "flip_time",
        "flip_torque", "handbrake", "has_double_jumped", "has_flipped", "has_jumped", "hitbox_type",
        "is_autoflipping", "is_holding_jump", "is_jumping", "jump_time", "physics", "supersonic_time",
        "team_num", "wheels_with_contact",
    )  # fmt: skip

    team_num: int
    hitbox_type: int
    ball_touches: int
    bump_victim_id: _Agent | None
    demo_respawn_timer: float
    wheels_with_contact: tuple[bool, bool, bool, bool]
    supersonic_time: float
    boost_amount: float
    boost_active_time: float
    handbrake: float
    is_jumping: bool
    has_jumped: bool
    is_holding_jump: bool
    jump_time: float
    has_flipped: bool
    has_double_jumped: bool
    air_time_since_jump: float
    flip_time: float
    flip_torque: np.ndarray
    is_autoflipping: bool
    autoflip_timer: float
    autoflip_direction: float
    physics: _PhysicsObject
    _inverted_physics: _PhysicsObject | None

    @property
    def is_blue(self) -> bool:
        return self.team_num == 0

    @property
    def is_orange(self) -> bool:
        return self.team_num == 1

    @property
    def is_demoed(self) -> bool:
        return self.demo_respawn_timer > 0

    @property
    def is_boosting(self) -> bool:
        return self.boost_active_time > 0

    @property
    def is_supersonic(self) -> bool:
        return self.supersonic_time > 0

    @property
    def on_ground(self) -> bool:
        return sum(self.wheels_with_contact) >= _WHEELS_ON_GROUND

    @on_ground.setter
    def on_ground(self, touches: bool) -> None:
        self.wheels_with_contact = (touches, touches, touches, touches)

    @property
    def has_flip(self) -> bool:
        spent = self.has_double_jumped or self.has_flipped
        return not spent and self.air_time_since_jump < _FLIP_SECONDS

    @property
    def can_flip(self) -> bool:
        return self.has_flip and not self.on_ground and not self.is_holding_jump

    @property
    def is_flipping(self) -> bool:
        return self.has_flipped and self.flip_time < _TORQUE_SECONDS

    @is_flipping.setter
    def is_flipping(self, flips: bool) -> None:
        if not flips:
            self.flip_time = _TORQUE_SECONDS
            return
        self.has_flipped = True
        if self.flip_time >= _TORQUE_SECONDS:
            self.flip_time = 0

    @property
    def had_car_contact(self) -> bool:
        return self.bump_victim_id is not None

    @property
    def inverted_physics(self) -> _PhysicsObject:
        if self._inverted_physics is None:
            self._inverted_physics = self.physics.inverted()
        return self._inverted_physics


class _GameState(_Record, Generic[_Agent]):
    """A tick of a match: ball, cars by agent, and the seconds until each boost pad is back, `(34,)`."""

    __slots__ = (
        "_inverted_ball", "_inverted_boost_pad_timers", "ball", "boost_pad_timers", "cars", "config",
        "goal_scored", "tick_count",
    )  # fmt: skip

    tick_count: int
    goal_scored: bool
    config: _GameConfig
    cars: dict[_Agent, _Car[_Agent]]
    ball: _PhysicsObject
    boost_pad_timers: np.ndarray
    _inverted_ball: _PhysicsObject | None
    _inverted_boost_pad_timers: np.ndarray | None

    @property
    def scoring_team(self) -> int | None:
        return int(self.ball.position[1] <= 0) if self.goal_scored else None

    @property
    def inverted_ball(self) -> _PhysicsObject:
        if self._inverted_ball is None:
            self._inverted_ball = self.ball.inverted()
        return self._inverted_ball

    @property
    def inverted_boost_pad_timers(self) -> np.ndarray:
        if self._inverted_boost_pad_timers is None:
            self._inverted_boost_pad_timers = np.ascontiguousarray(self.boost_pad_timers[::-1])
        return self._inverted_boost_pad_timers


class _Absent:
    """A class of RLGym's that is not installed, and so has no instances."""


try:
    from rlgym.rocket_league.action_parsers import RepeatAction
    from rlgym.rocket_league.api import Car, GameConfig, GameState, PhysicsObject
    from rlgym.rocket_league.done_conditions import AllCondition, AnyCondition
    from rlgym.rocket_league.reward_functions import CombinedReward
    from rlgym.rocket_league.state_mutators import MutatorSequence
except ModuleNotFoundError as error:
    if not str(error.name).startswith("rlgym.rocket_league"):
        raise
    Car, GameConfig, GameState, PhysicsObject = _Car, _GameConfig, _GameState, _PhysicsObject
    RepeatAction = AllCondition = AnyCondition = CombinedReward = MutatorSequence = _Absent

__all__ = [
    "AllCondition",
    "AnyCondition",
    "Car",
    "CombinedReward",
    "GameConfig",
    "GameState",
    "MutatorSequence",
    "PhysicsObject",
    "RepeatAction",
]
