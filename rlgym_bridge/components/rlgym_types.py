"""Name RLGym's classes: its own, or stand-ins where `rlgym-rocket-league` is missing.

Stand-ins have the same fields, properties and units. RLGym's own components take them, too. Its wrappers,
such as `CombinedReward`, exist then as names that nothing is an instance of.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np

from rlgym_bridge.game import DODGE_DEADLINE_SECONDS, FLIP_TORQUE_SECONDS
from rlgym_bridge.rotations import angles_of, from_euler, from_quaternions, to_quaternions

_Agent = TypeVar("_Agent", bound=Hashable)

_UNSET: Final[Any] = None  # as in RLGym, fields are None until they are set
_MIRRORED: Final = np.array([-1, -1, 1], np.float32)
"""A state seen from the other side is turned half around the z axis."""

_WHEELS_ON_GROUND: Final = 3  # wheels that touch, from which a car is on the ground [RocketSim, Car]


@dataclass(slots=True, eq=False)
class _GameConfig:
    """Constants of a match: gravity and boost consumption (times the game's), and the dodge's dead zone."""

    gravity: float = _UNSET
    boost_consumption: float = _UNSET
    dodge_deadzone: float = _UNSET


@dataclass(slots=True, eq=False)
class _PhysicsObject:
    """A body: position (uu), velocity (uu/s), spin (rad/s), each `(3,)`, and a rotation in three forms.

    It is set in one form and read in all: `rotation_mtx` `(3, 3)` with the columns forward, right, up,
    `quaternion` `(4,)` as w, x, y, z, `euler_angles` `(3,)` as pitch, yaw, roll in radians.
    """

    position: np.ndarray = _UNSET
    linear_velocity: np.ndarray = _UNSET
    angular_velocity: np.ndarray = _UNSET
    _quaternion: np.ndarray | None = _UNSET
    _rotation_mtx: np.ndarray | None = _UNSET
    _euler_angles: np.ndarray | None = _UNSET

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

    forward = property(lambda self: self.rotation_mtx[:, 0])
    right = property(lambda self: self.rotation_mtx[:, 1])
    left = property(lambda self: -self.rotation_mtx[:, 1])
    up = property(lambda self: self.rotation_mtx[:, 2])
    pitch = property(lambda self: float(self.euler_angles[0]))
    yaw = property(lambda self: float(self.euler_angles[1]))
    roll = property(lambda self: float(self.euler_angles[2]))


@dataclass(slots=True, eq=False)
class _Car(Generic[_Agent]):
    """A car: team, boost (0 to 100), times in seconds, flags, and its body in `physics`."""

    team_num: int = _UNSET
    hitbox_type: int = _UNSET
    ball_touches: int = _UNSET
    bump_victim_id: _Agent | None = _UNSET
    demo_respawn_timer: float = _UNSET
    wheels_with_contact: tuple[bool, bool, bool, bool] = _UNSET
    supersonic_time: float = _UNSET
    boost_amount: float = _UNSET
    boost_active_time: float = _UNSET
    handbrake: float = _UNSET
    is_jumping: bool = _UNSET
    has_jumped: bool = _UNSET
    is_holding_jump: bool = _UNSET
    jump_time: float = _UNSET
    has_flipped: bool = _UNSET
    has_double_jumped: bool = _UNSET
    air_time_since_jump: float = _UNSET
    flip_time: float = _UNSET
    flip_torque: np.ndarray = _UNSET
    is_autoflipping: bool = _UNSET
    autoflip_timer: float = _UNSET
    autoflip_direction: float = _UNSET
    physics: _PhysicsObject = _UNSET
    _inverted_physics: _PhysicsObject | None = _UNSET

    is_blue = property(lambda self: self.team_num == 0)
    is_orange = property(lambda self: self.team_num == 1)
    is_demoed = property(lambda self: self.demo_respawn_timer > 0)
    is_boosting = property(lambda self: self.boost_active_time > 0)
    is_supersonic = property(lambda self: self.supersonic_time > 0)

    @property
    def on_ground(self) -> bool:
        return sum(self.wheels_with_contact) >= _WHEELS_ON_GROUND

    @on_ground.setter
    def on_ground(self, touches: bool) -> None:
        self.wheels_with_contact = (touches, touches, touches, touches)

    @property
    def has_flip(self) -> bool:
        spent = self.has_double_jumped or self.has_flipped
        return not spent and self.air_time_since_jump < DODGE_DEADLINE_SECONDS

    @property
    def can_flip(self) -> bool:
        return self.has_flip and not self.on_ground and not self.is_holding_jump

    @property
    def is_flipping(self) -> bool:
        return self.has_flipped and self.flip_time < FLIP_TORQUE_SECONDS

    @is_flipping.setter
    def is_flipping(self, flips: bool) -> None:
        if not flips:
            self.flip_time = FLIP_TORQUE_SECONDS
            return
        self.has_flipped = True
        if self.flip_time >= FLIP_TORQUE_SECONDS:
            self.flip_time = 0

    had_car_contact = property(lambda self: self.bump_victim_id is not None)

    @property
    def inverted_physics(self) -> _PhysicsObject:
        if self._inverted_physics is None:
            self._inverted_physics = self.physics.inverted()
        return self._inverted_physics


@dataclass(slots=True, eq=False)
class _GameState(Generic[_Agent]):
    """A tick of a match: ball, cars by agent, and the seconds until each boost pad is back, `(34,)`."""

    tick_count: int = _UNSET
    goal_scored: bool = _UNSET
    config: _GameConfig = _UNSET
    cars: dict[_Agent, _Car[_Agent]] = _UNSET
    ball: _PhysicsObject = _UNSET
    boost_pad_timers: np.ndarray = _UNSET
    _inverted_ball: _PhysicsObject | None = _UNSET
    _inverted_boost_pad_timers: np.ndarray | None = _UNSET

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

Agents: TypeAlias = Sequence[Hashable]
Game: TypeAlias = GameState[Any]
SharedInfo: TypeAlias = dict[str, Any]
Flags: TypeAlias = Mapping[Any, bool]
"""Name the arguments of RLGym's methods: agents, a state, what components share, whose episodes ended."""

__all__ = [
    "Agents",
    "AllCondition",
    "AnyCondition",
    "Car",
    "CombinedReward",
    "Flags",
    "Game",
    "GameConfig",
    "GameState",
    "MutatorSequence",
    "PhysicsObject",
    "RepeatAction",
    "SharedInfo",
]
