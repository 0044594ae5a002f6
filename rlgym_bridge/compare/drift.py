"""How far RocketSim and a recording part: errors of many windows, for each horizon and situation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rlgym_bridge.compare.rollout import Adjust, Path, Stage
from rlgym_bridge.compare.timeline import Timeline
from rlgym_bridge.compare.tracks import (
    BALL,
    POSITION,
    ROTATION,
    SPIN,
    VELOCITY,
    Drive,
    Track,
    make_tracks,
    shown,
)
from rlgym_bridge.compare.windows import (
    BALL_TOUCHED,
    CAR_CONTACT,
    HORIZONS,
    lead_ticks,
    near_others,
    situation,
    starts,
    targets,
)
from rlgym_bridge.game import CONTROL_NAMES, TICK_SECONDS
from rlgym_bridge.recording.recording import Clock, Inputs, Recording

WINDOWS: Final = 240
"""Windows of each body, at most: their percentiles are steady, and a match takes seconds."""

CLOSEST: Final = 30.0  # ticks between the starts of windows, at least
_CONTACTS: Final = 40  # windows with contact that are simulated with everybody in them: they cost most
_JUMP: Final = CONTROL_NAMES.index("jump")
_BESIDE: Final = 2  # ticks simulated beyond the horizon: a row may lie there


@dataclass
class Errors:
    """Errors of windows at their horizons, all `(windows, horizons)`.

    Attributes:
        names: Situation of each, "" where nothing was measured.
        position: uu.
        velocity: uu/s; of a car on its wheels along the ground alone.
        angle: rad between the two orientations.
        spin: rad/s.
        vectors: `(windows, horizons, 6)` recorded minus simulated position and velocity.
        moments: `(windows, horizons)` ticks that really went by.
        origins: `(windows,)` (recording, body, row) of each window's start.
    """

    names: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    angle: np.ndarray
    spin: np.ndarray
    vectors: np.ndarray
    moments: np.ndarray
    origins: list[tuple[int, int, int]] = field(default_factory=list)

    @staticmethod
    def empty(windows: int) -> "Errors":
        """Return room for windows."""
        shape = (windows, len(HORIZONS))
        one, two, three, four, five = (np.full(shape, np.nan) for _ in range(5))
        return Errors(
            np.full(shape, "", dtype="<U24"), one, two, three, four, np.full((*shape, 6), np.nan), five
        )

    @staticmethod
    def join(parts: Sequence["Errors"]) -> "Errors":
        """Return all windows of several."""
        if not parts:
            return Errors.empty(0)
        names = ("names", "position", "velocity", "angle", "spin", "vectors", "moments")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return Errors(**joined, origins=[origin for part in parts for origin in part.origins])


@dataclass
class Scene:
    """A recording with its times, ready to be simulated.

    Attributes:
        recording: The recording.
        timeline: When its rows were.
        lag: Ticks by which its inputs act late.
        number: Which recording of those compared.
    """

    recording: Recording
    timeline: Timeline
    lag: float = 0.0
    number: int = 0

    def __post_init__(self) -> None:
        """Work out what every measurement needs."""
        self.near = near_others(self.recording)
        self.bodies = [
            body
            for body in (*range(self.recording.state.layout.cars), BALL)
            if shown(self.recording, body).any()
        ]
        self._tracks: dict[tuple[int, ...], list[Track]] = {}

    @property
    def driven(self) -> bool:
        """Whether there are inputs, so that cars can be simulated."""
        return self.recording.inputs is not Inputs.NONE and bool(self.recording.inputs_recorded.any())

    def tracks(self, bodies: Sequence[int]) -> list[Track]:
        """Return the tracks of bodies together."""
        key = tuple(bodies)
        if key not in self._tracks:
            self._tracks[key] = make_tracks(self.recording, self.timeline.times, key)
        return self._tracks[key]

    def drive(self, car: int, lag: float | None = None) -> Drive | None:
        """Return the inputs of a car, acting `lag` ticks late; the scene's own where it is None."""
        if car == BALL or not self.driven:
            return None
        return Drive(self.recording, car, self.timeline.inputs, self.lag if lag is None else lag)

    def since_jump(self, car: int) -> np.ndarray:
        """Return `(rows,)` ticks since a car last pressed or let go of jump, as far as is known."""
        pressed = self.recording.state.car_controls[:, car, _JUMP] > 0
        times = self.timeline.inputs
        latest = np.maximum.accumulate(np.where(pressed, np.arange(len(times)), -1))
        ago = np.where(latest >= 0, times - times[latest], np.inf)
        return np.asarray(np.maximum(ago - self.lag, 0.0))


def measure(
    scene: Scene, windows: int = WINDOWS, adjust: Adjust | None = None, contacts: bool = True,
    only: int | None = None, longest: int = HORIZONS[-1],
) -> Errors:  # fmt: skip
    """Simulate windows of every body and return their errors.

    Args:
        scene: The recording.
        windows: Most windows of each body.
        adjust: Changes RocketSim's constants.
        contacts: Whether to simulate windows in which bodies meet.
        only: A body, where the others are not wanted.
        longest: Ticks to simulate; longer horizons are left out.
    """
    parts = []
    for body in scene.bodies:
        if (body != BALL and not scene.driven) or only not in (None, body):
            continue
        parts.append(_measure_body(scene, body, windows, adjust, contacts, longest))
    return Errors.join(parts)


def spacing(tracks: Sequence[Track], windows: int) -> float:
    """Return ticks between starts so that tracks give about so many windows."""
    total = sum(float(track.times[-1] - track.times[0]) for track in tracks)
    return max(CLOSEST, total / max(windows, 1))


def _measure_body(
    scene: Scene, body: int, windows: int, adjust: Adjust | None, contacts: bool, longest: int
) -> Errors:
    tracks = scene.tracks((body,))
    every = spacing(tracks, windows)
    alone = Stage(scene.recording, (body,), adjust)
    together = _Together(scene, adjust) if contacts else None
    near = scene.near[:, body]  # the ball is the last column
    since = scene.since_jump(body) if body != BALL else np.full(len(near), np.inf)
    drives = [scene.drive(body)]
    parts = []
    for track in tracks:
        for start in starts(track, every).tolist():
            ends = targets(track, start)
            ends[np.array(HORIZONS) > longest] = -1
            if (ends < 0).all():
                continue
            last = float(track.times[ends.max()] - track.times[start])
            path = alone.roll(track, start, int(np.ceil(last)) + _BESIDE, lead_ticks(track, start, 0), drives)
            row = int(track.rows[start])
            found = Errors.empty(1)
            found.origins = [(scene.number, body, row)]
            meets = []
            for column, end in enumerate(ends.tolist()):
                if end < 0:
                    continue
                name = situation(track, 0, path, start, end, near, float(since[row]))
                if name in (BALL_TOUCHED, CAR_CONTACT):
                    meets.append((column, name))
                else:
                    _enter(found, column, name, track, 0, path, start, end)
            if meets and together is not None:
                together.enter(found, meets, body, row)
            parts.append(found)
    return Errors.join(parts)


class _Together:
    """Windows in which bodies meet: everybody takes part."""

    def __init__(self, scene: Scene, adjust: Adjust | None) -> None:
        self._bodies = tuple(scene.bodies)
        self._left = _CONTACTS
        self._stage = None
        # A replay shows bodies of different moments: they cannot be put there together.
        if scene.recording.clock is Clock.FRAMES or not scene.driven or len(self._bodies) < 2:
            return
        self._stage = Stage(scene.recording, self._bodies, adjust)
        self._tracks = scene.tracks(self._bodies)
        self._drives = [scene.drive(body) for body in self._bodies]

    def enter(self, found: Errors, meets: list[tuple[int, str]], body: int, row: int) -> None:
        """Fill in the horizons up to which a body meets another."""
        if self._stage is None or not self._left:
            return
        for track in self._tracks:
            start = int(np.searchsorted(track.rows, row))
            if not 0 < start < len(track.rows) or track.rows[start] != row:
                continue
            self._left -= 1
            ends = targets(track, start)
            place = track.bodies.index(body)
            lead = max(lead_ticks(track, start, one) for one in range(len(track.bodies)))
            wanted = [(column, name, int(ends[column])) for column, name in meets if ends[column] >= 0]
            if not wanted:
                return
            last = max(float(track.times[end] - track.times[start]) for _, _, end in wanted)
            path = self._stage.roll(track, start, int(np.ceil(last)) + _BESIDE, lead, self._drives)
            for column, name, end in wanted:
                _enter(found, column, name, track, place, path, start, end)


def _enter(
    found: Errors, column: int, name: str, track: Track, place: int, path: Path, start: int, end: int
) -> None:
    """Compare the simulation with one moment of the recording."""
    after = float(track.times[end] - track.times[start])
    ours, theirs = between(path.values[:, place], after), track.values[end, place]
    off = theirs - ours
    speed = off[VELOCITY]
    if path.wheels[round(after), place] >= 3:  # see `_settled` in rollout.py
        up = theirs[ROTATION][2::3]
        speed = speed - (speed @ up) * up
    found.names[0, column] = name
    found.position[0, column] = np.linalg.norm(off[POSITION])
    found.velocity[0, column] = np.linalg.norm(speed)
    chord = np.linalg.norm(off[ROTATION]) / np.sqrt(8.0)
    found.angle[0, column] = 2 * np.arcsin(min(chord, 1.0))
    found.spin[0, column] = np.linalg.norm(off[SPIN])
    found.vectors[0, column] = np.concatenate([off[POSITION], speed])
    found.moments[0, column] = after


def between(values: np.ndarray, after: float) -> np.ndarray:
    """Return a path `(ticks + 1, 18)` at a moment: between ticks the position is a cubic (Hermite's)."""
    tick = min(int(after + 1e-9), len(values) - 1)
    part = after - tick
    if part < 1e-6 or tick + 1 >= len(values):
        return np.asarray(values[tick])
    one, two = values[tick], values[tick + 1]
    blend: np.ndarray = one + part * (two - one)
    step = TICK_SECONDS
    first, second = one[VELOCITY] * step, two[VELOCITY] * step
    square, cube = part * part, part * part * part
    blend[POSITION] = (
        (2 * cube - 3 * square + 1) * one[POSITION] + (cube - 2 * square + part) * first
        + (3 * square - 2 * cube) * two[POSITION] + (cube - square) * second
    )  # fmt: skip
    return blend
