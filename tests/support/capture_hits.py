"""Attribute what RocketSim gets wrong in hits of the ball: `python -m tests.support.capture_hits FOLDER`.

For each hit in captures of the game, see `capture_files`, and each set of rules, windows begin some ticks
before it. Printed are errors: of the car's place at the hit, of the ball's speed and place after it, and of
its place after a second or at the capture's end; also with the car put nearer to the ball, as larger bodies
would have it.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import POSITION, ROTATION, VELOCITY
from rlgym_bridge.sim.game_rules import parse_rules
from tests.support.captures import Capture

RULES: Final = ("rocketsim", "velocity_cut,position_rounding", "thrust,wheels,jump,dodge,bump", "game")
STARTS: Final = (1, 2, 10, 30, 50)  # ticks before a hit
SHIFTS: Final = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0))
SMALLER: Final = 0.067  # uu by which RocketSim's box is smaller on each face
_SECOND: Final = 120  # ticks
_LEAD: Final = 240.0


@dataclass(frozen=True)
class HitErrors:
    """Errors of one window through a hit, recorded minus simulated.

    Attributes:
        rules: The rules that it was simulated by.
        start: Ticks before the hit at which it begins.
        shift: By what the car was moved along its own axes, `(3,)` uu.
        approach: Of the car's place in the tick before the hit, `(3,)` uu.
        speed: Of the ball's velocity two ticks after that, `(3,)` uu/s.
        place: Of the ball's position there, `(3,)` uu.
        later: Of the ball's position after `ticks`, uu.
        ticks: From the window's start to its end.
    """

    rules: str
    start: int
    shift: np.ndarray
    approach: np.ndarray
    speed: np.ndarray
    place: np.ndarray
    later: float
    ticks: int


def measure_hit(
    capture: Capture, tick: float, rules: str, start: int, shift: np.ndarray | None = None
) -> HitErrors:
    """Simulate one window through a hit.

    Args:
        capture: The capture; its first car hits the ball.
        tick: The hit's, in which both change their velocity.
        rules: Names of rules.
        start: Ticks before the hit.
        shift: By what to move the car along its own axes, `(3,)` uu; None for nothing.
    """
    shift = np.zeros(3) if shift is None else shift
    track, hit = capture.track, int(np.searchsorted(capture.track.times, tick))
    first = hit - start
    values = track.values.copy()
    values[first - 1 : first + 1, 0, POSITION] += values[first, 0, ROTATION].reshape(3, 3) @ shift
    moved = replace(track, values=values)
    last = int(np.searchsorted(track.times, track.times[first] + _SECOND, side="right")) - 1
    ticks = int(track.times[last] - track.times[first])
    arena = RolloutArena(capture.recording, capture.bodies, rules=parse_rules(rules))
    path = arena.roll(moved, first, ticks, _LEAD, [*capture.drives, None]).values
    off = {
        at: track.values[at] - path[int(track.times[at] - track.times[first])]
        for at in (hit - 1, hit + 1, last)
    }
    return HitErrors(
        rules, start, shift,
        off[hit - 1][0, POSITION], off[hit + 1][-1, VELOCITY], off[hit + 1][-1, POSITION],
        float(np.linalg.norm(off[last][-1, POSITION])), ticks,
    )  # fmt: skip


def measure_hits(capture: Capture) -> Iterator[HitErrors]:
    """Yield the errors of windows through all hits of a capture, by rules, starts and shifts."""
    for tick in capture.events.hits.tolist():
        for rules in RULES:
            for start in STARTS:
                yield measure_hit(capture, tick, rules, start)
        for shift in SHIFTS:
            yield measure_hit(capture, tick, "game", 1, SMALLER * np.array(shift))


def main(folder: Path) -> None:
    """Print the errors of every hit in a folder of captures."""
    with tempfile.TemporaryDirectory() as maps:
        for path in sorted(folder.glob("*.csv")):
            capture = Capture(path, Path(maps))
            for each in measure_hits(capture):
                vectors = (each.shift, each.approach, each.speed, each.place)
                told = " | ".join(" ".join(f"{number:+.3f}" for number in vector) for vector in vectors)
                print(
                    f"{path.stem} {each.rules} -{each.start} | {told} | {each.later:.3f} after {each.ticks}"
                )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
