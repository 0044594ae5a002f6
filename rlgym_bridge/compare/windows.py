"""Choose the windows of a recording: pieces that are simulated on their own, from a recorded state on.

A window has one body that touches no other, or the bodies of one meeting: a ball and the cars that hit it, or
cars that bump. So a car that drives otherwise than recorded makes no ball wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL, TRIAL, UP_Z, VELOCITY, Track, stands
from rlgym_bridge.game import (
    BACK_WALL_Y,
    GRAVITY,
    SIDE_WALL_X,
    STANDING_LEAST_UP,
    TICK_SECONDS,
    TICKS_PER_SECOND,
)
from rlgym_bridge.recording.recording import TimeBase

T = TypeVar("T")

HORIZONS: Final = (1, 12, 30, 60, 120, 240)
"""Ticks after the start at which a simulation is compared with the recording."""

BALL_AIR: Final = "ball in the air"
BALL_BOUNCED: Final = "ball after bounces"
BALL_GROUND: Final = "ball on the ground"
BALL_TOUCHED: Final = "ball touched by a car"
CAR_GROUND: Final = "car on the ground"
CAR_WALL: Final = "car on a wall"
CAR_AIR: Final = "car in the air"
CAR_LEAVES: Final = "car jumping or landing"
CAR_JUMPED: Final = "car after a jump"
CAR_CONTACT: Final = "car in contact"
SITUATIONS: Final = (
    BALL_AIR, BALL_BOUNCED, BALL_GROUND, BALL_TOUCHED,
    CAR_GROUND, CAR_WALL, CAR_AIR, CAR_LEAVES, CAR_JUMPED, CAR_CONTACT,
)  # fmt: skip
"""The situation of a window, for each horizon: what happens later does not count."""

STRETCH_TICKS: Final = 120
"""Windows that start in the same second of a file count as one stretch of play."""

_TIMER_TICKS: Final = 1.25 * TICKS_PER_SECOND  # the longest hidden timer: until the dodge is gone [RocketSim]
_GROUND_LEAD, _AIR_LEAD, _BALL_LEAD = 96.0, 180.0, 120.0
"""Ticks followed before a window. The handbrake takes 24 ticks to rise and 60 to fall; timers of jumps and
dodges last 150 [RocketSim]. A ball near a curved wall keeps older contacts [30 ticks are too few]."""

_LONG: Final = 360.0  # ticks of a track, in whose beginning no window has to start; captures are shorter
_SETTLED: Final = 36.0  # ticks after which suspension and tyres are as they would be, and no dodge is left
_DODGE_TICKS: Final = 84.0  # a dodge that began before the track turns the car for so long
_LONGEST_LEAD: Final = 600.0  # ticks
_BEFORE_JUMP: Final = 8.0  # ticks of the floor that are followed before a jump
_SPACING: Final = 30.0  # ticks between the starts of windows of a body, at least, in a long recording
_CLOSEST: Final = 4.0  # the same in a short one, whose windows overlap
_SHORT: Final = 60  # windows of a body that a short recording gives too
_MEETING_LEAD: Final = 6.0  # ticks before bodies come near: the window of a meeting starts there
_MEETING_TICKS: Final = 36.0  # ticks of such a window: a hit shows at once, and a little off goes elsewhere
_BOUNCE, _KICK = 20.0, 60.0
"""uu/s in a tick beyond gravity, of a ball and of a car (boost 9, a jump's push 12)."""
_RAMP, _CORNER = 400.0, 8064.0  # uu: what bends up before a wall; x + y of a corner's wall
_LOW: Final = 100.0  # uu, height of a ball that lies or rolls
_BESIDE, _NEXT_TO = 0.5, 0.1  # ticks, and share of a horizon, by which a row may lie beside it


@dataclass(frozen=True, eq=False)
class Window:
    """A piece of a recording that is simulated on its own."""

    scene: TimedRecording = field(repr=False)  # the recording
    track: Track = field(repr=False)  # of its bodies, cars first, the ball last
    start: int  # first moment, an index of the track
    ends: tuple[int, ...]  # moments that are compared, rising; each belongs to a horizon
    horizons: tuple[int, ...]  # the horizons of the ends, as indices of `HORIZONS`
    lead: float  # ticks of the recording that the simulation follows before
    meeting: bool = False  # whether its bodies meet; else there is one

    @property
    def bodies(self) -> tuple[int, ...]:
        """Rows of its cars, and `BALL`."""
        return self.track.bodies

    @property
    def row(self) -> int:
        """Row of the recording in which it starts."""
        return int(self.track.rows[self.start])

    @property
    def stretch(self) -> int:
        """The second of play that it starts in."""
        return int(self.track.times[self.start] // STRETCH_TICKS) + 100_000 * int(
            self.scene.recording.segment[self.row]
        )

    def seconds(self, end: int) -> float:
        """Return how long it lasts up to one of its ends, counted from 0, in s."""
        return float(self.track.times[self.ends[end]] - self.track.times[self.start]) * TICK_SECONDS


def make_windows(scene: TimedRecording, most: int) -> list[Window]:
    """Return all windows of a recording."""
    found = []
    for body in filter(scene.moves, scene.bodies):  # each up to where it comes near to another
        blocked, tracks = scene.blocked(body), scene.tracks((body,))
        every = _spacing(tracks, most)
        own = [
            _window_at(scene, track, start, blocked)
            for track in tracks for start in starts(track, every).tolist()
        ]  # fmt: skip
        found += thinned([one for one in own if one is not None], most)
    if scene.driven and scene.recording.clock is not TimeBase.FRAMES:  # a replay's bodies are of other ticks
        found += _meetings(scene, max(most // 4, 10))
    return found


def _window_at(
    scene: TimedRecording, track: Track, start: int, blocked: np.ndarray, meeting: bool = False
) -> Window | None:
    """Return the window of a track from a moment on; None where too little is shown or known."""
    ends = targets(track, start)  # `blocked` `(rows + 1,)` rises where no window may go on
    fits = (ends >= 0) & (blocked[track.rows[ends] + 1] == blocked[track.rows[start]])
    kept = np.flatnonzero(fits & (np.array(HORIZONS) <= (_MEETING_TICKS if meeting else np.inf))).tolist()
    if not kept:
        return None
    leads = leads_of(scene, track, start, int(ends[kept[-1]]))
    known = [lead for lead in leads if lead is not None]
    if len(known) < len(leads):
        return None
    lead = max(known, default=_BALL_LEAD)
    return Window(scene, track, start, tuple(ends[kept].tolist()), tuple(kept), lead, meeting)


def leads_of(scene: TimedRecording, track: Track, start: int, end: int) -> list[float | None]:
    """Return for how many ticks to follow each car before a window, so that all is known of it.

    A car remembers its jump and dodge since it left the floor, and a dodge that ends in a landing for 36
    ticks more. None if the track does not go back to a floor on which it had rested, and jump is pressed,
    or may have been in rows that were lost since: nobody knows whether the car has its dodge. None too in
    the beginning of a long track, since suspension,
    tyres and dodges that began before are not recorded.
    """
    cars = [place for place, body in enumerate(track.bodies) if body != BALL]
    return [_lead_of(scene, track, start, place, end) for place in cars]


def _lead_of(scene: TimedRecording, track: Track, start: int, place: int, end: int) -> float | None:
    values = track.values[: start + 1, place]
    times, rows = track.times, track.rows
    before = float(times[start] - times[0])
    long = scene.longest(track.bodies) > _LONG
    height = scene.standing_height[track.bodies[place]]
    on_floor = (values[:, 2] < height) & (values[:, UP_Z] > STANDING_LEAST_UP)
    begun = np.maximum.accumulate(np.where(on_floor, -1, np.arange(start + 1)))  # the last moment off it
    rested = on_floor & (times[: start + 1] - times[begun.clip(0)] >= _SETTLED)
    if not long:
        rested |= on_floor & (begun < 0)
    least = _GROUND_LEAD if on_floor[-1] else _AIR_LEAD
    last, body = np.flatnonzero(rested), track.bodies[place]
    since, lead = 0, least
    if len(last):
        since = int(last[-1])
        lead = max(least, float(times[start] - times[since]) + _BEFORE_JUMP)
    elif scene.knows_memory:
        since = int(np.searchsorted(times, times[start] - least))
    elif long and before < (_SETTLED if on_floor[-1] else _DODGE_TICKS):
        return None
    unknown = scene.lost_presses[body][rows[since] + 1 : rows[start] + 1].any()
    if not len(last) and not scene.knows_memory:
        unknown |= scene.presses(body)[rows[0] : rows[end] + 1].any()
    return None if unknown or lead >= _LONGEST_LEAD + _BEFORE_JUMP else lead


def _meetings(scene: TimedRecording, most: int) -> list[Window]:
    """Return windows in which bodies come near each other, those of all that are near at a time."""
    found, near, segment = [], scene.near, scene.recording.segment
    begins = np.flatnonzero(near.any(1) & ~np.concatenate([[False], near[:-1].any(1)]))
    for row in begins.tolist():
        soon = slice(row, row + 13)
        who = np.flatnonzero(near[soon][segment[soon] == segment[row]].any(0)).tolist()
        bodies = tuple(BALL if body == near.shape[1] - 1 else body for body in who)
        unknown = np.logical_or.reduce([scene.unknown_inputs[body] for body in bodies])
        if len(bodies) < 2 or unknown[soon].any():
            continue
        blocked = np.concatenate([[0], np.cumsum(unknown)])
        for track in scene.tracks(bodies):
            at = int(np.searchsorted(track.rows, row))
            if at >= len(track.rows) or track.rows[at] != row or at == 0:
                continue
            start = int(np.searchsorted(track.times, track.times[at] - _MEETING_LEAD))
            start = max(min(start, at - 1), min(1, at - 1))
            if (window := _window_at(scene, track, start, blocked, meeting=True)) is not None:
                found.append(window)
    return thinned(found, most)


def thinned(found: list[T], most: int) -> list[T]:
    """Return at most so many of some windows, evenly."""
    picks = np.linspace(0, len(found) - 1, min(len(found), most)).astype(int)
    return [found[pick] for pick in picks.tolist()]


def starts(track: Track, every: float) -> np.ndarray:
    """Return the moments of a track at which windows start, `(starts,)` indices, `every` so many ticks.

    Each has a moment before and after it. A track of two moments, a trial, starts at its first.
    """
    if len(track.times) <= TRIAL:
        return np.zeros(1, int)
    wanted = np.arange(track.times[1], track.times[-2] + 1e-6, every)
    found: np.ndarray = np.unique(np.clip(track.nearest(wanted), 1, len(track.times) - 2))
    return found


def targets(track: Track, start: int) -> np.ndarray:
    """Return the moments at which a window ends, `(horizons,)`; -1 where none lies near the horizon.

    The end of a trial, a track of two moments, counts for the first horizon that is not before it.
    """
    if len(track.times) == TRIAL:
        ends = np.full(len(HORIZONS), -1)
        column = int(np.searchsorted(HORIZONS, track.times[1] - track.times[0] - _BESIDE))
        if column < len(HORIZONS):
            ends[column] = 1
        return ends
    wanted = track.times[start] + np.array(HORIZONS)
    found = track.nearest(wanted)
    beside = np.abs(track.times[found] - wanted)
    fits = (beside <= np.maximum(_BESIDE, _NEXT_TO * np.array(HORIZONS))) & (found > start)
    return np.asarray(np.where(fits, found, -1))


def _spacing(tracks: Sequence[Track], most: int) -> float:
    """Return ticks between starts so that tracks give about so many windows; short ones overlap."""
    total = sum(float(track.times[-1] - track.times[0]) for track in tracks)
    return max(min(_SPACING, max(_CLOSEST, total / _SHORT)), total / max(most, 1))


def name_situation(
    window: Window, end: int, place: int, wheels: np.ndarray, kicked: bool, jumped: bool
) -> str:
    """Name the situation of one body of a window up to one of its ends; `wheels` `(2,)` as in `Simulated`."""
    track, body = window.track, window.bodies[place]
    values = track.values[window.start : window.ends[end] + 1, place]
    apart = np.diff(track.times[window.start : window.ends[end] + 1])
    if body == BALL:
        if window.meeting:
            return BALL_TOUCHED
        if values[0, 2] < _LOW:
            return BALL_GROUND
        return BALL_BOUNCED if kicked or has_kink(values, apart, _BOUNCE) else BALL_AIR
    if window.meeting:
        return CAR_CONTACT
    since = window.scene.since_jump(body, window.row)
    least, most = wheels
    if not stands(values[0]) and most < 3 and (jumped or since < _TIMER_TICKS) and since < 2 * _TIMER_TICKS:
        return CAR_JUMPED
    if most == 0:
        return CAR_LEAVES if kicked or has_kink(values, apart, _KICK) else CAR_AIR
    if least >= 3:
        upright = (values[:, UP_Z] > STANDING_LEAST_UP).all()
        low = (values[:, 2] < window.scene.standing_height[body]).all()
        across, along = np.abs(values[:, :2]).T
        midfield = ((across < SIDE_WALL_X - _RAMP) & (along < BACK_WALL_Y - _RAMP)).all()
        leaves = upright and midfield and (across + along < _CORNER - _RAMP).all()  # with wheels on it still
        return CAR_GROUND if upright and low else CAR_LEAVES if leaves else CAR_WALL
    return CAR_LEAVES


def has_kink(values: np.ndarray, apart: np.ndarray, kick: float) -> bool:
    """Tell whether a path of `(n, 18)` has a kink of `kick` uu/s; `apart` is `(n - 1,)` ticks."""
    change = np.diff(values[:, VELOCITY], axis=0)
    change[:, 2] += GRAVITY * TICK_SECONDS * apart
    return bool((np.linalg.norm(change, axis=1) > kick * np.maximum(apart / 2, 1)).any())


def kink_of(body: int) -> float:
    """Return the change of velocity in a tick that counts as a kink for a body, uu/s."""
    return _BOUNCE if body == BALL else _KICK
