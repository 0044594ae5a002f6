"""Try inputs that replicar inferred: `python -m tools.benchmarks.inferred_inputs FILE.parquet ...`.

RocketSim 3 is put into a state of a file and driven by its inputs alone; the file's own states are corrected
by the replay about 15 to 30 times a second.
"""

import sys
from pathlib import Path

import numpy as np

from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.recording.replays.replicar_recording import read_replicar
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState

HORIZONS = (30, 60, 120)  # ticks
EVERY = 17  # ticks between starts
AT_ONCE = 256


def errors_of(recording: Recording) -> dict[str, np.ndarray]:
    """Return how far each car is from where the file has it, `(windows, horizons)` uu, by air and ground."""
    state, longest = recording.state, max(HORIZONS)
    layout = state.layout
    whole = recording.car_shown.all(1)
    starts = np.array([
        row
        for part in recording.segments()
        for row in range(part.start, part.stop - longest, EVERY)
        if whole[row : row + longest + 1].all()
    ])  # fmt: skip
    simulator = make_simulator(ROCKETSIM3, AT_ONCE, layout.blue, layout.orange)
    air, ground = [], []
    for first in range(0, len(starts), AT_ONCE):
        rows = starts[first : first + AT_ONCE]
        every = np.resize(rows, AT_ONCE)  # the last ones are played again, to be as many
        simulator.put(range(AT_ONCE), MatchState(layout.blue, layout.orange, AT_ONCE, state.buffer[every]))
        ticks = every[:, None] + np.arange(1, longest + 1)
        controls = state.car_controls[ticks].swapaxes(1, 2)  # (matches, cars, ticks, 8)
        played = simulator.play(np.ascontiguousarray(controls, np.float32), [longest] * AT_ONCE)
        for match, row in enumerate(rows):
            there = MatchState(layout.blue, layout.orange, longest, played[match]).car_position
            for car in range(layout.cars):
                away = [
                    np.linalg.norm(there[ticks - 1, car] - state.car_position[row + ticks, car])
                    for ticks in HORIZONS
                ]
                stays = state.car_on_ground[row : row + longest + 1, car].all()
                (ground if stays else air).append(away)
    return {"on the ground": np.array(ground), "with air": np.array(air), "all": np.array(ground + air)}


def main() -> None:
    """Print a table."""
    found = [errors_of(read_replicar(Path(name))) for name in sys.argv[1:]]
    print("| windows | " + " | ".join(f"{ticks / 120:g} s: median, 90 %" for ticks in HORIZONS) + " |")
    print("|---" * (len(HORIZONS) + 1) + "|")
    for name in found[0]:
        away = np.concatenate([one[name] for one in found if len(one[name])])
        numbers = [f"{np.median(one):.1f}, {np.quantile(one, 0.9):.0f} uu" for one in away.T]
        print(f"| {name}, {len(away):,} | " + " | ".join(numbers) + " |")


if __name__ == "__main__":
    main()
