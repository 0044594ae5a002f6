"""Compute `PlayerInfo.dodge_timeout`, which no document defines, with a formula for each dialect."""

from collections.abc import Callable, Sequence

from rlgym_bridge.dialect import POINTS, Dialect
from rlgym_bridge.game import DODGE_DEADLINE_SECONDS
from rlgym_bridge.server.game.body_numbers import CAR

DodgeTimeout = Callable[[Sequence[float]], float]

_ON_GROUND, _IS_JUMPING, _HAS_JUMPED = CAR["on_ground"], CAR["is_jumping"], CAR["has_jumped"]
_DOUBLE_JUMPED, _FLIPPED = CAR["has_double_jumped"], CAR["has_flipped"]
_SINCE_JUMP, _JUMP_TIME = CAR["air_time_since_jump"], CAR["jump_time"]

_POINTS = ("dodge_timeout", "dodge_timeout_jumping", "dodge_timeout_used", "dodge_timeout_expired")


def dodge_timeout_of(dialect: Dialect) -> DodgeTimeout:
    """Return the formula of a dialect, for one car: to be called with its numbers in every packet.

    Args:
        dialect: With a value for every point.
    """
    if all(dialect[name] == POINTS[name].values[0] for name in _POINTS):
        return _dodge_timeout
    return _DodgeTimeout(dialect)


def _dodge_timeout(car: Sequence[float]) -> float:
    """Return the seconds in which a dodge is still possible, -1 where it is not or not timed."""
    if (
        car[_ON_GROUND] or car[_IS_JUMPING] or not car[_HAS_JUMPED]
        or car[_DOUBLE_JUMPED] or car[_FLIPPED]
    ):  # fmt: skip
        return -1.0
    left = DODGE_DEADLINE_SECONDS - car[_SINCE_JUMP]
    return left if left > 0.0 else -1.0


class _DodgeTimeout:
    """All other readings; with the standard values it is `_dodge_timeout`."""

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
        if car[_ON_GROUND] or not car[_HAS_JUMPED]:
            return -1.0
        if not self._counts_on and (car[_DOUBLE_JUMPED] or car[_FLIPPED]):
            return -1.0
        left = DODGE_DEADLINE_SECONDS + self._hold - car[_SINCE_JUMP]
        return left if left > 0.0 else self._expired
