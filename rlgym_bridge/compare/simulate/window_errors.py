"""Errors of windows: what is compared, and how."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rlgym_bridge.compare.simulate.rollout import Path, RolloutArena
from rlgym_bridge.compare.simulate.tracks import POSITION, ROTATION, SPIN, VELOCITY, Drive, Track
from rlgym_bridge.compare.simulate.windows import HORIZONS
from rlgym_bridge.game import TICK_SECONDS


@dataclass
class Errors:
    """Errors of windows at their horizons, all `(windows, horizons)`.

    Attributes:
        names: Situation of each, "" where nothing was measured.
        position: uu.
        velocity: uu/s; of a car on its wheels along the ground alone.
        angle: rad between the two orientations.
        spin: rad/s.
        vectors: `(windows, horizons, 6)` recorded minus simulated position and velocity.
        ends: `(windows, horizons, 6)` recorded position and velocity.
        began: `(windows, horizons)` tick of the window's start.
        moments: `(windows, horizons)` ticks that really went by.
        origins: `(windows,)` (recording, body, row) of each window's start.
    """

    names: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    angle: np.ndarray
    spin: np.ndarray
    vectors: np.ndarray
    ends: np.ndarray
    began: np.ndarray
    moments: np.ndarray
    origins: list[tuple[int, int, int]] = field(default_factory=list)

    @staticmethod
    def empty(windows: int) -> "Errors":
        """Return room for windows."""
        shape = (windows, len(HORIZONS))
        numbers = {name: np.full(shape, np.nan) for name in _ARRAYS}
        numbers |= {name: np.full((*shape, 6), np.nan) for name in ("vectors", "ends")}
        numbers["names"] = np.full(shape, "", dtype="<U24")
        return Errors(**numbers, origins=[])

    @staticmethod
    def join(parts: Sequence["Errors"]) -> "Errors":
        """Return all windows of several."""
        if not parts:
            return Errors.empty(0)
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
        return Errors(**joined, origins=[origin for part in parts for origin in part.origins])

    def taken(self, windows: np.ndarray) -> "Errors":
        """Return some windows, by their indices."""
        arrays = {name: getattr(self, name)[windows] for name in _ARRAYS}
        return Errors(**arrays, origins=[self.origins[window] for window in windows.tolist()])


_ARRAYS: Final = ("names", "position", "velocity", "angle", "spin", "vectors", "ends", "began", "moments")


def enter(
    found: Errors, column: int, name: str, track: Track, place: int, path: Path, start: int, end: int
) -> None:
    """Compare the simulation with one moment of the recording.

    Args:
        found: One window.
        column: Which horizon.
        name: Its situation.
        track: The recording.
        place: Which of the track's bodies.
        path: The simulation from the window's start.
        start: First moment of the window.
        end: The moment to compare.
    """
    after = float(track.times[end] - track.times[start])
    ours, theirs = between(path.values[:, place], after), track.values[end, place]
    off = theirs - ours
    speed = off[VELOCITY]
    if path.wheels[round(after), place] >= 3:  # see `_settled` in rollout.py
        up = theirs[ROTATION][2::3]
        speed = speed - (speed @ up) * up
    found.names[0, column] = name
    found.position[0, column] = np.linalg.norm(off[POSITION])
    found.velocity[0, column] = np.linalg.norm(speed)
    chord = np.linalg.norm(off[ROTATION]) / np.sqrt(8.0)
    found.angle[0, column] = 2 * np.arcsin(min(chord, 1.0))
    found.spin[0, column] = np.linalg.norm(off[SPIN])
    found.vectors[0, column] = np.concatenate([off[POSITION], speed])
    found.ends[0, column] = theirs[:6]
    found.began[0, column] = track.times[start]
    found.moments[0, column] = after


def simulate_end(
    stage: RolloutArena, track: Track, start: int, end: int, lead: float, drives: Sequence[Drive | None]
) -> np.ndarray:
    """Simulate a window and return where its bodies are at its end, `(bodies, 18)`, see `tracks.BODY_SIZE`.

    Args:
        stage: The arena.
        track: Of the arena's bodies.
        start: First moment of the window.
        end: Its last moment.
        lead: Ticks to follow the recording before.
        drives: Inputs of each car; None for none.
    """
    after = float(track.times[end] - track.times[start])
    whole = int(after + 1e-9)
    path = stage.roll(track, start, whole + 1, lead, drives, skip=whole)
    places = range(path.values.shape[1])
    return np.stack([between(path.values[:, place], after - whole) for place in places])


def between(values: np.ndarray, after: float) -> np.ndarray:
    """Return a path `(ticks + 1, 18)` at a moment: between ticks the position is a cubic (Hermite's)."""
    tick = min(int(after + 1e-9), len(values) - 1)
    part = after - tick
    if part < 1e-6 or tick + 1 >= len(values):
        return np.asarray(values[tick])
    one, two = values[tick], values[tick + 1]
    blend: np.ndarray = one + part * (two - one)
    step = TICK_SECONDS
    first, second = one[VELOCITY] * step, two[VELOCITY] * step
    square, cube = part * part, part * part * part
    blend[POSITION] = (
        (2 * cube - 3 * square + 1) * one[POSITION] + (cube - 2 * square + part) * first
        + (3 * square - 2 * cube) * two[POSITION] + (cube - square) * second
    )  # fmt: skip
    return blend
