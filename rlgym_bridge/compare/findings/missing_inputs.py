"""Find controls that a recording lacks: what cars do that the recorded controls do not explain.

A control that is 0 throughout may have been left out, or left alone. So it is tried: where the simulation is
far off over a short window, the window is simulated again with the control held, and where that makes up for
what was off, the control was pressed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.explanations import explanations_of_controls
from rlgym_bridge.compare.findings.significance import BLOCK, LEVEL, sign_test
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.altered_drive import AlteredDrive
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, POSITION, ROTATION, SPIN, TRIAL, VELOCITY, Drive, Track
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.compare.simulate.windows import spaced, thinned
from rlgym_bridge.game import CONTROL_NAMES, TICK_SECONDS
from rlgym_bridge.recording.recording import Inputs, TimeBase

WINDOWS: Final = 480
"""Windows of each car that are tried: short ones, many, since some inputs are rare."""

_AFTER: Final = 24  # ticks: the handbrake's ramp; less than most presses last
_LEAD: Final = 60.0  # ticks followed before
_ARM: Final = 100.0  # uu, turns a spin into the speed of a car's nose
_FAR_OFF: Final = 25.0  # uu/s of error (speed, and turning times `_ARM`) from which on a window is looked at
_EXPLAINED: Final = 0.5  # of an error
_LEAST: Final = 4  # windows that one control has to explain
_SHARE: Final = 0.15  # of the windows that are far off and in which it does something
_UNHARMED: Final = 20  # windows that are not far off, and that a change of controls has to leave so
_STICKS: Final = 5  # controls that go from -1 to 1; the others are 0 or 1
_JUMP: Final = CONTROL_NAMES.index("jump")


@dataclass(frozen=True)
class Missing:
    """A control that the recording lacks.

    Attributes:
        car: Row of the car.
        control: Its name.
        said: Whether the recording says so itself.
        explained: Windows that are far off and that the control explains.
        far_off: Windows that are far off.
        windows: Windows tried.
        doubtful: Whether something else is amiss, so that it has to explain most of them: another control
            explains nothing, or the rows are frames of a replay, which tell little of inputs.
    """

    car: int
    control: str
    said: bool
    explained: int
    far_off: int
    windows: int
    doubtful: bool = False
    rivals: tuple[str, ...] = ()

    @property
    def shown(self) -> bool:
        """True if the cars' motion shows that the control was used."""
        share = _EXPLAINED if self.doubtful else _SHARE
        return self.explained >= _LEAST and self.explained >= share * self.far_off


@dataclass(frozen=True)
class Worth:
    """The share of windows that a recorded control explains.

    Attributes:
        car: Row of the car.
        control: Its name.
        used: Share of rows in which it is not 0.
        helps: Share of the windows in which it does something that are worse without it; nan where there
            are too few.
        blocks: Blocks of time in which it does something and most windows agree: worse without it, or better.
        chance: Chance of so many better blocks if the control had nothing to do with the motion.
        level: Chance below which the control is called wrong: its share of `significance.LEVEL`.
    """

    car: int
    control: str
    used: float
    helps: float
    blocks: int
    chance: float
    level: float

    @property
    def wrong(self) -> bool:
        """True if the simulation is nearer to the recording without it, beyond chance."""
        return self.chance < self.level


def find_missing(scene: TimedRecording, windows: int = WINDOWS) -> tuple[list[Missing], list[Worth]]:
    """Try the controls of every car over so many windows of it.

    Returns:
        Controls that are absent throughout, and what the others are worth.
    """
    missing: list[Missing] = []
    worth: list[Worth] = []
    if scene.recording.inputs is Inputs.NONE:
        return missing, worth
    cars = [car for car in scene.bodies if car != BALL and scene.recording.inputs_recorded[car].any()]
    for car in cars:
        one, two = _Trial(scene, car, windows).judge(LEVEL / len(CONTROL_NAMES) / len(cars))
        missing += one
        worth += two
    return missing, worth


class _Trial:
    """The controls of one car, tried one by one."""

    def __init__(self, scene: TimedRecording, car: int, windows: int) -> None:
        self._scene, self._car = scene, car
        self._stage = RolloutArena(scene.recording, (car,), rules=scene.rules)
        controls = scene.recording.state.car_controls[:, car]
        self._used = (controls != 0).mean(0)
        self._recorded = scene.recording.inputs_recorded[car]
        self._windows = choose_windows(scene, car, windows)
        drive = scene.drive(car)
        if drive is None:
            raise ValueError(f"{scene.recording.source} has no inputs, expected some to try")
        self._drive = drive

    def judge(self, level: float) -> tuple[list[Missing], list[Worth]]:
        """Try all of them over all windows; what is wrong is wrong at a level."""
        drive = self._drive
        absent = np.flatnonzero((self._used == 0) | ~self._recorded).tolist()
        present = [control for control in range(len(CONTROL_NAMES)) if control not in absent]
        worse: dict[int, dict[tuple[int, int], list[bool]]] = {control: {} for control in present}  # by block
        shares: list[list[float]] = []  # of each window that is far off, for each absent control
        far: list[tuple[Track, int, int]] = []
        near: list[tuple[Track, int, int]] = []
        for number, (track, start, end) in enumerate(self._windows):
            without = self._end(track, start, end, drive)
            off = push_between(track, track.values[end, 0] - without)
            turn = present[number % max(len(present), 1) :][:1]  # where nothing is wrong one a window will do
            for control in present if np.linalg.norm(off) > _FAR_OFF else turn:
                push = push_between(track, self._end(track, start, end, drive.held(control, 0.0)) - without)
                if np.linalg.norm(push) > _FAR_OFF / 2:
                    block = self._block(track, start)
                    nearer = bool(np.linalg.norm(off) < np.linalg.norm(off - push))
                    worse[control].setdefault(block, []).append(nearer)
            window = (track, start, end)
            if np.linalg.norm(off) < _FAR_OFF:
                near.append(window)
                continue
            far.append(window)
            shares.append([self._explains(window, drive, control, without, off) for control in absent])
        explained = explain_one_by_one(np.array(shares).reshape(len(shares), len(absent)) > _EXPLAINED)
        worth = [self._worth(control, worse[control], level) for control in present]
        frames = self._scene.recording.clock is TimeBase.FRAMES
        doubtful = frames or any(one.wrong for one in worth)
        missing = [
            Missing(
                self._car, CONTROL_NAMES[control], not self._recorded[control], windows, len(shares),
                len(self._windows), doubtful and bool(self._recorded[control]),
            )
            for control, windows in zip(absent, explained, strict=True)
        ]  # fmt: skip
        if any(one.shown and not one.said for one in missing):
            counts = self._count_rivals(present, far, thinned(near, _UNHARMED))
            missing = [
                replace(one, rivals=tuple(name for name, count in counts.items() if count >= one.explained))
                if one.shown and not one.said else one
                for one in missing
            ]  # fmt: skip
        return missing, worth

    def _count_rivals(
        self, present: Sequence[int], far: Sequence[tuple[Track, int, int]],
        near: Sequence[tuple[Track, int, int]],
    ) -> dict[str, int]:  # fmt: skip
        """Return how many windows that are far off are explained by other uses of the recorded controls.

        Args:
            present: Columns of controls that are used.
            far: Windows that are far off.
            near: Windows that are not, none of which may be far off by a change that counts.
        """
        used = [CONTROL_NAMES[control] for control in present]
        counts: dict[str, int] = {}
        for each in explanations_of_controls(self._car, used, 0):
            if each.unit or not each.name.endswith(("swapped", "inverted", "mirrored axis")):
                continue
            drive = AlteredDrive(self._drive, [each.alteration(each.values[0])])
            if not any(self._distance(window, drive) > _FAR_OFF for window in near):
                counts[each.name] = sum(
                    self._distance(window, drive) < (1 - _EXPLAINED) * self._distance(window, self._drive)
                    for window in far
                )
        return counts

    def _distance(self, window: tuple[Track, int, int], drive: Drive) -> float:
        """Return how far a window is off with inputs, uu/s."""
        track, start, end = window
        left = track.values[end, 0] - self._end(track, start, end, drive)
        return float(np.linalg.norm(push_between(track, left)))

    def _block(self, track: Track, start: int) -> tuple[int, int]:
        """Return the segment and the block of time in which a window begins."""
        return int(self._scene.recording.segment[track.rows[start]]), int(track.times[start] // BLOCK)

    def _worth(self, control: int, worse: Mapping[tuple[int, int], list[bool]], level: float) -> Worth:
        """Return what a control explains; `worse` says of the windows of each block if they need it."""
        windows = [window for block in worse.values() for window in block]
        votes = [2 * sum(block) - len(block) for block in worse.values()]
        helped, hurt = (sum(vote * sign > 0 for vote in votes) for sign in (1, -1))
        return Worth(
            self._car, CONTROL_NAMES[control], float(self._used[control]),
            float(np.mean(windows)) if len(windows) >= _LEAST else np.nan,
            helped + hurt, sign_test(hurt, helped), level,
        )  # fmt: skip

    def _explains(
        self, window: tuple[Track, int, int], drive: Drive, control: int, without: np.ndarray, off: np.ndarray
    ) -> float:
        """Return which share of an error a control makes up for, held as far as fits best."""
        track, start, end = window
        # A jump begins with the press, so that has to come after the start; the others may be held already.
        since = float(track.times[start]) if control == _JUMP else None
        held = drive.held(control, 1.0, since)
        push = push_between(track, self._end(track, start, end, held) - without)
        length = float(push @ push)
        if length < (_FAR_OFF / 2) ** 2:
            return 0.0
        amount = float(np.clip(off @ push / length, -1.0 if control < _STICKS else 0.0, 1.0))
        return 1.0 - float(np.linalg.norm(off - amount * push) / np.linalg.norm(off))

    def _end(self, track: Track, start: int, end: int, drive: Drive) -> np.ndarray:
        return np.asarray(simulate_end(self._stage, track, start, end, _LEAD, [drive])[0])


def explain_one_by_one(explains: np.ndarray) -> list[int]:
    """Return how many windows, `(windows, controls)` bool, each control explains that no better one does.

    The control that explains most counts first; what it explains needs no other.
    """
    counts, left = [0] * explains.shape[1], explains.copy()
    while left.any():
        best = int(left.sum(0).argmax())
        counts[best] = int(left[:, best].sum())
        left[left[:, best]] = False
    return counts


def push_between(track: Track, difference: np.ndarray) -> np.ndarray:
    """Return what of a difference between two bodies tells of inputs, `(n,)` uu/s."""
    if len(track.times) == TRIAL:  # its last speeds are not measured in all directions
        seconds = float(np.ptp(track.times)) * TICK_SECONDS
        return np.asarray(np.concatenate([difference[POSITION], _ARM * difference[ROTATION]]) / seconds)
    return np.concatenate([difference[VELOCITY], _ARM * difference[SPIN]])


def choose_windows(scene: TimedRecording, car: int, windows: int) -> list[tuple[Track, int, int]]:
    """Return windows without contact: (track, first moment, last moment)."""
    touched = np.concatenate([[0], np.cumsum(scene.near[:, car])])
    found = []
    for track in scene.tracks((car,)):
        trial = len(track.times) == TRIAL  # it begins where inputs do
        ends = track.nearest(track.times + _AFTER)
        off = np.abs(track.times[ends] - track.times - _AFTER)
        fits = (off < _AFTER / 2) if trial else (off < _AFTER / 5) & (np.arange(len(ends)) > 0)
        fits &= touched[track.rows[ends]] == touched[track.rows]
        begins = spaced(track.times, fits, _AFTER / 2)
        found += [(track, start, int(ends[start])) for start in begins]
    return thinned(found, windows)
