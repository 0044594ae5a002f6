"""Find sticks that got stuck: that kept the value before a change for some ticks, at times nobody knows.

Where a window is far off, each change of a stick is tried: the value before it is held on, as long as fits
best. That is a free choice, so it is compared with one that is as free: to hold another value of that stick.
A stick that got stuck comes nearer by its own value, over blocks of time.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.explained_windows import FAR, CarWindows
from rlgym_bridge.compare.findings.mechanisms import Mechanism
from rlgym_bridge.compare.findings.significance import flip_test
from rlgym_bridge.compare.findings.window_losses import loss_of
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import Drive
from rlgym_bridge.compare.simulate.windows import thinned
from rlgym_bridge.game import CONTROL_NAMES

_STICKS: Final = ("throttle", "steer", "pitch", "yaw", "roll")
_WINDOWS, _OF_BLOCK = 480, 5  # windows of a car, and of a block: what is stuck at times is seldom seen
_MOST: Final = 40  # windows that are tried
_LEAST: Final = 6  # blocks that have to be far off, and in which a stick has to matter
_BEFORE: Final = 30.0  # ticks before a window in which a change may lie that is held into it
_HELD: Final = 8.0  # ticks that a stick has to be stuck: less may be a lag, or a row that was left out
_EVERY: Final = 4.0  # ticks between the ends that are tried
_PLACEBOS: Final = 4  # times that other values are drawn
_OTHER: Final = 0.3  # by which another value of a stick differs from its own, at least
_SHARE: Final = 0.3  # of what windows are off, that has to be explained
_NOTHING: Final = 1e-9  # of a loss; a block that differs by less tells nothing
_APART: Final = 0.01  # chance below which one stick is better than another


class HeldDrive(Drive):
    """The inputs of one car with a control held at a value for some ticks.

    Args:
        drive: The inputs as recorded; they stay as they are.
        control: The control's column.
        value: The value.
        since, until: The ticks, by when they end; both count.
    """

    def __init__(self, drive: Drive, control: int, value: float, since: float, until: float) -> None:
        self.rows = drive.rows
        self._drive, self._control, self._value = drive, control, value
        self._since, self._until = since, until

    def during(self, row: int, ends: np.ndarray) -> np.ndarray:
        """Return the controls of ticks, `(n, 8)`, as `Drive.during`."""
        controls = self._drive.during(row, ends)
        controls[(ends >= self._since) & (ends <= self._until), self._control] = self._value
        return controls


def find_stuck(scene: TimedRecording, car: int, level: float) -> Mechanism | None:
    """Return the stick of a car that got stuck; None where none did, or too little is off to tell.

    Args:
        scene: The recording.
        car: The car.
        level: Chance of a false claim.
    """
    windows = CarWindows(scene, car, _WINDOWS, _OF_BLOCK)
    base = windows.errors((), range(len(windows)))
    far = thinned(np.flatnonzero(np.linalg.norm(base, axis=1) > FAR).tolist(), _MOST)
    if len(np.unique(windows.blocks[far])) < _LEAST:
        return None
    random, blocks, before = np.random.default_rng(0), windows.blocks[far], loss_of(base[far])
    best: dict[str, tuple[np.ndarray, float, float]] = {}  # losses, share, chance
    for name in _STICKS:
        tried = [
            [windows.errors_by(drive, window) for drive in _held(windows, window, name)] for window in far
        ]
        left = np.array(
            [min([off, *own], key=np.linalg.norm) for off, own in zip(base[far], tried, strict=True)]
        )
        share = 1 - float(np.linalg.norm(left, axis=1).sum() / np.linalg.norm(base[far], axis=1).sum())
        if share < _SHARE:
            continue
        losses = loss_of(left)
        others = [
            [
                min([loss, *(float(loss_of(windows.errors_by(drive, window)))
                             for drive in _held(windows, window, name, random))])
                for window, loss in zip(far, before.tolist(), strict=True)
            ]
            for _ in range(_PLACEBOS)
        ]  # fmt: skip
        gains = _by_block(np.mean(others, axis=0) - losses, blocks)
        if (np.abs(gains) > _NOTHING).sum() >= _LEAST:
            best[name] = losses, share, flip_test(gains)
    if not best:
        return None
    name = min(best, key=lambda each: float(best[each][0].mean()))
    losses, share, chance = best[name]
    if chance >= level / len(best):
        return None
    alike = [
        f"{other} stuck" for other, (theirs, _, theirs_chance) in best.items()
        if other != name and theirs_chance < level and flip_test(_by_block(theirs - losses, blocks)) >= _APART
    ]  # fmt: skip
    changed = int((np.abs(_by_block(before - losses, blocks)) > _NOTHING).sum())
    return Mechanism(
        f"{name} stuck", f"{name} stuck at times", "controls", [car], scene.recording.source, np.nan, np.nan,
        np.nan, "", share, changed, len(best) * chance, level, alike,
    )  # fmt: skip


def _held(
    windows: CarWindows, window: int, name: str, random: np.random.Generator | None = None
) -> Iterator[Drive]:
    """Yield the inputs with a stick held from each of its changes on, for longer and longer.

    Args:
        windows: The windows.
        window: Which.
        name: Of the stick.
        random: Draws another of the stick's values to hold; the value before the change where it is None.
    """
    control, drive = CONTROL_NAMES.index(name), windows.drive
    row, start, end = windows.span(window)
    ends = np.arange(start - _BEFORE, end + 1)
    values = drive.during(row, ends)[:, control]
    for place in (np.flatnonzero(np.diff(values)) + 1).tolist():
        value = float(values[place - 1])
        if random is not None:
            others = np.setdiff1d(drive.rows[:, control], values[place])
            others = others[np.abs(others - value) > _OTHER]
            if not len(others):
                continue
            value = float(random.choice(others))
        since = float(ends[place])
        untils = np.append(np.arange(max(since, start) + _HELD - 1, end, _EVERY), end)
        for until in untils.tolist():
            yield HeldDrive(drive, control, value, since, until)


def _by_block(gains: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the means of gains of windows over their blocks."""
    return np.array([gains[blocks == block].mean() for block in np.unique(blocks).tolist()])
