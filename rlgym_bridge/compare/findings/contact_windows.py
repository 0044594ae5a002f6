"""Short windows in which bodies touch, simulated again with one explanation or more applied."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.explained_windows import Applied, make_stage, number_blocks
from rlgym_bridge.compare.findings.significance import BLOCK
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, POSITION, SPIN, VELOCITY, Track
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.recording.recording import TimeBase

_BEFORE: Final = 3.0  # ticks from a window's start to where bodies come near each other, at least
_AFTER: Final = 24  # ticks from there to the window's end
_LEAD: Final = 60.0  # ticks that the simulation follows the recording before
_ARM: Final = 30.0  # uu: what turning at 1 rad/s counts, as a speed
_NEAR: Final = {True: 230.0, False: 220.0}  # uu between a car and the ball, and between two cars


class ContactWindows:
    """Short windows in which cars come near to the ball or to each other, with every body in them.

    Args:
        scene: The recording; without inputs, or as a replay, it has no such windows.
        most: Windows, at most.

    Attributes:
        blocks: `(windows,)` int, the block of time in which each begins.
    """

    def __init__(self, scene: TimedRecording, most: int) -> None:
        self._scene, self._bodies = scene, tuple(scene.bodies)
        self._windows: list[tuple[Track, int, int]] = []
        if scene.driven and scene.recording.clock is not TimeBase.FRAMES and len(self._bodies) > 1:
            every = [window for track in scene.tracks(self._bodies) for window in _contacts(track)]
            kept = np.linspace(0, len(every) - 1, min(len(every), most)).astype(int)
            self._windows = [every[place] for place in kept.tolist()]
        segment = scene.recording.segment
        self.blocks = number_blocks([
            (int(segment[track.rows[start]]), int(track.times[start] // BLOCK))
            for track, start, _ in self._windows
        ])  # fmt: skip
        self._stages: dict[Applied, RolloutArena] = {}
        self._known: dict[tuple[Applied, int], np.ndarray] = {}

    def __len__(self) -> int:
        """Return how many windows there are."""
        return len(self._windows)

    def errors(self, applied: Applied, which: Sequence[int]) -> np.ndarray:
        """Return what some windows are off, `(windows, 6 bodies)` uu/s, recorded minus simulated.

        Of each body velocity, and how it turns as the speed of a point 30 uu off its middle.
        """
        for window in which:
            if (applied, window) not in self._known:
                self._known[applied, window] = self._simulate(applied, window)
        return np.array([self._known[applied, window] for window in which])

    def _simulate(self, applied: Applied, window: int) -> np.ndarray:
        if applied not in self._stages:
            self._stages[applied] = make_stage(self._scene, self._bodies, applied)
        track, start, end = self._windows[window]
        drives = [self._scene.drive(body) for body in self._bodies if body != BALL]
        off = track.values[end] - simulate_end(self._stages[applied], track, start, end, _LEAD, drives)
        return np.asarray(np.concatenate([off[:, VELOCITY], _ARM * off[:, SPIN]], axis=1).ravel())


def _contacts(track: Track) -> list[tuple[Track, int, int]]:
    """Return the windows of a track in which two bodies come near: (track, first moment, last moment)."""
    near = np.zeros(len(track.times), bool)
    for one, other in combinations(range(len(track.bodies)), 2):
        apart = np.linalg.norm(track.values[:, one, POSITION] - track.values[:, other, POSITION], axis=1)
        near |= apart < _NEAR[BALL in (track.bodies[one], track.bodies[other])]
    windows, last = [], -np.inf
    for row in (np.flatnonzero(near[1:] & ~near[:-1]) + 1).tolist():
        start = int(np.searchsorted(track.times, track.times[row] - _BEFORE, side="right")) - 1
        end = int(track.nearest(track.times[row : row + 1] + _AFTER)[0])
        whole = abs(track.times[end] - track.times[row] - _AFTER) < _AFTER / 5
        if start >= 1 and whole and track.times[start] > last:
            windows.append((track, start, end))
            last = track.times[end]
    return windows
