"""Captures of the real game beside a simulator that follows their first rows and then runs free."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState
from tests.support.captures import KEYBOARD_DODGES, Capture
from tests.support.real_data import REAL_DATA

WORLDS: Final = (ROCKETSIM2, ROCKETSIM3)
"""Name the simulators in which tests play captures."""

FOLLOWED: Final = 3
"""Rows that are set before a run is free; wheels remember the tick before, so one would not be enough."""

_BODY: Final = ("position", "rotation", "linear_velocity", "angular_velocity")
_MOVED: Final = 1.0  # uu
_STEPS: Final = 100.0  # of a velocity's component in a uu/s: the game cuts to them [captures of 2026]
_OFFSET: Final = 0.1  # of a step, that it adds [the same]
_NOT_PRINTED: Final = 0.2  # of a step: a value of six digits may lack the offset


@dataclass(frozen=True)
class FreeRun:
    """A capture, and what a simulator made of it."""

    free: int
    ticks: np.ndarray
    real: MatchState
    ours: MatchState

    def row_after(self, ticks: int) -> int | None:
        """Return the row that lies some ticks after the run became free; None where none does."""
        found = np.flatnonzero(self.ticks == ticks)
        return int(found[0]) if len(found) else None

    def car_error(self, row: int, car: int) -> tuple[float, float]:
        """Return how far a car is off in a row: uu, uu/s."""
        return self._error("car_", (row, car))

    def ball_error(self, row: int) -> tuple[float, float]:
        """Return how far the ball is off in a row: uu, uu/s."""
        return self._error("ball_", row)

    def ball_moves(self) -> bool:
        """Tell whether the ball moves in the capture."""
        return bool(np.abs(self.real.ball_position - self.real.ball_position[0]).max() > _MOVED)

    def _error(self, of: str, at: int | tuple[int, int]) -> tuple[float, float]:
        pair = (of + "position", of + "linear_velocity")
        off = [getattr(self.real, name)[at].astype(float) - getattr(self.ours, name)[at] for name in pair]
        return float(np.linalg.norm(off[0])), float(np.linalg.norm(off[1]))


def capture_files() -> list[Path]:
    """Return the captures of 2026; none where the recordings are absent."""
    return sorted((REAL_DATA / "game-2026").glob("*.csv"))


def lacks_presses(name: str) -> bool:
    """Tell whether an input of a capture was not recorded, and is put in by `captures`."""
    return name in KEYBOARD_DODGES


def run_free(capture: Capture, world: str, free: int = FOLLOWED) -> FreeRun:
    """Play a capture: set its first row, nudge to each next one up to `free`, and then only step.

    Every step is driven by the controls of the row before it. What is hidden after the first row comes from
    the rows that are followed.

    Args:
        capture: The capture.
        world: One of `WORLDS`.
        free: Row from which it runs free.
    """
    real, ticks = capture.recording.state, capture.recording.tick
    blue, orange = real.layout.blue, real.layout.orange
    told = _as_game(real)
    simulator = make_simulator(world, 1, blue, orange)
    simulator.put([0], _first_row(told))
    ours = [simulator.state.buffer[0].copy()]
    everyone = np.ones((1, blue + orange), bool)
    for row in range(1, len(ticks)):
        held = real.car_controls[row - 1][None, :, None]
        simulator.step(np.repeat(held, ticks[row] - ticks[row - 1], axis=2), delay=[0])
        if row <= free:
            simulator.nudge([0], _row(told, row), True, everyone)
        ours.append(simulator.state.buffer[0].copy())
    return FreeRun(free, ticks - ticks[free], real, MatchState(blue, orange, len(ours), np.stack(ours)))


def _as_game(real: MatchState) -> MatchState:
    """Return a capture with the digits of velocities that the file does not print."""
    told = real.copy()
    for name in ("ball_linear_velocity", "car_linear_velocity"):
        getattr(told, name)[:] = _nearest_cut(getattr(told, name).astype(float))
    told.ball_rotation[:] = np.eye(3)
    return told


def _nearest_cut(values: np.ndarray) -> np.ndarray:
    """Return velocities in uu/s, those that are nearly a value the game cuts to as that value."""
    size = np.abs(values) * _STEPS
    whole = np.round(size - _OFFSET)
    near = (np.abs(size - _OFFSET - whole) < _NOT_PRINTED) & (values != 0)
    return np.asarray(np.where(near, np.copysign((whole + _OFFSET) / _STEPS, values), values))


def _row(told: MatchState, row: int) -> MatchState:
    return MatchState(told.layout.blue, told.layout.orange, 1, told.buffer[row : row + 1].copy())


def _first_row(told: MatchState) -> MatchState:
    """Return the first row as a whole state; tanks do not empty, as in freeplay."""
    first = _row(told, 0)
    blank = blank_state(told.layout.blue, told.layout.orange, 1)
    for name in _BODY:
        getattr(blank, f"ball_{name}")[:] = getattr(first, f"ball_{name}")
        getattr(blank, f"car_{name}")[:] = getattr(first, f"car_{name}")
    blank.car_boost_amount[:] = first.car_boost_amount
    blank.boost_consumption[:] = 0
    return blank
