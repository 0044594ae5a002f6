"""Judge windows against bounds: by how much each may be off by what its file leaves open.

Each window of each file is judged by itself, so other files and other windows cannot hide what it shows. One
window beyond its bounds suffices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rlgym_bridge.compare.alterations import Applied
from rlgym_bridge.compare.noise import Draw, Noise
from rlgym_bridge.compare.tracks import BALL, TRIAL
from rlgym_bridge.compare.window_simulation import (
    PARTS,
    Bench,
    Simulated,
    apart,
    recorded,
    residuals,
    simulate,
)
from rlgym_bridge.compare.windows import HORIZONS, Window, name_situation, thinned
from rlgym_bridge.game import TICKS_PER_SECOND

_FLOOR: Final = {"position": 0.03, "velocity": 0.05, "rotation": 0.0005, "spin": 0.005}
"""Errors that are no gap even of an exact recording, after a second: uu, uu/s, rad, rad/s. The eleven
captures of the game of 2026 stay within half of it in RocketSim 3 [measured]."""
_MEETING_FLOOR: Final = {"position": 0.2, "velocity": 1.0, "rotation": 0.01, "spin": 0.05}
"""The same where bodies meet: a hit of 3,165 uu/s is 0.02 to 0.13 uu/s off [measured]."""
_HULL_FLOOR: Final = {"position": 0.3, "velocity": 5.0, "rotation": 0.02, "spin": 0.2}
"""The same where a car's hull hits something: what it touched before counts, and no row holds it."""
_HULL: Final = 3.0  # multiple of the draws' differences there
_BOUNCED: Final = 4.0  # multiple of what is no gap of a ball that bounced: edges decide by the last bit
_BETWEEN_TICKS: Final = 5.0  # multiple of what is no gap if rows are not of whole ticks that are known
_EARLIER: Final = (6.0, 14.0, 30.0)  # ticks by which windows beyond their bounds start earlier
_DISMISSED: Final = 1.01  # multiple of a residual that its bound becomes
_AGAIN: Final = 48  # windows of a file that are drawn again, at most
_ROUNDS: Final = 3  # times that so many are
_HELD: Final = 0.9  # share of them that has to stay beyond, so that the others count
_FEW: Final = 12  # if so few are left, they are drawn still more often: a rare draw may come as near
_DRAWS: Final = range(4)
_DRAWS_AGAIN, _DRAWS_OF_FEW, _DRAWS_EARLIER = range(4, 36), range(32, 256), range(8)
"""Seeds of the draws of each window, of those that are beyond their bounds, of few, and of earlier starts."""
_WIDER: Final = 2.5  # multiple of the largest difference between draws that a window may be off
_STRONGER, _WIDER_AGAIN = 3.0, 1.25
"""Multiple of the noise in later draws, and of their largest difference."""


@dataclass
class Judged:
    """Windows with their residuals and bounds: `(n, ends, bodies, ...)`, nan where a window lacks it."""

    windows: list[Window]  # the windows
    off: np.ndarray  # `(..., 12)` recorded minus simulated, as `simulation.residuals`
    # `(..., 4)` of the sizes of position (uu), velocity (uu/s), rotation (rad) and spin (rad/s)
    bounds: np.ndarray
    names: np.ndarray  # `(...)` situations, "" where a window lacks it

    @property
    def sizes(self) -> np.ndarray:
        """Sizes of the residuals by part, `(n, ends, bodies, 4)`."""
        return sizes_of(self.off)

    @property
    def ratios(self) -> np.ndarray:
        """The largest size of a residual as a multiple of its bound, `(n, ends, bodies)`; 0 where none is."""
        return ratios_of(self.off, self.bounds)

    @property
    def horizons(self) -> np.ndarray:
        """Indices of `HORIZONS`, `(n, ends, bodies)`; -1 where a window lacks it."""
        found = np.full(self.names.shape, -1)
        for number, window in enumerate(self.windows):
            found[number, : len(window.horizons)] = np.array(window.horizons)[:, None]
        return found

    @property
    def beyond(self) -> np.ndarray:
        """Windows of which an end is beyond its bounds, `(n,)` bool."""
        return np.asarray((self.ratios > 1).any((1, 2)))


def sizes_of(off: np.ndarray) -> np.ndarray:
    """Return the sizes of residuals `(..., 12)` by part, `(..., 4)`."""
    return np.asarray(np.linalg.norm(off.reshape(*off.shape[:-1], 4, 3), axis=-1))


def ratios_of(off: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the largest ratio of the sizes of residuals `(..., 12)` to bounds `(..., 4)`; 0 for nan."""
    ratio = sizes_of(off) / bounds
    return np.asarray(np.nan_to_num(ratio, nan=0.0).max(-1))


def judge_windows(windows: Sequence[Window], noise: Noise, bench: Bench) -> Judged:
    """Simulate windows of one recording and find their bounds."""
    windows = list(windows)
    base = simulate(windows, bench=bench)
    off = apart(windows, recorded(windows), base.values)
    bounds = bounds_of(windows, noise, bench, base)
    waits = np.ones(len(windows), bool)
    for _ in range(_ROUNDS):
        doubtful = np.flatnonzero(waits & (ratios_of(off, bounds) > 1).any((1, 2)))
        again = np.array(thinned(doubtful.tolist(), _AGAIN), int)
        _judge_again(windows, noise, bench, base, bounds, again, _DRAWS_AGAIN)
        _judge_earlier(windows, noise, bench, off, bounds, again)
        waits[again] = False
        left = (ratios_of(off, bounds) > 1).any((1, 2))
        if not len(again) or left[again].mean() >= _HELD:
            break
    else:  # the first draws were too few here: those that nobody looked at again do not count
        others = np.flatnonzero(waits & left)
        bounds[others] = np.maximum(bounds[others], _DISMISSED * sizes_of(off[others]))
    few = np.flatnonzero((ratios_of(off, bounds) > 1).any((1, 2)))
    if len(few) <= _FEW:
        _judge_again(windows, noise, bench, base, bounds, few, _DRAWS_OF_FEW)
    return Judged(windows, off, bounds, name_situations(windows, base))


def _judge_again(
    windows: Sequence[Window], noise: Noise, bench: Bench, base: Simulated, bounds: np.ndarray,
    again: np.ndarray, draws: range,
) -> None:  # fmt: skip
    """Widen the bounds of some windows by many and stronger draws."""
    if not len(again):
        return
    some = [windows[one] for one in again.tolist()]
    ends, bodies = max(len(one.ends) for one in some), max(len(one.bodies) for one in some)
    own = replace(base, values=base.values[again, :ends, :bodies], kicked=base.kicked[again])
    more = bounds_of(some, noise, bench, own, draws, strength=_STRONGER)
    bounds[again, :ends, :bodies] = np.maximum(bounds[again, :ends, :bodies], more)


def _judge_earlier(
    windows: Sequence[Window], noise: Noise, bench: Bench, off: np.ndarray, bounds: np.ndarray,
    again: np.ndarray,
) -> None:  # fmt: skip
    """Dismiss windows whose ends are within bounds if they start a little earlier."""
    # What differs goes on to differ. What a body touched just before a start may decide, and is not recorded.
    ratios = ratios_of(off[again], bounds[again]).max(2)
    earlier: dict[tuple[int, int], Window] = {}
    for own, number in zip(ratios, again.tolist(), strict=True):
        window, times = windows[number], windows[number].track.times
        if own.max() <= 1:
            continue
        end = int(np.flatnonzero(own > 1)[0])
        for ticks in _EARLIER:
            start = int(np.searchsorted(times, times[window.start] - ticks - 0.01))
            if 0 < start < window.start:
                earlier.setdefault((number, start), replace(
                    window, start=start, ends=(window.ends[end],), horizons=(window.horizons[end],),
                    lead=window.lead + ticks,
                ))  # fmt: skip
    if not earlier:
        return
    tried = [*earlier.values()]
    base = simulate(tried, bench=bench)
    theirs = apart(tried, recorded(tried), base.values)
    limits = bounds_of(tried, noise, bench, base, _DRAWS_EARLIER, strength=_STRONGER)
    owners = np.array([number for number, _ in earlier])
    gone = np.unique(owners[(ratios_of(theirs, limits) <= 1).all((1, 2))])
    bounds[gone] = np.fmax(bounds[gone], _DISMISSED * sizes_of(off[gone]))


def bounds_of(
    windows: Sequence[Window], noise: Noise, bench: Bench, base: Simulated, draws: range = _DRAWS,
    applied: Applied = (), strength: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """Return bounds `(n, ends, bodies, 4)` from draws, by their seeds; `base` is simulated with `applied`."""
    most = np.zeros((*base.values.shape[:3], 4))
    drawing = bench.of_draws(windows[0].scene.recording.mode)
    middle = base.values if drawing is bench else simulate(windows, applied, bench=drawing).values
    for seed in draws:
        others = strength > 1 and seed % 4 >= 2  # in half of the later draws all bodies are there
        drawn = simulate(windows, applied, bench=drawing, draw=Draw(noise, seed, strength, others))
        most = np.fmax(most, sizes_of(residuals(drawn.values, middle)))
        noise.drawn.clear()
    wider = _WIDER_AGAIN if strength > 1 else _WIDER
    for number, window in enumerate(windows):
        trial = len(window.track.times) == TRIAL
        for place, body in enumerate(window.bodies):
            own = 3 * np.sqrt(3) * np.array([noise.bodies[body].of(part) for part in PARTS])
            # A ball turns as it likes. The last speeds of a trial are not measured in all directions.
            unseen = np.array([False, trial, body == BALL, trial or not window.scene.knows_spin[body]])
            for end, column in enumerate(window.horizons):
                floors, around = _floors(window, body, HORIZONS[column], base.kicked[number, end, place])
                most[number, end, place] = around * wider * most[number, end, place] + own + floors
                most[number, end, place, unseen] = np.inf
    return most


def _floors(window: Window, body: int, ticks: int, kicked: bool) -> tuple[np.ndarray, float]:
    """Return errors after some ticks that are no gap, `(4,)`, and a multiple of the draws' differences."""
    floor = _MEETING_FLOOR if window.meeting else _FLOOR
    grown = np.array([floor[part] for part in PARTS]) * (0.5 + 0.5 * ticks / TICKS_PER_SECOND)
    if window.scene.time_slack:
        grown *= _BETWEEN_TICKS
    if not kicked or window.meeting:
        return grown, 1.0
    if body != BALL or window.scene.unseen:  # a ball's contacts of every tick are known
        return np.array([_HULL_FLOOR[part] for part in PARTS]), _HULL
    return _BOUNCED * grown, 1.0


def name_situations(windows: Sequence[Window], base: Simulated) -> np.ndarray:
    """Return the situations of simulated windows, `(n, ends, bodies)`; "" where a window lacks it."""
    names = np.full(base.values.shape[:3], "", dtype="<U24")
    for number, window in enumerate(windows):
        for end, place in np.ndindex(len(window.ends), len(window.bodies)):
            at = number, end, place
            names[at] = name_situation(
                window, end, place, base.wheels[at], base.kicked[at], base.jumped[number, place]
            )
    return names
