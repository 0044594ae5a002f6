"""Check that recorded sticks explain the directions in which cars dodge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.gaps import Gap
from rlgym_bridge.compare.findings.significance import LEVEL, binomial_tail
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import TRIAL, VELOCITY, Drive, Track, stands
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.compare.simulate.windows import lead_ticks, thinned
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import TimeBase

_BEFORE, _AFTER = 2.0, 4.0  # ticks from a press that acts to the start and the end of its window
_OFF: Final = 30.0  # uu/s; a dodge pushes with 500 and more
_EXPLAINED: Final = 0.9  # of what is off
_DODGES: Final = 40  # of a car that are tried, at most
_LEAD: Final = 16.0  # ticks followed before the windows without a press
_OTHERS: Final = 300  # windows of one row without a press, for comparison
_NAMES: Final = ("pitch", "yaw", "roll")
_THROTTLE: Final = CONTROL_NAMES.index("throttle")
_JUMP: Final = CONTROL_NAMES.index("jump")


@dataclass(frozen=True)
class _Dodge:
    """A press of jump in the air, and its window."""

    row: int
    track: Track
    start: int
    end: int


def dodge_gaps(scene: TimedRecording, cars: Sequence[int]) -> list[Gap]:
    """Return the controls that do not explain a dodge, where another value of theirs does.

    What a dodge is off is compared with what the car is off from one row to the next elsewhere in the
    recording: its rank among these is how seldom that happens by chance.

    Args:
        scene: The recording; replays, and tables that leave ticks out, do not show the sticks at a press.
        cars: Cars with inputs.
    """
    if scene.recording.clock is TimeBase.FRAMES or scene.unseen:
        return []
    return [gap for car in cars for gap in _gaps_of(scene, car, LEVEL / len(cars))]


def _gaps_of(scene: TimedRecording, car: int, level: float) -> list[Gap]:
    """Return that sticks do not explain dodges of a car, at most one gap."""
    drive = scene.drive(car)
    dodges = thinned(_dodges(scene, car), _DODGES)
    if drive is None or not dodges:
        return []
    stage = RolloutArena(scene.recording, (car,), rules=scene.rules)
    turned: list[tuple[float, _Dodge, tuple[float, str, float]]] = []
    for dodge in dodges:
        off = _off(stage, dodge.track, dodge.start, dodge.end, drive)
        if off >= _OFF:
            best = _best(stage, dodge, drive)
            if best[0] < (1 - _EXPLAINED) * off:
                turned.append((off, dodge, best))
    if not turned:
        return []
    usual = _usual(stage, scene, car, drive)
    least = min(off for off, _, _ in turned)
    chance = binomial_tail(len(turned), len(dodges), float((1 + (usual >= least).sum()) / (1 + len(usual))))
    if chance >= level:
        return []
    off, dodge, best = max(turned, key=lambda each: each[0])
    return [_gap(scene, car, dodge, off, best, chance, (len(turned), len(dodges)))]


def _dodges(scene: TimedRecording, car: int) -> list[_Dodge]:
    """Return the presses of jump in the air that have rows around them."""
    pressed = scene.recording.state.car_controls[:, car, _JUMP] > 0
    presses = np.flatnonzero(pressed[1:] & ~pressed[:-1]) + 1
    lags = np.broadcast_to(scene.lag, len(pressed))
    dodges = []
    for track in scene.tracks((car,)):
        for moment in (
            np.flatnonzero(np.isin(track.rows, presses)).tolist() if len(track.times) > TRIAL else []
        ):
            acts = track.times[moment] + lags[track.rows[moment]]
            start, end = track.nearest(np.array([acts - _BEFORE, acts + _AFTER])).tolist()
            near = abs(track.times[start] - acts + _BEFORE) < 1 and abs(track.times[end] - acts - _AFTER) < 1
            touched = scene.near[track.rows[start] : track.rows[end] + 1, car].any()
            if start > 0 and near and not touched and not stands(track.values[start, 0]):
                dodges.append(_Dodge(int(track.rows[moment]), track, start, end))
    return dodges


def _best(stage: RolloutArena, dodge: _Dodge, drive: Drive) -> tuple[float, str, float]:
    """Return what is off at least with one stick held, the stick and its value."""
    tried = []
    for name in _NAMES:
        for value in (-1.0, 0.0, 1.0):
            held = drive.held(CONTROL_NAMES.index(name), value)
            tried.append((_off(stage, dodge.track, dodge.start, dodge.end, held), name, value))
    return min(tried)


def _off(
    stage: RolloutArena, track: Track, start: int, end: int, drive: Drive, lead: float | None = None
) -> float:
    lead = lead_ticks(track, start, 0) if lead is None else lead
    off = track.values[end, 0] - simulate_end(stage, track, start, end, lead, [drive])[0]
    return float(np.linalg.norm(off[VELOCITY]))


def _usual(stage: RolloutArena, scene: TimedRecording, car: int, drive: Drive) -> np.ndarray:
    """Return what the car is off from row to row where no press is near, `(windows,)` uu/s."""
    pressed = scene.recording.state.car_controls[:, car, _JUMP] > 0
    new = np.flatnonzero(pressed[1:] & ~pressed[:-1]) + 1
    windows = [
        (track, start) for track in scene.tracks((car,)) for start in range(1, len(track.times) - 1)
        if not len(new) or np.abs(new - track.rows[start]).min() > _BEFORE + _AFTER
    ]  # fmt: skip
    return np.array(
        [_off(stage, track, start, start + 1, drive) for track, start in thinned(windows, _OTHERS)]
    )


def _gap(
    scene: TimedRecording,
    car: int,
    dodge: _Dodge,
    off: float,
    best: tuple[float, str, float],
    chance: float,
    counts: tuple[int, int],
) -> Gap:
    left, name, value = best
    recording = scene.recording
    row = recording.state.car_controls[dodge.row, car]
    throttle = float(row[_THROTTLE])
    keyboard = ""
    if name == "pitch" and abs(throttle) > 0.5 and np.sign(throttle) == -value:
        keyboard = (
            f"; so does throttle, which is {throttle:g} at the press: on a keyboard the game takes the "
            "forward part of a dodge from it"
        )
    recorded = float(row[CONTROL_NAMES.index(name)])
    many = f" ({counts[0]} of {counts[1]} presses in the air are so)" if counts[1] > 1 else ""
    text = (
        f"{name} {recorded:g} of {recording.source} does not explain the dodge of car {car} "
        f"at {recording.seconds[dodge.row]:.3f} s: the car is {off:.0f} uu/s off after it; {name} {value:g} "
        f"explains it to {left:.1f} uu/s{keyboard}{many}; chance {chance:.2g}, by its rank among rows "
        "without a press"
    )
    return Gap(GapVerdict.WRONG, f"{name} of a dodge", off, off, off, "uu/s", text)
