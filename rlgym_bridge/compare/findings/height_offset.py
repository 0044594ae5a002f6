"""Fit by how much recorded heights are off: what lies, stands or bounces on the floor shows it.

Along the floor a constant shows nowhere, as the floor is the same everywhere but at walls and goals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.block_bootstrap import LEAST_BLOCKS, median_interval
from rlgym_bridge.compare.findings.gaps import Gap
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, ROTATION, TRIAL, VELOCITY, Track
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.compare.simulate.windows import spaced, thinned
from rlgym_bridge.game import STANDING_LEAST_UP
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import TimeBase
from rlgym_bridge.user_input.arguments import count_of

_AFTER: Final = 30  # ticks of a window: a car falls 20 uu meanwhile
_LEAD: Final = 1.0  # ticks followed before
_WINDOWS: Final = 60  # of a body, at most
_FLAT: Final = 3.0  # uu by which the height changes in a window of a body on the floor; 20 in a jump's top
_BOUNCES: Final = 150.0  # uu/s downwards before a bounce, and upwards after it
_REST: Final = {"car": 17.0, "ball": 93.15}  # uu: near enough to begin a fit with [RS]
_FARTHEST: Final = 150.0  # uu: what is farther off is not held for being on the floor
_STEP: Final = 0.5  # uu, by which a body is raised to see what that does: the floor pushes a ball out softly
_NUDGE: Final = 1.0  # uu/s: gravity does not reach a ball at rest
_ROUNDS: Final = 4  # of the fit
_TELLS: Final = 0.3  # uu that a window's end moves for each uu of its height, at least
_SPEED: Final = 0.1  # s: what of an upward speed counts beside a height; no offset explains a speed
_SLIGHT: Final = 0.25  # uu: a median error below it is no offset, and nothing is fitted
_RELEVANT: Final = 0.5  # uu: RocketSim's cars on the ground are within 0.1 of the captures' heights
_VAGUE: Final = 0.1  # of an offset, or 1 uu: an interval that is longer tells none
_BIAS: Final = 0.05  # uu, added to intervals: RocketSim's bodies at rest are within 0.03 of eight captures'
_DIGITS: Final = 2  # decimals of an offset: the game rounds positions to 0.01 uu
_ALIKE: Final = 0.3  # uu between offsets that are the same
_LEAST: Final = 1  # blocks of time in which a body shows its height; all alike need `LEAST_BLOCKS`
_SHARE: Final = 0.7  # of the error that an offset has to explain
_HITBOXES: Final = (1.0, 2.1)  # uu by which higher cars stand than an Octane does: Plank, Breakout, Merc [RS]


@dataclass(frozen=True)
class HeightOffset:
    """A constant by which the heights of a body are off in a recording.

    Attributes:
        car: The car; -1 for the ball.
        size: By how many uu they are too high; below 0 they are too low.
        low, high: The interval that holds it with 99 %, from blocks of time.
        share: Of what heights are off at the floor, what it explains.
        windows: Windows that tell.
        blocks: Blocks of time in which these lie, each as long as a window.
    """

    car: int
    size: float
    low: float
    high: float
    share: float
    windows: int
    blocks: int

    @property
    def body(self) -> str:
        """Return the body's name: `the ball`, `car 0`."""
        return "the ball" if self.car == BALL else f"car {self.car}"

    @property
    def may_be_hitbox(self) -> bool:
        """True if a car of another hitbox stands as much higher than an Octane does."""
        return self.car != BALL and _HITBOXES[0] < self.size < _HITBOXES[1]


def fit_heights(scene: TimedRecording) -> list[HeightOffset]:
    """Return the bodies of a table whose heights are off by a constant.

    In matches and replays heights are the game's own: there none is looked for.

    Args:
        scene: The recording, with its fitted time; where its rules are known, they are used.
    """
    recording = scene.recording
    if isinstance(recording, MatchRecording) or recording.clock is TimeBase.FRAMES:
        return []
    fits: dict[int, HeightOffset | None] = {}
    for body in scene.bodies:
        if body == BALL or scene.driven:
            fits[body] = _fit(scene, body, [fit.size for fit in fits.values() if fit is not None])
    known = [fit for fit in fits.values() if fit is not None]
    claims = [fit for fit in known if fit.size and _count_alike(fit, known) >= LEAST_BLOCKS]
    if len(claims) > 1 and claims == known and all(_are_alike(claims[0], each) for each in claims):
        # What never shows its height has the offset of all others.
        claims += [replace(claims[0], car=body, share=0.0, windows=0, blocks=0)
                   for body, fit in fits.items() if fit is None]  # fmt: skip
    return claims


def correct_heights(scene: TimedRecording, offsets: Sequence[HeightOffset]) -> TimedRecording:
    """Return a recording without the offsets of its heights, its time, lag and rules kept."""
    state = scene.recording.state.copy()
    for offset in offsets:
        if offset.car == BALL:
            state.ball_position[:, 2] -= offset.size
        else:
            state.car_position[:, offset.car, 2] -= offset.size
    return replace(scene, recording=replace(scene.recording, state=state))


def height_gaps(source: str, offsets: Sequence[HeightOffset]) -> list[Gap]:
    """Return the gaps that offsets in height are.

    Args:
        source: Name of the recording.
        offsets: From `fit_heights`.
    """
    gaps = []
    for offset in offsets:
        way, change = ("high", "lower") if offset.size > 0 else ("low", "raise")
        hitbox = "; or its hitbox is another than the map says" if offset.may_be_hitbox else ""
        shown = (
            f"({offset.low:+.2f} to {offset.high:+.2f}), which explains {100 * offset.share:.0f} % of what "
            f"its heights are off there ({count_of(offset.windows, 'window')}){hitbox}"
        )
        shown = shown if offset.windows else "as the others; it is never seen to lie or stand there"
        gaps.append(Gap(
            GapVerdict.OFFSET, f"offset in height of {offset.body}", offset.size, offset.low, offset.high,
            "uu",
            f"{offset.body} in {source} is {abs(offset.size):.2f} uu too {way} above the floor {shown}. It "
            f"was taken out before all else was measured. To do so for good, {change} `add` at its height's "
            f"column in the map by {abs(offset.size):.2f}; it is 0 where none is written",
        ))  # fmt: skip
    return gaps


_Window = tuple[Track, int, int]  # a track, its first moment, its last


class _Floor:
    """The windows of one body on the floor, simulated with their heights changed."""

    def __init__(self, scene: TimedRecording, body: int) -> None:
        self._scene, self._body = scene, body
        self._stage = RolloutArena(scene.recording, (body,), rules=scene.rules)
        self._drive = scene.drive(body)
        self.rolls, bounces = _windows(scene, body)
        self.rolls = self.rolls if len(self.rolls) >= len(bounces) else []
        self.windows = thinned(self.rolls or bounces, _WINDOWS)

    def off(self, offset: float) -> np.ndarray:
        """Return how far windows end off with an offset taken out, `(windows, 2)`: height uu, speed uu/s."""
        ends = []
        for track, start, end in self.windows:
            values = track.values.copy()
            values[..., 2] -= offset
            if not values[start, 0, VELOCITY].any():
                values[start, 0, VELOCITY] = 0.0, 0.0, -_NUDGE
            lower = replace(track, values=values)
            simulated = simulate_end(self._stage, lower, start, end, _LEAD, [self._drive])[0]
            off = values[end, 0] - simulated
            ends.append((off[2], off[VELOCITY][2]))
        return np.array(ends).reshape(-1, 2)

    def blocks(self) -> np.ndarray:
        """Return which windows begin together, `(windows,)` int64 from 0."""
        keys = [(int(self._scene.recording.segment[track.rows[start]]), int(track.times[start] // _AFTER))
                for track, start, _ in self.windows]  # fmt: skip
        return np.asarray(np.unique(np.array(keys), axis=0, return_inverse=True)[1].reshape(-1))

    def first_guess(self) -> float:
        """Return the offset by which those that lie or roll are off their height at rest, uu."""
        if not self.rolls:
            return 0.0
        rest = _REST["ball" if self._body == BALL else "car"]
        return float(np.median([track.values[start, 0, 2] for track, start, _ in self.windows])) - rest


def _count_alike(fit: HeightOffset, known: Sequence[HeightOffset]) -> int:
    """Return in how many blocks bodies show the offset of one of them."""
    return sum(each.blocks for each in known if _are_alike(fit, each))


def _are_alike(one: HeightOffset, other: HeightOffset) -> bool:
    return abs(one.size - other.size) < _ALIKE


def _fit(scene: TimedRecording, body: int, guesses: Sequence[float]) -> HeightOffset | None:
    """Return the offset of a body's heights, 0 where it has none; None where too little shows it.

    Args:
        scene: The recording.
        body: The body.
        guesses: Offsets of other bodies, uu.
    """
    floor = _Floor(scene, body)
    if not floor.windows:
        return None
    blocks = floor.blocks()
    before = floor.off(0.0)
    if blocks.max() + 1 < _LEAST:
        return None
    none = HeightOffset(body, 0.0, 0.0, 0.0, 0.0, len(blocks), int(blocks.max()) + 1)
    if np.median(np.abs(before[:, 0])) < _SLIGHT:
        return none
    size = min((floor.first_guess(), *guesses), key=lambda guess: float(np.median(_loss(floor.off(guess)))))
    for _ in range(_ROUNDS):
        after = floor.off(size)
        slopes = (after[:, 0] - floor.off(size - _STEP)[:, 0]) / _STEP
        tells = np.abs(slopes) > _TELLS
        if len(np.unique(blocks[tells])) < _LEAST:
            return None
        sizes = size - after[tells, 0] / slopes[tells]
        size = float(np.median(sizes).clip(-_FARTHEST, _FARTHEST))
    share = 1 - _loss(floor.off(size)).sum() / max(_loss(before).sum(), 1e-9)
    own = np.unique(blocks[tells], return_inverse=True)[1].reshape(-1)
    low, high = median_interval(sizes, own)
    if share < _SHARE or min(abs(low), abs(high)) < _RELEVANT or high - low > max(_VAGUE * abs(size), 1.0):
        return none
    low, high = low - _BIAS, high + _BIAS
    return HeightOffset(
        body, round(size, _DIGITS), low, high, float(share), int(tells.sum()), int(own.max()) + 1
    )


def _loss(off: np.ndarray) -> np.ndarray:
    """Return by how much windows are off, `(windows,)` uu, from their heights and upward speeds."""
    return np.asarray(np.abs(off[:, 0]) + _SPEED * np.abs(off[:, 1]))


def _windows(scene: TimedRecording, body: int) -> tuple[list[_Window], list[_Window]]:
    """Return windows in which a body stays on the floor, and those in which it bounces off it once."""
    rolls, bounces = [], []
    touched = np.concatenate([[0], np.cumsum(scene.near[:, body])])
    for track in scene.tracks((body,)):
        if len(track.times) <= TRIAL:
            continue
        ends = track.nearest(track.times + _AFTER)
        fits = (np.abs(track.times[ends] - track.times - _AFTER) < _AFTER / 5) & (np.arange(len(ends)) > 0)
        fits &= touched[track.rows[ends] + 1] == touched[track.rows]
        for start in spaced(track.times, fits, _AFTER / 2):
            window = track, start, int(ends[start])
            values = track.values[start : window[2] + 1, 0]
            up = values[:, VELOCITY][:, 2]
            if np.ptp(values[:, 2]) < _FLAT and (body == BALL or _is_level(values)):
                rolls.append(window)
            elif body == BALL and up[0] < -_BOUNCES and up[-1] > _BOUNCES and (np.diff(up) > 0).sum() == 1:
                bounces.append(window)
    return rolls, bounces


def _is_level(values: np.ndarray) -> bool:
    """Tell whether a car, `(moments, 18)`, is level all the time, with its roof above."""
    return bool((values[:, ROTATION][:, 8] > STANDING_LEAST_UP).all())
