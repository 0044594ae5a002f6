"""Measure how fast recorded tanks empty while boost is pressed, against RocketSim's rate."""

from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.mechanisms import Mechanism
from rlgym_bridge.compare.findings.significance import BLOCK, flip_test
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import shown
from rlgym_bridge.game import CONTROL_NAMES

_RATE: Final = 33.333 / 120.0  # of 100, in a tick [RocketSim 2.2.1, boost_used_per_second]
_LONG: Final = 12.0  # ticks that a tank empties without a break, at least
_EDGE: Final = 3.0  # ticks after the press that do not count, beside the lag
_RELEVANT: Final = 0.01  # share of the rate


def find_boost_use(scene: TimedRecording, car: int, level: float) -> Mechanism | None:
    """Return that a car's tank empties faster or slower than RocketSim's, if half of the time bears that out.

    The rate is fitted on odd blocks of time and judged on even ones, against RocketSim's.

    Args:
        scene: The recording.
        car: The car.
        level: Chance of a false claim.
    """
    used, spans, blocks = _runs(scene, car)
    odd = blocks % 2 == 1
    if not odd.any() or odd.all():
        return None
    value = float(used[odd].sum() / spans[odd].sum()) / _RATE
    if abs(value - 1) < _RELEVANT:
        return None
    off, left = (np.abs(used - rate * _RATE * spans)[~odd] for rate in (1.0, value))
    numbers = np.unique(blocks[~odd])
    gains = np.array([(off - left)[blocks[~odd] == number].mean() for number in numbers.tolist()])
    chance = flip_test(gains)
    if chance >= level:
        return None
    ratios = used[odd] / spans[odd] / _RATE
    half = 2.6 * float(ratios.std(ddof=1)) / np.sqrt(len(ratios)) if len(ratios) > 1 else np.inf
    return Mechanism(
        "boost use", f"boost use {100 * (value - 1):+.1f} %", "physics", [car], scene.recording.source, value,
        value - half, value + half, "times", float(1 - left.sum() / max(off.sum(), 1e-9)), len(numbers),
        chance, level, mutator="boost_used_per_second",
    )  # fmt: skip


def _runs(scene: TimedRecording, car: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what left the tank in each run of rows with boost pressed, in how many ticks, and its block.

    A run ends where the tank is filled or empty; its first ticks are left out.
    """
    recording, times = scene.recording, scene.timeline.inputs
    amount = recording.state.car_boost_amount[:, car].astype(float)
    pressed = recording.state.car_controls[:, car, CONTROL_NAMES.index("boost")] > 0
    there = shown(recording, car) & (amount > 0)
    goes = there & pressed
    goes[1:] &= amount[1:] <= amount[:-1]
    late = max(float(np.max(scene.lag)), 0.0)
    used, spans, blocks = [], [], []
    for number, segment in enumerate(recording.segments()):
        inside = np.diff(np.concatenate([[False], goes[segment], [False]]).astype(np.int8))
        for first, end in zip(np.flatnonzero(inside == 1), np.flatnonzero(inside == -1), strict=True):
            rows = np.arange(first, end) + segment.start
            rows = rows[times[rows] >= times[rows[0]] + _EDGE + late]
            if len(rows) > 1 and times[rows[-1]] - times[rows[0]] >= _LONG:
                used.append(amount[rows[0]] - amount[rows[-1]])
                spans.append(times[rows[-1]] - times[rows[0]])
                blocks.append((number, int(times[rows[0]] // BLOCK)))
    if not blocks:
        return np.empty(0), np.empty(0), np.empty(0, int)
    numbers = np.unique(np.array(blocks), axis=0, return_inverse=True)[1].reshape(-1)
    return np.array(used), np.array(spans), np.asarray(numbers)
