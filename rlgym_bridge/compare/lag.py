"""How late inputs act: the simulation is driven with each lag, and the one that fits is taken."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.compare.errors import between
from rlgym_bridge.compare.rollout import Stage
from rlgym_bridge.compare.scene import Scene
from rlgym_bridge.compare.tracks import BALL, POSITION, ROTATION, SPIN, TRIAL, VELOCITY, Drive, Track
from rlgym_bridge.compare.windows import thinned
from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.recording.recording import Inputs

_MOST: Final = 8  # ticks scanned at first; further off where the best is near an end
WINDOWS: Final = 60
"""Windows of each car: enough that the best lag of real flights wins by far."""

_AFTER: Final = 30  # ticks of a window: a tick of lag shows, chance does not yet
_LEAD: Final = 60.0  # ticks followed before
_ARM: Final = 100.0  # uu: what a spin error of 1 rad/s moves at a car's nose, to add it to speeds
_SMALL: Final = 0.5  # uu/s: differences below it are noise
_DRAWS: Final = 400  # of the bootstrap
_TELLING: Final = 0.3  # of the log of the error: windows that vary less with the lag do not count
_LEAST: Final = 6  # telling windows needed


@dataclass(frozen=True)
class LagFit:
    """How late inputs act.

    Attributes:
        ticks: With lag L the controls of a row drive the tick that begins L ticks after it; where a recording
            holds applied inputs, L is how much later than that they act.
        sure: Share of resampled sets of windows that give the same lag; 0 where nothing tells.
        windows: Windows that tell lags apart.
        curve: Typical error in uu/s for each lag scanned, with `_ARM` for turning.
    """

    ticks: int
    sure: float
    windows: int
    curve: dict[int, float]


def fit_lag(scene: Scene, windows: int = WINDOWS) -> LagFit:
    """Find the lag of a recording's inputs, from so many windows of each car."""
    if not scene.driven:
        return LagFit(0, 0.0, 0, {})
    first = 0 if scene.recording.inputs is Inputs.APPLIED else -1
    lags = list(range(first, _MOST + 1))
    errors = _errors(scene, lags, windows)
    if len(errors):
        seems = lags[int(errors.sum(0).argmin())]
        if seems >= _MOST - 1:
            more = list(range(_MOST + 1, 2 * _MOST + 1))
            lags, errors = lags + more, np.concatenate([errors, _errors(scene, more, windows)], axis=1)
        elif seems < 0:  # rows written before what they were decided on
            more = list(range(-_MOST, first))
            lags, errors = more + lags, np.concatenate([_errors(scene, more, windows), errors], axis=1)
    errors = errors[np.ptp(errors, axis=1) > _TELLING] if len(errors) else errors
    if len(errors) < _LEAST:
        return LagFit(0, 0.0, len(errors), {})
    best = int(errors.sum(0).argmin())
    draws = np.random.default_rng(0).integers(len(errors), size=(_DRAWS, len(errors)))
    again = errors[draws].sum(1).argmin(1)
    typical = np.exp(np.median(errors, axis=0)) - _SMALL
    at_an_end = lags[best] in (-_MOST, 2 * _MOST)  # it may be further off still
    return LagFit(
        lags[best], 0.0 if at_an_end else float((again == best).mean()), len(errors),
        {lag: float(value) for lag, value in zip(lags, typical, strict=True)},
    )  # fmt: skip


def _errors(scene: Scene, lags: list[int], windows: int) -> np.ndarray:
    """Return the log of the error of every window with every lag, `(windows, lags)`."""
    rows = []
    for body in scene.bodies:
        if body == BALL:
            continue
        stage = Stage(scene.recording, (body,))
        drives = [scene.drive(body, lag) for lag in lags]
        for track, start, end in _choose(scene, body, windows):
            after = float(track.times[end] - track.times[start])
            rows.append([_error(stage, track, start, end, after, drive) for drive in drives])
    return np.array(rows).reshape(-1, len(lags))


def _error(stage: Stage, track: Track, start: int, end: int, after: float, drive: Drive | None) -> float:
    path = stage.roll(track, start, int(after) + 2, _LEAD, [drive])
    off = track.values[end, 0] - between(path.values[:, 0], after)
    if len(track.times) == TRIAL:  # its last speeds are not measured in all directions, its place is rounded
        return float(np.log(_ARM * np.linalg.norm(off[ROTATION]) / (after * TICK_SECONDS) + _SMALL))
    # All as speeds: where something was not recorded, it is equally far off with every lag, or nearly so.
    moved = np.linalg.norm(off[POSITION]) + _ARM * np.linalg.norm(off[ROTATION])
    speed = np.linalg.norm(off[VELOCITY])
    if track.values[:, 0, SPIN].any():
        speed += _ARM * np.linalg.norm(off[SPIN])
    return float(np.log(speed + moved / (after * TICK_SECONDS) + _SMALL))


def _choose(scene: Scene, body: int, windows: int) -> list[tuple[Track, int, int]]:
    """Return windows in which inputs change and nothing is touched: (track, first moment, last moment)."""
    controls = scene.recording.state.car_controls[:, body]
    changes = np.concatenate([[False], (controls[1:] != controls[:-1]).any(1)])
    total = np.concatenate([[0], np.cumsum(changes)])
    touched = np.concatenate([[0], np.cumsum(scene.near[:, body])])
    found = []
    for track in scene.tracks((body,)):
        ends = track.nearest(track.times + _AFTER)
        after = track.times[ends] - track.times
        middle = track.nearest(track.times + _AFTER / 2)
        trial = len(track.times) == TRIAL  # it begins where inputs do
        if trial:
            middle = ends
        fits = (np.abs(after - _AFTER) < _AFTER / 5) & (trial | (np.arange(len(ends)) > 0))
        # What is pressed late in a window shows little of when it acts.
        fits &= total[track.rows[middle]] > total[track.rows]
        fits &= touched[track.rows[ends]] == touched[track.rows]
        last = -np.inf
        for start in np.flatnonzero(fits).tolist():
            if track.times[start] >= last + _AFTER / 2:
                found.append((track, start, int(ends[start])))
                last = track.times[start]
    return thinned(found, windows)
