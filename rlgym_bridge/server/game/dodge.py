"""Compute `PlayerInfo.dodge_timeout`, which no document defines, with a formula for each dialect."""

from collections.abc import Callable

import RocketSim as rsim

from rlgym_bridge.dialect import POINTS, Dialect
from rlgym_bridge.game import DODGE_DEADLINE_SECONDS

DodgeTimeout = Callable[[rsim.CarState], float]

_POINTS = ("dodge_timeout", "dodge_timeout_jumping", "dodge_timeout_used", "dodge_timeout_expired")


def dodge_timeout_of(dialect: Dialect) -> DodgeTimeout:
    """Return the formula of a dialect, for one car: to be called with its state in every packet.

    Args:
        dialect: With a value for every point.
    """
    if all(dialect[name] == POINTS[name].values[0] for name in _POINTS):
        return _dodge_timeout
    return _DodgeTimeout(dialect)


def _dodge_timeout(state: rsim.CarState) -> float:
    """Return the seconds in which a dodge is still possible, -1 where it is not or not timed."""
    if (
        state.is_on_ground or state.is_jumping or not state.has_jumped
        or state.has_double_jumped or state.has_flipped
    ):  # fmt: skip
        return -1.0
    left = DODGE_DEADLINE_SECONDS - state.air_time_since_jump
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

    def __call__(self, state: rsim.CarState) -> float:
        if state.is_jumping:
            if self._adds_hold:  # RocketSim's `jump_time` goes on after the jump: only now it is the hold
                self._hold = state.jump_time
            return DODGE_DEADLINE_SECONDS + self._hold if self._full else -1.0
        if state.is_on_ground or not state.has_jumped:
            return -1.0
        if not self._counts_on and (state.has_double_jumped or state.has_flipped):
            return -1.0
        left = DODGE_DEADLINE_SECONDS + self._hold - state.air_time_since_jump
        return left if left > 0.0 else self._expired
