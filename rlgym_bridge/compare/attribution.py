"""Find the alterations that bring windows back into their bounds.

A true cause, applied to the simulation, brings every window in which it acts into its bounds. The bounds
follow from what the file leaves open, and RocketSim 3 adds no error of its own. So an alteration is named
only if it does that in windows that had no part in fitting it. Others that do as well are not told apart from
it. If none does, the cause is something that is not tried here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from rlgym_bridge.compare.alterations import (
    INPUTS,
    OFFSET,
    PHYSICS,
    TIME,
    Alteration,
    Applied,
    span,
    spanned,
)
from rlgym_bridge.compare.detection import Judged, bounds_with, ratios_of
from rlgym_bridge.compare.noise import Noise
from rlgym_bridge.compare.window_simulation import Bench, apart, recorded, simulate
from rlgym_bridge.compare.windows import HORIZONS, Window, thinned
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.sim.simulator import ROCKETSIM2

_FLAGGED, _QUIET = 48, 32  # windows beyond their bounds, and others, that every alteration is fitted to
_SCREENED: Final = 16  # windows on which all alterations are tried first
_FITTED: Final = 10  # alterations that are fitted to all of them
_CLEAR: Final = 3.0  # multiples of a bound from which on an end tells enough
_LONGEST: Final = 60  # ticks of windows that are not beyond their bounds
_MOST: Final = 1e3  # multiples of a bound beyond which a window counts no more
_BENDS: Final = 6  # times that a linear parameter is fitted again around the last
_WITHIN: Final = 1.3  # multiples of a bound within which a window counts as explained: alterations add noise
_BORNE: Final = 0.85  # share of the windows in which a cause acts, held out, that it has to explain
_COVERED: Final = 0.3  # share of the windows beyond bounds that a cause has to explain
_ALIKE: Final = 0.9  # share of what the best explains, from which on another is not told apart
_LEAST: Final = 3  # windows that a cause has to explain, if so many are beyond bounds
_FEWEST: Final = 2  # the same in a short file: one window may come near by chance
_PLAIN: Final = (
    2.0  # multiples of a bound that one of them has to be off: what is hardly beyond may be chance
)
_LEFT: Final = 0.1  # share of windows that stay beyond their bounds, and are no finding of their own
_ROUNDS: Final = 3
_STUCK_SHARE: Final = 0.65  # share of short windows that a stuck button has to explain
_STUCK_STICK: Final = 0.7  # the same of a stick, which another fault of it comes near to
_STUCK: Final = 2  # controls that are tried as stuck


@dataclass(frozen=True)
class Explained:
    """An alteration with what it explains.

    Attributes:
        alteration: The alteration.
        value: Its parameter.
        low, high: Its interval: where all windows that it explains stay within their bounds.
        share: Of the windows beyond bounds, those that it explains.
        windows: How many these are.
        alike: Phrases of alterations that are not told apart from it.
        explained: Indices of these windows in the sample.
    """

    alteration: Alteration
    value: float
    low: float
    high: float
    share: float
    windows: int
    alike: tuple[str, ...] = ()
    explained: frozenset[int] = frozenset()


@dataclass
class Attribution:
    """The explanation of the windows of a recording that are beyond their bounds.

    Attributes:
        causes: The alterations that are borne out, the most important first.
        left: Indices of judged windows that stay beyond bounds with all of them.
        flagged: How many windows were beyond bounds, of those that were tried.
        nearest: Phrase of the alteration that explains most of what is left, "" for none.
        nearest_share: Which share of it that is.
    """

    causes: list[Explained]
    left: list[int]
    flagged: int
    nearest: str = ""
    nearest_share: float = 0.0


class _Sample:
    """Windows with one end each, which alterations are fitted to."""

    def __init__(self, judged: Judged, noise: Noise, bench: Bench) -> None:
        self._noise = noise
        ratios = judged.ratios.max(2)
        beyond = judged.beyond
        self.numbers = [*_spread(judged, np.flatnonzero(beyond), _FLAGGED)]
        flagged = len(self.numbers)
        self.numbers += _spread(judged, np.flatnonzero(~beyond), _QUIET)
        self.windows: list[Window] = []
        bodies = judged.bounds.shape[2]
        self.bounds = np.full((len(self.numbers), bodies, 4), np.nan)
        for place, number in enumerate(self.numbers):
            window, own = judged.windows[number], ratios[number]
            end = _telling_end(window, own, place < flagged)
            self.windows.append(replace(window, ends=(window.ends[end],), horizons=(window.horizons[end],)))
            self.bounds[place] = judged.bounds[number, end]
        self.stretches = np.array([window.stretch for window in self.windows])
        self._bench = bench
        self._old: Bench | None = None
        self._known: dict[tuple[object, ...], np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.windows)

    def off(self, applied: Applied, which: np.ndarray) -> np.ndarray:
        """Return residuals of some windows with alterations, `(n, bodies, 12)`, as multiples of bounds."""
        key = (tuple((one.key, value) for one, value in applied), which.tobytes())
        if key not in self._known:
            some = [self.windows[one] for one in which.tolist()]
            ours = simulate(some, applied, bench=self._bench_of(applied)).values
            off = apart(some, recorded(some, applied), ours)[:, 0]
            padded = np.full((len(some), self.bounds.shape[1], 12), np.nan)
            padded[:, : off.shape[1]] = off
            self._known[key] = padded / np.repeat(self.bounds[which], 3, axis=-1)
        return self._known[key]

    def _bench_of(self, applied: Applied) -> Bench:
        if not any(one.kind == PHYSICS for one, _ in applied):
            return self._bench
        if self._old is None:
            self._old = Bench(ROCKETSIM2)
        return self._old

    def ratios(self, applied: Applied, which: np.ndarray) -> np.ndarray:
        """Return the largest ratio of each of some windows, `(n,)`."""
        scaled = self.off(applied, which)
        return np.asarray(ratios_of(scaled, np.ones((*scaled.shape[:-1], 4))).max(1))

    def ratios_drawn(self, applied: Applied, which: np.ndarray) -> np.ndarray:
        """Return the largest ratios with the bounds that windows have with alterations applied, `(n,)`.

        Inputs of another car, or other controls, change at other moments than those that were drawn before,
        and a body that is elsewhere touches something else.
        """
        ratios = self.ratios(applied, which)
        doubtful = np.flatnonzero((ratios > _WITHIN) & (ratios < _MOST))
        if not len(doubtful) or not applied:
            return ratios
        if applied[-1][0].kind not in (INPUTS, TIME) and len(doubtful) > len(which) / 2:
            return ratios  # it explains little, and is no change of what is pressed and when
        some = which[doubtful]
        windows = [self.windows[one] for one in some.tolist()]
        bench = self._bench_of(applied)
        base = simulate(windows, applied, bench=bench)
        limits = bounds_with(windows, self._noise, bench, base, applied)[:, 0]
        limits = np.fmax(limits, self.bounds[some][:, : limits.shape[1]])
        off = apart(windows, recorded(windows, applied), base.values)[:, 0]
        ratios = ratios.copy()
        ratios[doubtful] = np.minimum(ratios[doubtful], ratios_of(off, limits).max(1))
        return ratios

    def loss(self, applied: Applied, which: np.ndarray) -> float:
        """Return the mean of the bounded losses of some windows."""
        return (
            float(np.log1p(np.minimum(self.ratios(applied, which), _MOST) ** 2).mean()) if len(which) else 0.0
        )


def _telling_end(window: Window, ratios: np.ndarray, flagged: bool) -> int:
    """Return which end tells most: the first that is clearly off, or the last of a second's half."""
    ends = range(len(window.ends))
    if flagged:
        clear = [end for end in ends if ratios[end] > _CLEAR]
        return clear[0] if clear else int(ratios[: len(window.ends)].argmax())
    fits = [end for end in ends if HORIZONS[window.horizons[end]] <= _LONGEST]
    return fits[-1] if fits else 0


def _spread(judged: Judged, numbers: np.ndarray, most: int) -> list[int]:
    """Return some of the windows, evenly over situations and time."""
    groups: dict[str, list[int]] = {}
    for number in numbers.tolist():
        name = next(one for one in judged.names[number].ravel()[::-1].tolist() if one)
        groups.setdefault(f"{name} {judged.windows[number].bodies}", []).append(number)
    share = max(most // max(len(groups), 1), 4)
    chosen = [number for group in groups.values() for number in thinned(group, share)]
    rest = thinned([n for n in numbers.tolist() if n not in set(chosen)], max(most - len(chosen), 0))
    return sorted([*chosen, *rest])


def attribute(judged: Judged, noise: Noise, catalogue: Sequence[Alteration], bench: Bench) -> Attribution:
    """Find what explains the windows of a recording that are beyond their bounds.

    Args:
        judged: Its windows.
        noise: What the recording leaves open.
        catalogue: The alterations to try.
        bench: The simulators.
    """
    sample = _Sample(judged, noise, bench)
    search = _Search(sample, catalogue)
    found = Attribution([], [], int(judged.beyond.sum()))
    left = search.first
    for _ in range(_ROUNDS):
        if len(left) <= _LEFT * len(search.first):
            break
        best = search.best(left)
        if best is None or isinstance(best, tuple):
            if isinstance(best, tuple):
                found.nearest, found.nearest_share = best
            break
        found.causes.append(best)
        if best.alteration.sometimes:  # in each window from other ticks on: nothing can be added to it
            left = np.setdiff1d(left, sorted(best.explained))
            break
        search.applied = (*search.applied, (best.alteration, best.value))
        left = search.beyond()
    if len(left) > _LEFT * len(search.first):
        found.left = [sample.numbers[one] for one in left.tolist()]
    return found


class _Search:
    """A forward selection over alterations."""

    def __init__(self, sample: _Sample, catalogue: Sequence[Alteration]) -> None:
        self._sample, self._catalogue = sample, list(catalogue)
        self.applied: Applied = ()
        self._every = np.arange(len(sample))
        self.first = self.beyond()

    def beyond(self) -> np.ndarray:
        """Return which windows of the sample are beyond their bounds with what is applied, as indices."""
        if not self.applied:
            return np.flatnonzero(self._sample.ratios((), self._every) > 1.0)
        return np.flatnonzero(self._sample.ratios_drawn(self.applied, self._every) > _WITHIN)

    def best(self, flagged: np.ndarray) -> Explained | tuple[str, float] | None:
        """Return the alteration that explains most; if none is borne out, the nearest and its share."""
        sample = self._sample
        some = np.array(thinned(flagged.tolist(), _SCREENED), int)
        taken = {one.key for one, _ in self.applied}
        candidates = [one for one in self._catalogue if one.key not in taken]
        always = [one for one in candidates if not one.sometimes]
        screened = sorted(
            ((self._try(one, some)[1], place) for place, one in enumerate(always)),
            key=lambda pair: pair[0],
        )
        before = sample.loss(self.applied, some)
        picked = [always[place] for loss, place in screened[:_FITTED] if loss < before - 0.1]
        judged = [self._judge(one, flagged) for one in picked]
        borne = [one for one in judged if one is not None and one[1]]
        if not borne:
            judged += [self._judge_stuck(one, flagged) for one in self._likeliest_stuck(candidates, some)]
            borne = [one for one in judged if one is not None and one[1]]
        if not borne:
            known = [one for one in judged if one is not None]
            if not known:
                return None
            nearest = max(known, key=lambda one: one[0].share)[0]
            return nearest.alteration.phrase(nearest.value), nearest.share
        some_of = [one[0] for one in borne]
        best = max(some_of, key=lambda one: (round(one.share, 2), -_rank(one.alteration)))
        alike = [
            one.alteration.phrase(one.value)
            for one in some_of
            if one.alteration.name != best.alteration.name
            and len(one.explained & best.explained) >= _ALIKE * len(best.explained)
        ]
        return replace(best, alike=tuple(alike))

    def _with(self, one: Alteration, value: float) -> Applied:
        return (*self.applied, (one, value))

    def _try(self, one: Alteration, which: np.ndarray, start: float | None = None) -> tuple[float, float]:
        """Return the parameter that fits some windows best, and its loss; `start` is a first guess."""
        sample = self._sample
        can = np.array([one.can_change(sample.windows[place]) for place in which.tolist()], bool)
        base = sample.loss(self.applied, which)
        if not can.any():
            return one.neutral, base
        own = which[can]
        values = self._bend(one, own, start) if one.step else list(one.values)
        losses = [sample.loss(self._with(one, value), own) for value in values]
        place = int(np.argmin(losses))
        if one.unit == "of 1":  # between the values that are tried
            step = 0.02
            while step > 0.004:
                near = [values[place] - step, values[place] + step]
                values += near
                losses += [sample.loss(self._with(one, value), own) for value in near]
                place, step = int(np.argmin(losses)), step / 2
        rest = sample.loss(self.applied, which[~can])
        return values[place], (losses[place] * can.sum() + rest * (~can).sum()) / len(which)

    def _bend(self, one: Alteration, which: np.ndarray, start: float | None) -> list[float]:
        """Return values of a linear parameter, each fitted around the one before, from both sides."""
        found = []
        low, high = min(one.values), max(one.values)
        base = self._sample.off(self.applied, which)
        both = one.change is not None or one.kind in (OFFSET, TIME)
        starts = [one.neutral + sign * one.step for sign in ((1.0, -1.0) if both else (1.0,))]
        if one.starts and start is None:  # what touches, or no more, bends too much
            starts = [self._halve(one, which)]
            found = [*starts]
        if start is not None and start != one.neutral:
            starts, found = [start], [start]
        for value in starts:
            last, before = one.neutral, base
            for _ in range(_BENDS):
                tried = self._sample.off(self._with(one, value), which)
                amount = _fit_amount(tried, (before - tried) / (value - last))
                last, before = value, tried
                value = float(np.clip(value + amount, low, high))
                found.append(value)
                if abs(value - last) < 1e-3 * abs(last - one.neutral) or abs(value - one.neutral) < 1e-9:
                    break
        return found or [one.neutral + one.step]

    def _halve(self, one: Alteration, which: np.ndarray) -> float:
        """Return the parameter that fits best of those to begin from, and of some around it."""
        tried = {value: self._sample.loss(self._with(one, value), which) for value in one.starts}
        best = min(tried, key=tried.__getitem__)
        step = abs(best) / 4
        while step > 0.05:
            for value in (best - step, best + step):
                tried[value] = self._sample.loss(self._with(one, value), which)
            best, step = min(tried, key=tried.__getitem__), step / 2
        return best

    def _judge(self, one: Alteration, flagged: np.ndarray) -> tuple[Explained, bool] | None:
        """Fit an alteration to one half of the stretches and judge it on the other, and the reverse."""
        sample = self._sample
        stretches = np.unique(sample.stretches[flagged])
        before = sample.ratios(self.applied, self._every)
        after = before.copy()
        halves = [np.isin(sample.stretches, stretches[part::2]) for part in (0, 1)]
        if len(stretches) < 4:
            halves = [np.ones(len(sample), bool)] * 2
        value, _ = self._try(one, flagged)
        fits = []
        for mine, other in ((halves[0], ~halves[0]), (~halves[0], halves[0])):
            if len(stretches) < 4:
                mine = other = np.ones(len(sample), bool)
            own = flagged[mine[flagged]]
            fitted, _ = self._try(one, own, value)
            fits.append(fitted)
            places = np.flatnonzero(other)
            after[places] = sample.ratios_drawn(self._with(one, fitted), places)
        whole = sample.ratios(self._with(one, value), self._every)
        acts = self._acts(one, value)
        explained = flagged[after[flagged] <= _WITHIN]
        good = after <= np.maximum(_WITHIN, 1.02 * before)
        within = after <= _WITHIN
        acting = np.flatnonzero(acts)
        if not len(acting):
            return None
        share = len(explained) / max(len(flagged), 1)
        borne = float((within[acting] & good[acting]).mean()) >= _BORNE and share >= _COVERED
        borne &= len(explained) >= max(_FEWEST, min(_LEAST, len(flagged)))
        borne &= before[explained].max(initial=0.0) > _PLAIN
        borne &= not one.grain or abs(value - one.neutral) > 1.5 * one.grain
        if one.step == 0 and np.ptp(fits) > 0.03 and len(stretches) >= 4:
            borne = False
        low, high = self._interval(one, value, acting[whole[acting] <= _WITHIN])
        return Explained(
            one, value, low, high, share, len(explained), (), frozenset(explained.tolist())
        ), borne

    def _likeliest_stuck(self, candidates: Sequence[Alteration], some: np.ndarray) -> list[Alteration]:
        """Return the stuck controls whose effect points where windows are off, however strong it was."""
        base = self._sample.off(self.applied, some)
        power = (np.nan_to_num(base) ** 2).sum((1, 2))
        left = []
        stuck = [one for one in candidates if one.sometimes]
        for one in stuck:
            shift = Alteration(f"shift of {one.name}", INPUTS, one.car, change=partial(_shifted, one.stuck))
            effect = np.nan_to_num(base - self._sample.off(self._with(shift, 1.0), some))
            along = (np.nan_to_num(base) * effect).sum((1, 2)) ** 2 / np.maximum(
                (effect**2).sum((1, 2)), 1e-9
            )
            left.append(float(np.sqrt((1 - along / np.maximum(power, 1e-9)).clip(0)).mean()))
        return [stuck[place] for place in np.argsort(left)[:_STUCK].tolist()]

    def _judge_stuck(self, one: Alteration, flagged: np.ndarray) -> tuple[Explained, bool]:
        """Look in each window for the span in which the control is stuck, first of all, then tick by tick.

        Windows of half a second or less are asked: in longer ones it may stick and slide on.
        """
        sample = self._sample
        lengths = np.array([HORIZONS[sample.windows[place].horizons[0]] for place in flagged.tolist()])
        flagged, lengths = flagged[lengths <= _LONGEST], lengths[lengths <= _LONGEST]
        if len(flagged) < _LEAST:
            return Explained(one, 1.0, np.nan, np.nan, 0.0, 0), False
        before = sample.ratios(self.applied, flagged)
        best, chosen = before.copy(), np.full(len(flagged), np.nan)
        for value in one.values:
            begin, end = spanned(value)
            places = np.flatnonzero((begin < lengths) & ((end < lengths) | (end == max(HORIZONS))))
            self._keep_better(one, value, flagged, places, best, chosen)
        for step in (5, 2, 1, 1):
            for change in ((0, step), (0, -step), (step, 0), (-step, 0)):
                for value in np.unique(chosen[np.isfinite(chosen)]).tolist():
                    begin, end = (old + new for old, new in zip(spanned(value), change, strict=True))
                    if begin < end:
                        places = np.flatnonzero(chosen == value)
                        self._keep_better(one, span(begin, end), flagged, places, best, chosen)
        explained = flagged[(best <= _WITHIN) & (before > _WITHIN)]
        share = float((best <= _WITHIN).mean())
        least = _STUCK_SHARE if one.stuck >= CONTROL_NAMES.index("jump") else _STUCK_STICK
        borne = share >= least and len(explained) >= _LEAST and before.max(initial=0.0) > _PLAIN
        found = Explained(one, 1.0, np.nan, np.nan, share, len(explained), (), frozenset(explained.tolist()))
        return found, borne

    def _keep_better(
        self, one: Alteration, value: float, flagged: np.ndarray, places: np.ndarray, best: np.ndarray,
        chosen: np.ndarray,
    ) -> None:  # fmt: skip
        """Enter where a span brings windows nearer than those before."""
        if not len(places):
            return
        ratios = self._sample.ratios(self._with(one, value), flagged[places])
        nearer = ratios < best[places]
        best[places[nearer]], chosen[places[nearer]] = ratios[nearer], value

    def _acts(self, one: Alteration, value: float) -> np.ndarray:
        """Return in which windows an alteration changes anything that could be seen, `(n,)` bool."""
        base = self._sample.off(self.applied, self._every)
        tried = self._sample.off(self._with(one, value), self._every)
        change = ratios_of(base - tried, np.ones((*base.shape[:-1], 4))).max(1)
        return np.asarray(change > 0.5)

    def _interval(self, one: Alteration, value: float, which: np.ndarray) -> tuple[float, float]:
        """Return where windows stay within their bounds, by the linear effect of the parameter."""
        if not one.step:
            return (value, value) if one.unit else (np.nan, np.nan)
        if not len(which):
            return min(one.values), max(one.values)
        return feasible(self._sample, one, value, self._with(one, value), self.applied, which)


def _shifted(column: int, rows: np.ndarray, _: float) -> np.ndarray:
    """Return control vectors `(ticks, 8)` with a stick a third away, or a button the other way."""
    changed = rows.copy()
    button = column >= CONTROL_NAMES.index("jump")
    changed[:, column] = (
        1 - rows[:, column] if button else rows[:, column] - np.copysign(0.35, rows[:, column])
    )
    return changed


def _rank(one: Alteration) -> int:
    """Return which of equal alterations is named first: time before inputs before constants."""
    return ("time", "offset", "inputs", "constant", "physics").index(one.kind)


def _fit_amount(base: np.ndarray, effect: np.ndarray) -> float:
    """Return the multiple of an effect that makes up for residuals, by least squares that trust small ones.

    Args:
        base: Residuals `(windows, bodies, 12)` as multiples of their bounds.
        effect: What a unit of the parameter takes from them.
    """
    r, e = np.nan_to_num(base, posinf=0.0, neginf=0.0), np.nan_to_num(effect, posinf=0.0, neginf=0.0)
    power = (e * e).sum((1, 2))
    if not power.any():
        return 0.0
    own = np.where(power > 0, (r * e).sum((1, 2)) / np.maximum(power, 1e-30), 0.0)
    order = np.argsort(own)
    weight = np.sqrt(power[order])
    total = np.cumsum(weight)
    amount = float(own[order][np.searchsorted(total, total[-1] / 2)])  # the weighted median begins
    for _ in range(8):
        left = ((r - amount * e) ** 2).sum((1, 2))
        trust = 1.0 / (1.0 + left)
        amount = float((trust * (r * e).sum((1, 2))).sum() / max((trust * power).sum(), 1e-30))
    return amount


def feasible(
    sample: _Sample, one: Alteration, value: float, applied: Applied, without: Applied, which: np.ndarray
) -> tuple[float, float]:
    """Return the interval of a parameter in which windows stay within their bounds.

    Args:
        sample: The windows.
        one: The alteration.
        value: Its parameter.
        applied: All alterations, this one among them.
        without: All others.
        which: The windows, by their indices.
    """
    here = sample.off(applied, which)
    step = one.step if abs(value - one.neutral) < 1e-9 else value - one.neutral
    there = sample.off(
        (*without, (one, one.neutral if value != one.neutral else one.neutral + one.step)), which
    )
    slope = (here - there) / step if value != one.neutral else (there - here) / one.step
    return _intersect(here, slope, value, min(one.values), max(one.values))


def _intersect(
    here: np.ndarray, slope: np.ndarray, value: float, low: float, high: float
) -> tuple[float, float]:
    """Return the parameters at which each part's size stays at 1 or below, `here` being that at `value`."""
    r = np.nan_to_num(here).reshape(-1, 3)
    s = np.nan_to_num(slope).reshape(-1, 3)
    a, b = (s * s).sum(1), (r * s).sum(1)
    limit = np.maximum((r * r).sum(1) * 1.0001, 1.0)
    c = (r * r).sum(1) - limit
    some = a > 1e-16
    root = np.sqrt(np.maximum(b[some] ** 2 - a[some] * c[some], 0.0))
    down, up = (-b[some] - root) / a[some], (-b[some] + root) / a[some]
    if not some.any():
        return low, high
    return float(max(low, value + down.max())), float(min(high, value + up.min()))


def intervals(
    judged: Judged, noise: Noise, catalogue: Sequence[Alteration], applied: Applied, bench: Bench
) -> dict[tuple[str, int | None], tuple[float, float, int]]:
    """Return for each alteration with a linear parameter where all windows stay within their bounds.

    Args:
        judged: Windows of a recording.
        noise: What the recording leaves open.
        catalogue: The alterations.
        applied: Those that are borne out.
        bench: The simulators.

    Returns:
        Low, high and the number of windows that tell, by the alterations' keys; without those that no window
        tells of.
    """
    sample = _Sample(judged, noise, bench)
    every = np.arange(len(sample))
    within = every[sample.ratios(applied, every) <= _WITHIN]
    found = {}
    for one in catalogue:
        own = np.array([n for n in within.tolist() if one.can_change(sample.windows[n])], int)
        if not one.step or not len(own):
            continue
        value = next((value for other, value in applied if other.key == one.key), one.neutral)
        others = tuple(pair for pair in applied if pair[0].key != one.key)
        now = (*others, (one, value))
        tried = sample.off((*others, (one, value + one.step)), own)
        here = sample.off(now, own)
        slope = (tried - here) / one.step
        moved = ratios_of(tried - here, np.ones((*here.shape[:-1], 4))).max(1)
        telling = (moved > 1e-6) & (moved < _MOST)
        if telling.any():
            low, high = _intersect(here[telling], slope[telling], value, min(one.values), max(one.values))
            found[one.key] = (low, high, int(telling.sum()))
    return found
