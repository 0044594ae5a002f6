"""Simulate the windows of recordings in one of the simulators, and name what happens in each."""

from dataclasses import dataclass

import numpy as np

from rlgym_bridge.compare.detection import name_situations, sizes_of
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.window_simulation import Bench, recorded, residuals, simulate
from rlgym_bridge.compare.windows import HORIZONS, make_windows


@dataclass
class WindowErrors:
    """Errors of windows by horizon, as `windows.HORIZONS` has them; nan where a window has no such end.

    Attributes:
        position: `(windows, horizons)` uu.
        velocity: The same, uu/s.
        names: The same, situations; "" where a window has no such end.
    """

    position: np.ndarray
    velocity: np.ndarray
    names: np.ndarray

    def at(self, name: str, ticks: int) -> np.ndarray:
        """Return which windows end after so many ticks in a situation, `(windows,)` bool."""
        return np.asarray(self.names[:, HORIZONS.index(ticks)] == name)


def measure_windows(scene: TimedRecording, most: int, simulator: str) -> WindowErrors:
    """Simulate windows of single bodies of a recording."""
    windows = [window for window in make_windows(scene, most) if not window.meeting]
    found = WindowErrors(*(np.full((len(windows), len(HORIZONS)), np.nan) for _ in range(2)),
                         np.full((len(windows), len(HORIZONS)), "", "<U24"))  # fmt: skip
    simulated = simulate(windows, bench=Bench(simulator))
    sizes = sizes_of(residuals(recorded(windows), simulated.values))
    names = name_situations(windows, simulated)
    for number, window in enumerate(windows):
        for end, column in enumerate(window.horizons):
            found.position[number, column], found.velocity[number, column] = sizes[number, end, 0, :2]
            found.names[number, column] = names[number, end, 0]
    return found


def join_errors(parts: list[WindowErrors]) -> WindowErrors:
    """Return the windows of several recordings together."""
    return WindowErrors(
        *(np.concatenate([getattr(one, name) for one in parts]) for name in ("position", "velocity", "names"))
    )
