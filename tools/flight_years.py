"""Measure how far RocketSim is off a ball in the air after a second, by the time of the recording.

    python -m tools.flight_years match.replay ... --table 2026 MAP.toml capture.csv ... --json FILE

Replays say when they were recorded; of tables this has to be given. Recordings do not belong to this project.
For each replay and each set of tables the median and 90th percentile of the position error are written in uu,
of both simulators, and how many windows there are.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.clock_fit import fit_timeline
from rlgym_bridge.compare.comparison import WINDOWS
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.windows import BALL_AIR, HORIZONS
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.simulator import SIMULATORS
from tests.support.simulated_windows import join_errors, measure_windows

_SECOND: Final = 120  # ticks
_DATE: Final = re.compile(rb"Date\0.{4}StrProperty\0.{12}(\d{4}-\d{2})", re.DOTALL)


def measure_flights(recordings: Sequence[Recording], windows: int = WINDOWS) -> dict[str, dict[str, float]]:
    """Return the errors of balls in the air after a second, by simulator.

    Args:
        recordings: Recordings of one time.
        windows: Windows of each, at most.

    Returns:
        `p50` and `p90` in uu, and `windows`, by the names of the simulators.
    """
    scenes = []
    for recording in recordings:
        ball = replace(recording, inputs=Inputs.NONE, inputs_recorded=np.empty((0, 8), bool))  # no car drives
        scenes.append(TimedRecording(ball, fit_timeline(ball)))
    found = {}
    for name in SIMULATORS:
        errors = join_errors([measure_windows(scene, windows, name) for scene in scenes])
        flights = errors.position[errors.at(BALL_AIR, _SECOND), HORIZONS.index(_SECOND)]
        if len(flights):
            low, high = np.percentile(flights, [50, 90]).tolist()
            found[name] = {"p50": low, "p90": high, "windows": len(flights)}
    return found


def date_of(replay: Path) -> str:
    """Return the year and month in which a replay was recorded, as its header says: `2019-04`.

    Raises:
        ValueError: It does not say.
    """
    found = _DATE.search(replay.read_bytes())
    if found is None:
        raise ValueError(f"{replay} does not say when it was recorded, expected a Date in its header")
    return found[1].decode()


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("replays", type=Path, nargs="*", help="replays of the game")
    parser.add_argument("--table", nargs="+", action="append", default=[], metavar="YEAR MAP FILE ...")
    parser.add_argument("--json", type=Path, help="write the numbers")
    options = parser.parse_args()
    sets = [(date_of(file), [open_recording(file)]) for file in options.replays]
    for year, columns, *files in options.table:
        sets.append((year, [open_recording(file, columns) for file in files]))
    rows: list[dict[str, Any]] = []
    for when, recordings in sorted(sets, key=lambda one: one[0]):
        rows.append({"when": when, "errors": measure_flights(recordings)})
        cells = (
            f"{name} {at['p50']:.3f} / {at['p90']:.3f} ({at['windows']})"
            for name, at in rows[-1]["errors"].items()
        )
        print(f"{when:8s}", "   ".join(cells), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
