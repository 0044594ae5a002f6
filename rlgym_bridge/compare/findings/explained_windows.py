"""Short windows of one car, simulated again with one explanation or more applied."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.compare.findings.explanations import Explanation
from rlgym_bridge.compare.findings.missing_inputs import choose_windows, push_between
from rlgym_bridge.compare.findings.significance import BLOCK
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.altered_drive import AlteredDrive
from rlgym_bridge.compare.simulate.rollout import Adjust, RolloutArena
from rlgym_bridge.compare.simulate.tracks import ROTATION, TRIAL, Drive, Track, stands
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.compare.simulate.windows import lead_ticks
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.arena import scale_constants

FAR: Final = 3.0
"""uu/s from which on a window is far off, where nobody knows when something goes wrong."""

Applied = tuple[tuple[Explanation, float], ...]
"""Explanations with their parameters, in the order in which they act."""


class CarWindows:
    """Short windows of one car without contact.

    Args:
        scene: The recording.
        car: The car.
        most: Windows, at most.
        of_block: Windows of a block of time, at most on average: it is blocks that are judged.

    Attributes:
        drive: The car's inputs as recorded.
        blocks: `(windows,)` int, the block of time that each lies in; no window lies in two.
    """

    def __init__(self, scene: TimedRecording, car: int, most: int, of_block: int = 2) -> None:
        drive = scene.drive(car)
        if drive is None:
            raise ValueError(f"{scene.recording.source} has no inputs, expected some to explain")
        self._scene, self._car, self.drive = scene, car, drive
        every = [window for window in choose_windows(scene, car, 2 * most) if _in_one_block(*window)]
        most = min(most, of_block * len({_block(scene.recording, *window[:2]) for window in every}))
        kept = np.linspace(0, len(every) - 1, min(len(every), most)).astype(int)
        self._windows = [every[place] for place in kept.tolist()]
        self.blocks = number_blocks([_block(scene.recording, *window[:2]) for window in self._windows])
        self._stages: dict[tuple[tuple[str, float], ...], RolloutArena] = {}
        self._rows: dict[tuple[Applied, int], np.ndarray] = {}  # controls of windows
        self._known: dict[tuple[tuple[tuple[str, float], ...], int], np.ndarray] = {}

    def __len__(self) -> int:
        """Return how many windows there are."""
        return len(self._windows)

    def errors(self, applied: Applied, which: Sequence[int]) -> np.ndarray:
        """Return what some windows are off with explanations applied, `(windows, numbers)` uu/s.

        The first three numbers are velocity, recorded minus simulated; the others turning at a car's nose.
        """
        return np.array([self._error(applied, window) for window in which])

    def _error(self, applied: Applied, window: int) -> np.ndarray:
        key = tuple((explanation.name, value) for explanation, value in applied), window
        if key not in self._known:
            if applied and applied[-1][0].alters_controls and self._drives_alike(applied, window):
                self._known[key] = self._error(applied[:-1], window)
            else:
                self._known[key] = self._simulate(self._altered(applied), self._stage(applied), window)
        return self._known[key]

    def _altered(self, applied: Applied) -> Drive:
        alterations = [each.alteration(value) for each, value in applied if each.alters_controls]
        return AlteredDrive(self.drive, alterations) if alterations else self.drive

    def _drives_alike(self, applied: Applied, window: int) -> bool:
        """Tell whether the last explanation changes no control row of a window."""
        track, start, end = self._windows[window]
        ends = np.arange(track.times[start] - lead_ticks(track, start, 0), track.times[end] + 1)
        row, key = int(track.rows[start]), (applied[:-1], window)
        if key not in self._rows:
            self._rows[key] = self._altered(applied[:-1]).during(row, ends)
        return bool((self._altered(applied).during(row, ends) == self._rows[key]).all())

    def far_blocks(self) -> int:
        """Return how many blocks of time are far off as recorded."""
        off = np.linalg.norm(self.errors((), range(len(self))), axis=1) if len(self) else np.zeros(0)
        return len(np.unique(self.blocks[off > FAR]))

    def span(self, window: int) -> tuple[int, float, float]:
        """Return the row in which a window begins, and the ticks at which it begins and ends."""
        track, start, end = self._windows[window]
        return int(track.rows[start]), float(track.times[start]), float(track.times[end])

    def errors_by(self, drive: Drive, window: int) -> np.ndarray:
        """Return what a window is off with other inputs, `(numbers,)` uu/s, as `errors`."""
        return self._simulate(drive, self._stage(()), window)

    def _simulate(self, drive: Drive, stage: RolloutArena, window: int) -> np.ndarray:
        track, start, end = self._windows[window]
        recorded = track.values[end, 0]
        simulated = simulate_end(stage, track, start, end, lead_ticks(track, start, 0), [drive])[0]
        off = push_between(track, recorded - simulated)
        if stands(recorded) and len(track.times) > TRIAL:  # a settled car shows a speed that moves it nowhere
            up = recorded[ROTATION][2::3]
            off[:3] -= (off[:3] @ up) * up
        return off

    def _stage(self, applied: Applied) -> RolloutArena:
        world = [(each, value) for each, value in applied if not each.alters_controls]
        key = tuple((each.name, value) for each, value in world)
        if key not in self._stages:
            self._stages[key] = make_stage(self._scene, (self._car,), world)
        return self._stages[key]


def make_stage(
    scene: TimedRecording, bodies: Sequence[int], world: Sequence[tuple[Explanation, float]]
) -> RolloutArena:
    """Return an arena for bodies of a recording with the physics that explanations have."""
    factors = {each.mutator: value for each, value in world if each.mutator}
    adjust: Adjust | None = None
    if factors:

        def adjust(mutators: rsim.MutatorConfig) -> None:
            scale_constants(mutators, factors)

    return RolloutArena(scene.recording, bodies, adjust, scene.rules)


def number_blocks(keys: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the number of each block, `(windows,)` int64 from 0, in the order of their keys."""
    if not keys:
        return np.empty(0, int)
    return np.asarray(np.unique(np.array(keys), axis=0, return_inverse=True)[1].reshape(-1))


def _block(recording: Recording, track: Track, start: int) -> tuple[int, int]:
    return int(recording.segment[track.rows[start]]), int(track.times[start] // BLOCK)


def _in_one_block(track: Track, start: int, end: int) -> bool:
    """Tell whether a window begins and ends in the same block of time; a trial is a block of its own."""
    if len(track.times) == TRIAL:
        return True
    return bool(track.times[start] // BLOCK == track.times[end] // BLOCK)
