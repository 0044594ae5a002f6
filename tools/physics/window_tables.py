"""Older recordings of the real game as tables of errors, over many windows of each."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.input_lag import fit_lag
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.window_simulation import Bench
from rlgym_bridge.compare.windows import HORIZONS, SITUATIONS
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Inputs, Recording
from tests.support.free_runs import WORLDS
from tests.support.real_data import COLUMNS, REAL_DATA
from tests.support.simulated_windows import WindowErrors, join_errors, measure_windows

_SHOWN: Final = (30, 60, 120, 240)  # ticks
_WINDOWS: Final = 240  # of each body of a set, about
_LEAST: Final = 40  # of each body of a recording
_LAG_WINDOWS: Final = 60
_FEWEST: Final = 10  # windows of a situation in a cell


class Recordings(NamedTuple):
    """Recordings of one kind: a title, a pattern of files, and the map of their columns, "" for replays.

    Of replays the cars are left out.
    """

    title: str
    files: str
    columns: str


CAPTURES: Final = Recordings("captures of 2026, by situation", "game-2026/[!c]*.csv", "capture.toml")
"""All but clean-dodge, which lacks the pitch of its dodge."""
_SETS: Final = (
    Recordings("free balls, 2018", "ball/*.csv", "lobot-ball.toml"),
    Recordings("flight of 70 s, 2018", "car/aerial_120hz.txt", "lobot-car.toml"),
    Recordings("full throttle from rest, 2018", "car/data.txt", "lobot-car.toml"),
    Recordings("drives of 5 s, 2018", "car/*_episode_*.csv", "lobot-car-untimed.toml"),
    Recordings("turns, 2020", "turns/turn.accel.txt", "measurebot-turns.toml"),
    Recordings("balls of replays, 2018 to 2024", "replays/*.replay", ""),
)


def describe_windows(sets: Sequence[Recordings] = _SETS) -> list[str]:
    """Return a table for each kind of recordings, the older ones by default; absent ones are left out."""
    lines = []
    for kind in sets:
        files = sorted(REAL_DATA.glob(kind.files))
        if files:
            recordings = [read_recording(file, kind.columns) for file in files]
            lines += ["", f"### {kind.title.capitalize()}", "", *describe_recordings(recordings)]
    return lines


def read_recording(file: Path, columns: str = "") -> Recording:
    """Read a recording; without a map of its columns it is a replay, of which only the ball is simulated."""
    if columns:
        return open_recording(file, COLUMNS / columns)
    none = np.empty((0, 8), bool)
    return replace(open_recording(file), inputs=Inputs.NONE, inputs_recorded=none)


def describe_recordings(recordings: Sequence[Recording], worlds: Sequence[str] = WORLDS) -> list[str]:
    """Return a table of recordings of one kind: p50 / p90 of position, then of velocity.

    They are simulated in `worlds`; the first one names the situations.
    """
    found: dict[str, WindowErrors] = {}
    lags: dict[str, list[int]] = {}
    scenes = [TimedRecording(one, fit_timeline(one)) for one in recordings]
    for world in worlds:
        found[world], lags[world] = _measure(scenes, world)
    first = found[worlds[0]]
    assert all(one.names.shape == first.names.shape for one in found.values())
    times = " | ".join(f"{horizon / 120:g} s" for horizon in _SHOWN)
    lines = [f"| situation | simulator | {times} |", "|---|---|" + "---|" * len(_SHOWN)]
    known = np.logical_and.reduce([np.isfinite(one.position) for one in found.values()])
    for name in SITUATIONS:
        counted = [known[:, HORIZONS.index(at)] & first.at(name, at) for at in _SHOWN]
        if max(int(windows.sum()) for windows in counted) < _FEWEST:
            continue
        for world, errors in found.items():
            cells = [_cell(errors, windows, at) for windows, at in zip(counted, _SHOWN, strict=True)]
            lines.append(f"| {name} | {world} | {' | '.join(cells)} |")
    if any(lags.values()):
        told = "; ".join(f"{world} {', '.join(map(str, own))}" for world, own in lags.items())
        lines += ["", f"Fitted ticks by which inputs act late, of each recording: {told}."]
    return lines


def _measure(scenes: Sequence[TimedRecording], world: str) -> tuple[WindowErrors, list[int]]:
    """Return the errors of recordings in one of `WORLDS`, and the lag of each that has inputs."""
    parts, lags = [], []
    for scene in scenes:
        scene.lag = 0.0
        if scene.driven:
            lag = fit_lag(scene, _LAG_WINDOWS, bench=Bench(world)).ticks
            lags.append(lag)
            scene.lag = float(lag)
        parts.append(measure_windows(scene, max(_WINDOWS // len(scenes), _LEAST), world))
    return join_errors(parts), lags


def _cell(errors: WindowErrors, windows: np.ndarray, horizon: int) -> str:
    if windows.sum() < _FEWEST:
        return ""
    column = HORIZONS.index(horizon)
    place, fast = (getattr(errors, name)[windows, column] for name in ("position", "velocity"))
    (near, far), (slow, quick) = np.percentile(place, [50, 90]), np.percentile(fast, [50, 90])
    return f"{near:.3f} / {far:.3f}; {slow:.2f} / {quick:.2f} ({int(windows.sum())})"
