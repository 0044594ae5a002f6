"""Measure the errors of many windows, for each horizon and situation.

The noise floor is measured in the same way, on a recording of RocketSim itself: it is let go some way before
each window, and what it then does is taken for the recording, seen at the moments at which that shows rows.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.rollout import Adjust, Path, RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, Track
from rlgym_bridge.compare.simulate.window_errors import Errors, between, enter
from rlgym_bridge.compare.simulate.windows import (
    BALL_TOUCHED,
    CAR_CONTACT,
    HORIZONS,
    lead_ticks,
    situation,
    starts,
    targets,
)
from rlgym_bridge.recording.recording import Inputs, TimeBase

WINDOWS: Final = 240
"""Windows of each body, at most: their percentiles are steady, and a match takes seconds."""

CLOSEST: Final = 30.0  # ticks between the starts of windows, at least, where a recording is long
_SHORT: Final = 60  # windows of a body that a shorter recording gives too, by windows that overlap
_NEAREST: Final = 4.0  # ticks between their starts, at least
_CONTACTS: Final = 60  # windows of a body that are simulated with everybody in them, at most: they cost most
_BESIDE: Final = 2  # ticks simulated beyond the horizon: a row may lie there


def has_windows(scene: TimedRecording) -> bool:
    """Tell whether a recording shows any body that can be simulated for as long as the shortest window."""
    tracks = (
        track for body in scene.bodies if body == BALL or scene.driven for track in scene.tracks((body,))
    )
    return any(
        (targets(track, start) >= 0).any() for track in tracks for start in starts(track, CLOSEST).tolist()
    )


def measure(scene: TimedRecording, windows: int = WINDOWS) -> Errors:
    """Simulate windows of every body and return their errors.

    Args:
        scene: The recording.
        windows: Most windows of each body.
    """
    return _measure(scene, windows, of_itself=False)


def measure_floor(scene: TimedRecording, windows: int) -> Errors:
    """Measure RocketSim's own replay error, the noise floor, in the same windows.

    Args:
        scene: The recording whose windows, rows and inputs are taken.
        windows: Most windows of each body.
    """
    return _measure(scene, windows, of_itself=True)


def measure_alone(scene: TimedRecording, bodies: Sequence[int], windows: int, longest: int) -> Errors:
    """Simulate windows in which bodies touch neither the ball nor cars.

    Args:
        scene: The recording.
        bodies: Which; cars without inputs are left out.
        windows: Most windows of each body.
        longest: Ticks to simulate; longer horizons are left out.
    """
    casts = [_Cast(scene, (body,), None) for body in bodies if body == BALL or scene.driven]
    parts = [_windows(cast, None, cast.bodies[0], _begins(cast, windows), longest) for cast in casts]
    return Errors.join([window for part in parts for window in part])


def measure_again(
    scene: TimedRecording, body: int, rows: Collection[int], longest: int, adjust: Adjust
) -> Errors:
    """Simulate some windows of a body once more, alone and in a changed world.

    Args:
        scene: The recording.
        body: The body.
        rows: Rows of the recording in which the windows start.
        longest: Ticks to simulate; longer horizons are left out.
        adjust: Changes RocketSim's constants.
    """
    cast = _Cast(scene, (body,), adjust)
    chosen = []
    for track in cast.tracks:
        places = np.flatnonzero(np.isin(track.rows, list(rows)))
        chosen += [(track, int(place)) for place in places]
    return Errors.join(list(_windows(cast, None, body, chosen, longest)))


def _measure(scene: TimedRecording, windows: int, of_itself: bool) -> Errors:
    together = None
    # A replay shows bodies of different moments: they cannot be put there together.
    if scene.driven and len(scene.bodies) > 1 and scene.recording.clock is not TimeBase.FRAMES:
        together = _Cast(scene, tuple(scene.bodies), None, of_itself)
    parts = []
    for body in scene.bodies:
        if body == BALL or scene.driven:
            alone = _Cast(scene, (body,), None, of_itself)
            parts += list(_windows(alone, together, body, _begins(alone, windows), HORIZONS[-1]))
    return Errors.join(parts)


def _begins(cast: "_Cast", windows: int) -> list[tuple[Track, int]]:
    """Return tracks, each with a moment at which a window starts: about so many windows."""
    every = _spacing(cast.tracks, windows)
    return [(track, start) for track in cast.tracks for start in starts(track, every).tolist()]


@dataclass
class _Rolled:
    """A window as it was simulated."""

    track: Track
    start: int
    path: Path


class _Cast:
    """Some bodies of a scene, and the arena that plays them."""

    def __init__(
        self, scene: TimedRecording, bodies: tuple[int, ...], adjust: Adjust | None, of_itself: bool = False
    ) -> None:
        self.scene, self.bodies, self._of_itself = scene, bodies, of_itself
        self.tracks = scene.tracks(bodies)
        self._stage = RolloutArena(scene.recording, bodies, adjust, scene.rules)
        self._drives = [scene.drive(body) for body in bodies]
        self._rolled: dict[int, tuple[int, _Rolled]] = {}  # by the row of the start, with its last moment
        if of_itself:
            unsure = _unsure(scene)
            self._real = [scene.drive(body, times=unsure) for body in bodies]

    def roll(self, track: Track, start: int, last: int) -> _Rolled:
        """Simulate from a moment of a track to another, and a little beyond."""
        lead = max(lead_ticks(track, start, place) for place in range(len(self.bodies)))
        if self._of_itself:
            track, start, last = self._simulated(track, start, last, lead)
        ticks = int(np.ceil(track.times[last] - track.times[start])) + _BESIDE
        return _Rolled(track, start, self._stage.roll(track, start, ticks, lead, self._drives))

    def roll_once(self, track: Track, start: int, last: int) -> _Rolled:
        """Simulate as `roll`, or return what was simulated from this moment, as far or farther."""
        row = int(track.rows[start])
        if row not in self._rolled or self._rolled[row][0] < last:
            self._rolled[row] = last, self.roll(track, start, last)
        return self._rolled[row][1]

    def _simulated(self, track: Track, start: int, last: int, lead: float) -> tuple[Track, int, int]:
        """Return what RocketSim makes of a piece of a track, from `lead` ticks before the window on."""
        first = max(int(np.searchsorted(track.times, track.times[start] - lead - 0.01)), 0)
        first = max(min(first, start - 1), 0)
        times = track.times[first : last + 1]
        ticks = int(np.ceil(times[-1] - times[0])) + _BESIDE
        path = self._stage.roll(track, first, ticks, lead, self._real)
        values = np.stack([
            np.stack([between(path.values[:, place], time - times[0]) for time in times])
            for place in range(len(self.bodies))
        ], axis=1)  # fmt: skip
        piece = replace(track, rows=track.rows[first : last + 1], times=times, values=values)
        return piece, start - first, last - first


def _unsure(scene: TimedRecording) -> np.ndarray:
    """Return `(rows,)` when inputs may have changed: applied ones at any tick since the row before."""
    times = scene.timeline.inputs
    if scene.recording.inputs is not Inputs.APPLIED:
        return times
    gap = np.diff(times, prepend=times[:1])
    gap[np.diff(scene.recording.segment, prepend=scene.recording.segment[:1]) != 0] = 1.0
    spare = np.maximum(np.round(gap) - 1, 0)
    return np.asarray(times - np.floor(np.random.default_rng(0).random(len(times)) * (spare + 1)))


def _windows(
    alone: _Cast, together: _Cast | None, body: int, chosen: Sequence[tuple[Track, int]], longest: int
) -> Iterator[Errors]:
    """Yield the errors of each window of a body that begins at one of the chosen moments of its tracks."""
    scene = alone.scene
    near = scene.near[:, body]  # the ball is the last column
    since = scene.since_jump(body) if body != BALL else np.full(len(near), np.inf)
    meetings = 0
    for track, start in chosen:
        ends = targets(track, start)
        ends[np.array(HORIZONS) > longest] = -1
        if (ends < 0).all():
            continue
        found = Errors.empty(1)
        row = int(track.rows[start])
        found.origins = [(scene.number, body, row)]
        rolled = alone.roll(track, start, int(ends.max()))
        moved = rolled.start - start  # a simulated recording begins where it has to
        meets = {}
        for column in np.flatnonzero(ends >= 0).tolist():
            end = int(ends[column]) + moved
            name = situation(rolled.track, 0, rolled.path, rolled.start, end, near, float(since[row]))
            if name in (BALL_TOUCHED, CAR_CONTACT):
                meets[column] = name
            else:
                enter(found, column, name, rolled.track, 0, rolled.path, rolled.start, end)
        if meets and together is not None and meetings < _CONTACTS:
            meetings += 1
            _meet(found, meets, together, body, row)
        yield found


def _meet(found: Errors, meets: dict[int, str], together: _Cast, body: int, row: int) -> None:
    """Fill in the horizons up to which a body meets another: everybody takes part."""
    place = together.bodies.index(body)
    for track in together.tracks:
        start = int(np.searchsorted(track.rows, row))
        if start >= len(track.rows) - 1 or track.rows[start] != row:
            continue
        ends = targets(track, start)
        wanted = {column: int(ends[column]) for column in meets if ends[column] >= 0}
        if wanted:
            rolled = together.roll_once(track, start, max(wanted.values()))
            for column, end in wanted.items():
                moved = end + rolled.start - start
                enter(found, column, meets[column], rolled.track, place, rolled.path, rolled.start, moved)


def _spacing(tracks: Sequence[Track], windows: int) -> float:
    """Return ticks between starts so that tracks give about so many windows.

    In less than 15 s of a body windows start nearer to each other: a capture of 2 s gives as many, which
    overlap, and are judged by blocks.
    """
    total = sum(float(track.times[-1] - track.times[0]) for track in tracks)
    return max(min(CLOSEST, max(_NEAREST, total / _SHORT)), total / max(windows, 1))
