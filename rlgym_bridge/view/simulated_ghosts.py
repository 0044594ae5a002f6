"""Simulate a recording anew from each of its seconds on, to be drawn beside it."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.input_lag import fit_lag
from rlgym_bridge.compare.timed_recording import TimedRecording, check_playable
from rlgym_bridge.compare.tracks import POSITION, ROTATION, Track
from rlgym_bridge.compare.window_simulation import Bench, simulate
from rlgym_bridge.compare.windows import Window, leads_of, starts
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording, TimeBase
from rlgym_bridge.sim.simulator import check_simulator, simulator_for

_LEAD: Final = 180.0  # ticks followed where nobody knows what a car remembers: no timer of it lasts longer


@dataclass
class Ghosts:
    """Simulated bodies beside recorded ones: cars in the order of the state, the ball last."""

    position: np.ndarray  # `(rows, cars + 1, 3)` uu
    rotation: np.ndarray  # `(rows, cars + 1, 3, 3)`, columns forward, right, up
    distance: np.ndarray  # `(rows, cars + 1)` uu from the recorded body
    there: np.ndarray  # `(rows, cars + 1)` bool, whether the row has a ghost; the rest is 0 where it has none
    lag: int  # ticks by which the recorded inputs act late, as fitted


def ghosts(recording: Recording, simulator: str | None = None) -> Ghosts:
    """Put a simulator in the recorded state each second, and let it go with the recorded inputs.

    Without inputs there are ghosts of the ball alone, which no car hits. A replay shows bodies of different
    moments, so each is simulated by itself there. Raises FileNotFoundError without collision meshes,
    ValueError if RocketSim does not play the recorded game, or the simulator is unknown.
    """
    check_playable(recording)
    if simulator is not None:
        check_simulator(simulator)
    bench = Bench(simulator or simulator_for(recording.mode)[0])
    rows, cars = len(recording.tick), recording.state.layout.cars
    timeline = fit_timeline(recording)
    lag = fit_lag(TimedRecording(recording, timeline), bench=bench)
    scene = TimedRecording(recording, timeline, lag=lag.of_rows(rows))
    found = Ghosts(
        np.zeros((rows, cars + 1, 3)), np.zeros((rows, cars + 1, 3, 3)), np.zeros((rows, cars + 1)),
        np.zeros((rows, cars + 1), bool), lag.ticks,
    )  # fmt: skip
    moving = [body for body in scene.bodies if scene.moves(body)]
    together = scene.driven and recording.clock is not TimeBase.FRAMES
    for bodies in [moving] if together and moving else [[body] for body in moving]:
        windows = [one for track in scene.tracks(bodies) for one in _windows(scene, track)]
        _enter(found, windows, simulate(windows, bench=bench).values)
    return found


def _windows(scene: TimedRecording, track: Track) -> list[Window]:
    """Return windows along a track, each with all moments up to the one at which the next one starts."""
    begins = starts(track, TICKS_PER_SECOND).tolist()
    windows = []
    for start, end in pairwise([*begins, len(track.times) - 1]):
        if end <= start:
            continue
        leads = leads_of(scene, track, start, end)
        lead = max((_LEAD if one is None else one for one in leads), default=1.0)
        first = start if start == begins[0] else start + 1
        windows.append(Window(scene, track, start, tuple(range(first, end + 1)), (), lead))
    return windows


def _enter(found: Ghosts, windows: list[Window], values: np.ndarray) -> None:
    """Fill in the ghosts of some windows from their simulated moments, `(windows, moments, bodies, 18)`."""
    for window, played in zip(windows, values, strict=True):
        moments = list(window.ends)
        rows, real = window.track.rows[moments], window.track.values[moments]
        for place, body in enumerate(window.bodies):
            seen = played[: len(moments), place]
            found.position[rows, body] = seen[:, POSITION]
            found.rotation[rows, body] = seen[:, ROTATION].reshape(-1, 3, 3)
            off = seen[:, POSITION] - real[:, place, POSITION]
            found.distance[rows, body] = np.linalg.norm(off, axis=1)
            found.there[rows, body] = True
