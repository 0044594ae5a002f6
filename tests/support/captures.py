"""Measure how both simulators follow captures of the real game at 120 Hz.

    python -m tests.support.captures FOLDER [--simulators rocketsim2 rocketsim3] [--json FILE]

FOLDER holds captures as CSV tables, see `capture_files`; they do not belong to this project. Printed are, for
each simulator:

- the share of the next ticks' components that come out with all six printed digits (of bodies that move),
- the position error after 0.25, 0.5, 1 and 2 s, p50 / p90 in uu (windows), by situation.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rlgym_bridge.compare.clock_fit import raw_timeline
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL, POSITION, SPIN, VELOCITY, Track
from rlgym_bridge.compare.window_simulation import Bench, recorded, simulate
from rlgym_bridge.compare.windows import HORIZONS, Window
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import SIMULATORS
from tests.support.capture_events import Events, ball_situation, car_situation, find_events
from tests.support.capture_files import read_capture

_TICKS = (1, 30, 60, 120, 240)  # horizons of windows
_LEAD = 240.0  # ticks that are followed before a window
_MOVES = {"position": 0.0, "velocity": 1.0, "spin": 0.01}  # uu, uu/s, rad/s: what is less is at rest
_PARTS = {"position": POSITION, "velocity": VELOCITY, "spin": SPIN}

Errors = dict[str, dict[int, list[float]]]


class Capture:
    """A capture, ready to be simulated."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.name = path.stem
        recording = read_capture(path, folder)
        recording.segment[:] = 0  # a car at rest is no hole
        self.recording: Recording = recording
        self.bodies = (*range(recording.state.layout.cars), BALL)
        self.scene = TimedRecording(recording, raw_timeline(recording))
        (self.track,) = self.scene.tracks(self.bodies)
        self.events: Events = find_events(self.track, recording.state.car_controls[self.track.rows])

    def alone(self, place: int) -> Track:
        """Return the track of one body."""
        track = self.track
        return Track((self.bodies[place],), track.rows, track.times, track.values[:, [place]])


def measure_capture(capture: Capture, simulator: str, every: int) -> tuple[Errors, dict[str, list[bool]]]:
    """Return errors in uu by situation and horizon, and whether components of next ticks are exact."""
    errors: Errors = defaultdict(lambda: defaultdict(list))
    exact: dict[str, list[bool]] = defaultdict(list)
    chosen = list(_windows(capture, every))
    windows = [window for window, _, _ in chosen]
    real, ours = recorded(windows), simulate(windows, bench=Bench(simulator)).values
    for number, (window, body, names) in enumerate(chosen):
        place = window.bodies.index(body)
        for end, (column, name) in enumerate(zip(window.horizons, names, strict=True)):
            theirs, simulated = real[number, end, place], ours[number, end, place]
            if HORIZONS[column] == 1:
                if name != "car at rest":
                    _enter_exact(exact, body, theirs, simulated)
            else:
                off = theirs[POSITION] - simulated[POSITION]
                errors[name][HORIZONS[column]].append(float(np.linalg.norm(off)))
    return errors, exact


def _windows(capture: Capture, every: int) -> Iterator[tuple[Window, int, list[str]]]:
    """Yield windows with the body that is measured and the situations of their ends.

    Up to where a body meets another it is simulated alone, beyond that together with all others.
    """
    for place, body in enumerate(capture.bodies):
        for start in range(1, len(capture.track.times) - 1, every):
            named: dict[bool, list[tuple[int, int, str]]] = {}
            for ticks in _TICKS:
                end = _row_at(capture.track, start, ticks)
                if end is None:
                    continue
                name = (
                    ball_situation(capture.events, capture.track, start, end)
                    if body == BALL
                    else car_situation(capture.events, capture.track, place, start, end)
                )
                if name:
                    meets = "bump" in name or "hit" in name
                    named.setdefault(meets, []).append((end, HORIZONS.index(ticks), name))
            for meets, found in named.items():
                ends, columns, names = zip(*found, strict=True)
                track = capture.track if meets else capture.alone(place)
                yield Window(capture.scene, track, start, ends, columns, _LEAD, meets), body, list(names)


def _row_at(track: Track, start: int, horizon: int) -> int | None:
    """Return the moment that lies some ticks after another; None where none does."""
    row = int(np.searchsorted(track.times, track.times[start] + horizon))
    return row if row < len(track.times) and track.times[row] == track.times[start] + horizon else None


def _enter_exact(
    exact: dict[str, list[bool]], body: int, recorded: np.ndarray, simulated: np.ndarray
) -> None:
    for name, part in _PARTS.items():
        for real, ours in zip(recorded[part], simulated[part], strict=True):
            if max(abs(real), abs(ours)) > _MOVES[name]:
                same = f"{real:.6g}" == f"{ours:.6g}"
                exact[f"{'ball' if body == BALL else 'car'} {name}"].append(same)


def summarise(found: list[tuple[Errors, dict[str, list[bool]]]]) -> dict[str, Any]:
    """Put the captures together: percentiles and shares."""
    errors: Errors = defaultdict(lambda: defaultdict(list))
    exact: dict[str, list[bool]] = defaultdict(list)
    for one, other in found:
        for name, by_horizon in one.items():
            for horizon, values in by_horizon.items():
                errors[name][horizon] += values
        for name, flags in other.items():
            exact[name] += flags
    return {
        "exact": {name: [sum(flags), len(flags)] for name, flags in sorted(exact.items())},
        "errors": {
            name: {
                horizon: {
                    "p50": float(np.percentile(values, 50)),
                    "p90": float(np.percentile(values, 90)),
                    "windows": len(values),
                }
                for horizon, values in sorted(by_horizon.items())
            }
            for name, by_horizon in sorted(errors.items())
        },
    }  # fmt: skip


def print_summary(title: str, summary: dict[str, Any]) -> None:
    """Print a simulator's numbers."""
    print(f"\n{title}")
    shares = (f"{name} {a}/{n} = {100 * a / n:.1f} %" for name, (a, n) in summary["exact"].items())
    print("  next tick exact: " + ", ".join(shares))
    for name, by_horizon in summary["errors"].items():
        cells = (
            f"{horizon / 120:g} s {at['p50']:.3f}/{at['p90']:.3f} ({at['windows']})"
            for horizon, at in by_horizon.items()
        )
        print(f"  {name:34s}" + "   ".join(cells))


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of captures, *.csv")
    parser.add_argument("--simulators", nargs="+", default=SIMULATORS, choices=SIMULATORS)
    parser.add_argument("--only", default="", help="captures whose names contain this")
    parser.add_argument("--every", type=int, default=4, help="rows from one window to the next")
    parser.add_argument("--each", action="store_true", help="print each capture, too")
    parser.add_argument("--json", type=Path, help="write the numbers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [path for path in sorted(options.folder.glob("*.csv")) if options.only in path.name]
        captures = [Capture(path, Path(folder)) for path in paths]
    if not captures:
        raise SystemExit(f"no captures in {options.folder}, expected *.csv")
    summaries = {}
    for simulator in options.simulators:
        found = [measure_capture(capture, simulator, options.every) for capture in captures]
        if options.each:
            for capture, one in zip(captures, found, strict=True):
                print_summary(f"{simulator}: {capture.name}", summarise([one]))
        summaries[simulator] = summarise(found)
        print_summary(f"{simulator}: all", summaries[simulator])
    if options.json:
        options.json.write_text(json.dumps(summaries, indent=1))


if __name__ == "__main__":
    main()
