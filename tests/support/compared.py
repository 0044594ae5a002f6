"""Recordings on their way through a comparison, and recordings with changes of their own."""

from dataclasses import replace
from functools import cache

import numpy as np

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.detection import Judged, judge_windows
from rlgym_bridge.compare.noise import Noise, measure_noise
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.window_simulation import Bench
from rlgym_bridge.compare.windows import Window, make_windows
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import ROCKETSIM3
from tests.support.fault_scenes import Fault, Form, Push, make_recording
from tests.support.planted_gaps import rows_of


@cache
def bench(simulator: str = ROCKETSIM3) -> Bench:
    """Return simulators that all tests share."""
    return Bench(simulator)


def scene_of(recording: Recording, lag: float = 0.0) -> TimedRecording:
    """Return a recording with its fitted times."""
    return TimedRecording(recording, fit_timeline(recording), lag=lag)


def noise_of(recording: Recording) -> Noise:
    """Return what a recording leaves open."""
    return measure_noise(scene_of(recording))


def windows_of(recording: Recording, most: int = 60, lag: float = 0.0) -> list[Window]:
    """Return the windows of a recording."""
    return make_windows(scene_of(recording, lag), most)


def judged(recording: Recording, most: int = 60, lag: float = 0.0) -> Judged:
    """Return the windows of a recording with their residuals and bounds."""
    scene = scene_of(recording, lag)
    return judge_windows(make_windows(scene, most), measure_noise(scene), bench())


def scenes_of(recording: Recording, first: int, last: int) -> Recording:
    """Return some scenes of a recording, from one up to another."""
    numbers = np.unique(recording.segment)[first:last]
    return rows_of(recording, np.flatnonzero(np.isin(recording.segment, numbers)))


def pushed(source: str, push: Push, seed: int = 1, form: Form | None = None) -> Recording:
    """Return a table of a match in which something pushes bodies."""
    random = np.random.default_rng([seed, 57])
    return make_recording(source, Fault("pushed", push=push), form or Form(table=True), random)


def named(recording: Recording, source: str) -> Recording:
    """Return a recording with another name."""
    return replace(recording, source=source)
