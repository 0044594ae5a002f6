"""Find the alterations that bring windows back into their bounds.

A true cause, applied to the simulation, brings every window in which it acts into its bounds. The bounds
follow from what the file leaves open, and RocketSim 3 adds no error of its own. So an alteration is named
only if it does that in windows that had no part in fitting it. Others that do as well are not told apart from
it. If none does, the cause is something that is not tried here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from rlgym_bridge.compare.alterations import (
    INPUTS,
    NEW_SIMULATOR,
    OFFSET,
    PHYSICS,
    TIME,
    Alteration,
    Applied,
    change_columns,
    span,
    spanned,
)
from rlgym_bridge.compare.detection import Judged, bounds_of, ratios_of
from rlgym_bridge.compare.noise import Noise
from rlgym_bridge.compare.window_simulation import Bench, apart, recorded, simulate
from rlgym_bridge.compare.windows import HORIZONS, Window, thinned
from rlgym_bridge.game import CONTROL_NAMES

_FLAGGED, _QUIET = 48, 32  # windows beyond their bounds, and others, that every alteration is fitted to
_SCREENED: Final = 16  # windows on which all alterations are tried first
_FITTED: Final = 10  # alterations that are fitted to all of them
_CLEAR: Final = 3.0  # multiples of a bound from which on an end tells enough
_LONGEST: Final = 60  # ticks of windows that are not beyond their bounds
_MOST: Final = 1e3  # multiples of a bound beyond which a window counts no more
_BENDS: Final = 6  # times that a linear parameter is fitted again around the last
_LOOKS, _HELPS = 2, 0.02  # bends after which it has to have helped, and by how much of the loss
_WITHIN: Final = 1.3  # multiples of a bound within which a window counts as explained: alterations add noise
_BORNE: Final = 0.85  # share of the windows in which a cause acts, held out, that it has to explain
_COVERED: Final = 0.3  # share of the windows beyond bounds that a cause has to explain
_ALIKE: Final = 0.9  # share of what the best explains, from which on another is not told apart
_LEAST, _FEWEST = 3, 2
"""Windows that a cause has to explain, if so many are beyond bounds; and in short files."""
_PLAIN: Final = 2.0  # multiples of a bound that one of them is off: what is hardly beyond may be chance
_LEFT: Final = 0.1  # share of windows that stay beyond their bounds, and are no finding of their own
_ROUNDS: Final = 3
_STUCK_SHARE, _STUCK_STICK = 0.65, 0.7
"""Shares of short windows that a stuck button and a stuck stick have to explain."""
_STUCK: Final = 2  # controls that are tried as stuck
_BUTTONS: Final = CONTROL_NAMES.index("jump")  # the first of them
_RANKS: Final = ("time", "offset", "inputs", "constant", "physics")
"""Order in which equal alterations are named: time before inputs before constants."""

_Intervals = dict[tuple[str, int | None], tuple[float, float, int]]


@dataclass(frozen=True)
class Explained:
    """An alteration with what it explains."""

    alteration: Alteration  # the alteration
    value: float  # its parameter
    low: float  # low, high: its interval: where all windows that it explains stay within their bounds
    high: float
    share: float  # of the windows beyond bounds, those that it explains
    explained: frozenset[int]  # indices of these windows in the sample
    borne: bool  # whether it is borne out
    alike: tuple[str, ...] = ()  # phrases of alterations that are not told apart from it


@dataclass
class Attribution:
    """The explanation of the windows of a recording that are beyond their bounds."""

    causes: list[Explained]  # the alterations that are borne out, the most important first
    left: list[int]  # indices of judged windows that stay beyond bounds with all of them
    flagged: int  # how many windows were beyond bounds, of those that were tried
    nearest: str = ""  # phrase of the alteration that explains most of what is left, "" for none
    nearest_share: float = 0.0  # which share of it that is
    # where windows stay within their bounds, for each alteration with a linear parameter that they tell
    # of, by its key: low, high, and how many tell
    intervals: _Intervals = field(default_factory=dict)


def attribute(judged: Judged, noise: Noise, catalogue: Sequence[Alteration], bench: Bench) -> Attribution:
    """Find what explains the windows of a recording that are beyond their bounds."""
    sample = _Sample(judged, noise, bench)
    search = _Search(sample, catalogue)
    found = Attribution([], [], int(judged.beyond.sum()))
    first = left = search.beyond()
    for _ in range(_ROUNDS):
        if len(left) <= _LEFT * len(first):
            break
        best = search.best(left)
        if best is None:
            break
        if not best.borne:
            found.nearest, found.nearest_share = best.alteration.phrase(best.value), best.share
            break
        found.causes.append(best)
        if best.alteration.sometimes:  # in each window from other ticks on: nothing can be added to it
            left = np.setdiff1d(left, sorted(best.explained))
            break
        search.applied = (*search.applied, (best.alteration, best.value))
        left = search.beyond()
    if len(left) > _LEFT * len(first):
        found.left = [sample.numbers[one] for one in left.tolist()]
    found.intervals = _intervals(sample, catalogue, [(one.alteration, one.value) for one in found.causes])
    return found


class _Sample:
    """Windows with one end each, which alterations are fitted to."""

    def __init__(self, judged: Judged, noise: Noise, bench: Bench) -> None:
        self._noise, self._bench = noise, bench
        ratios, beyond = judged.ratios.max(2), judged.beyond
        self.numbers = [*_spread(judged, np.flatnonzero(beyond), _FLAGGED)]
        flagged = len(self.numbers)
        self.numbers += _spread(judged, np.flatnonzero(~beyond), _QUIET)
        self.windows: list[Window] = []
        self.bounds = np.full((len(self.numbers), judged.bounds.shape[2], 4), np.nan)
        for place, number in enumerate(self.numbers):
            window = judged.windows[number]
            end = _telling_end(window, ratios[number], place < flagged)
            self.windows.append(replace(window, ends=(window.ends[end],), horizons=(window.horizons[end],)))
            self.bounds[place] = judged.bounds[number, end]
        self.stretches = np.array([window.stretch for window in self.windows])
        self.every = np.arange(len(self.windows))
        self._known: dict[tuple[object, ...], np.ndarray] = {}

    def off(self, applied: Applied, which: np.ndarray) -> np.ndarray:
        """Return residuals of some windows with alterations, `(n, bodies, 12)`, as multiples of bounds."""
        if (key := _key(applied, which)) not in self._known:
            self.prepare([(applied, which)])
        return self._known[key]

    def prepare(self, asked: Iterable[tuple[Applied, np.ndarray]]) -> None:
        """Simulate what `off` will be asked for, all of it together."""
        new = {key: one for one in asked if (key := _key(*one)) not in self._known}
        for bench in (self._bench, self._bench.other):
            own = {key: one for key, one in new.items() if self._bench_of(one[0]) is bench}
            windows = [self.windows[number] for _, which in own.values() for number in which.tolist()]
            each = [applied for applied, which in own.values() for _ in which.tolist()]
            if not windows:
                continue
            ours = simulate(windows, bench=bench, each=each).values
            off = apart(windows, recorded(windows, each=each), ours)[:, 0]
            padded = np.full((len(windows), self.bounds.shape[1], 12), np.nan)
            padded[:, : off.shape[1]] = off
            last = np.cumsum([len(which) for _, which in own.values()])[:-1]
            for (key, (_, which)), part in zip(own.items(), np.split(padded, last), strict=True):
                self._known[key] = part / np.repeat(self.bounds[which], 3, axis=-1)

    def _bench_of(self, applied: Applied) -> Bench:
        return self._bench.other if any(one.kind == PHYSICS for one, _ in applied) else self._bench

    def ratios(self, applied: Applied, which: np.ndarray) -> np.ndarray:
        """Return the largest ratio of each of some windows, `(n,)`."""
        return _largest(self.off(applied, which))

    def ratios_drawn(self, applied: Applied, which: np.ndarray) -> np.ndarray:
        """Return the largest ratios with the bounds that windows have with alterations applied, `(n,)`."""
        # Other inputs change at other moments than those drawn before; who is elsewhere touches others.
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
        limits = bounds_of(windows, self._noise, bench, base, applied=applied)[:, 0]
        limits = np.fmax(limits, self.bounds[some][:, : limits.shape[1]])
        off = apart(windows, recorded(windows, applied), base.values)[:, 0]
        ratios = ratios.copy()
        ratios[doubtful] = np.minimum(ratios[doubtful], ratios_of(off, limits).max(1))
        return ratios

    def loss(self, applied: Applied, which: np.ndarray) -> float:
        """Return the mean of the bounded losses of some windows."""
        return _loss(self.off(applied, which)) if len(which) else 0.0


def _key(applied: Applied, which: np.ndarray) -> tuple[object, ...]:
    return tuple((one.key, value) for one, value in applied), which.tobytes()


def _sides(one: Alteration) -> list[float]:
    """Return the values of a linear parameter that a fit begins with."""
    both = one.change is not None or one.kind in (OFFSET, TIME)
    return [one.neutral + sign * one.step for sign in ((1.0, -1.0) if both else (1.0,))]


def _loss(off: np.ndarray) -> float:
    """Return the mean of the bounded losses of residuals `(n, bodies, 12)` as multiples of bounds."""
    return float(np.log1p(np.minimum(_largest(off), _MOST) ** 2).mean())


def _largest(off: np.ndarray) -> np.ndarray:
    """Return the largest ratio of windows `(n,)`, of residuals `(n, bodies, 12)` as multiples of bounds."""
    return np.asarray(ratios_of(off, np.ones((*off.shape[:-1], 4))).max(1))


def _telling_end(window: Window, ratios: np.ndarray, flagged: bool) -> int:
    """Return which end tells most: the first that is clearly off, or the last of a second's half."""
    ends = range(len(window.ends))
    if flagged:
        clear = [end for end in ends if ratios[end] > _CLEAR]
        return clear[0] if clear else int(ratios[: len(window.ends)].argmax())
    return max((end for end in ends if HORIZONS[window.horizons[end]] <= _LONGEST), default=0)


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


class _Search:
    """A forward selection over alterations."""

    def __init__(self, sample: _Sample, catalogue: Sequence[Alteration]) -> None:
        self._sample, self._catalogue = sample, list(catalogue)
        self.applied: Applied = ()

    def beyond(self) -> np.ndarray:
        """Return which windows of the sample are beyond their bounds with what is applied, as indices."""
        every = self._sample.every
        if not self.applied:
            return np.flatnonzero(self._sample.ratios((), every) > 1.0)
        return np.flatnonzero(self._sample.ratios_drawn(self.applied, every) > _WITHIN)

    def best(self, flagged: np.ndarray) -> Explained | None:
        """Return the alteration that explains most; the nearest, if none is borne out; None for none."""
        taken = {one.key for one, _ in self.applied}
        candidates = [one for one in self._catalogue if one.key not in taken]
        newer = [one for one in candidates if one.name == NEW_SIMULATOR]  # asked before all others
        always = [one for one in candidates if not one.sometimes and one not in newer]
        some = np.array(thinned(flagged.tolist(), _SCREENED), int)
        known = self._judge_all(newer, flagged)
        if not any(one.borne for one in known):
            known += self._judge_all(self._screen(always, some), flagged)
        if not any(one.borne for one in known):
            known += self._judge_all(self._likeliest_stuck(candidates, some), flagged)
        borne = [one for one in known if one.borne]
        if not borne:
            return max(known, key=lambda one: one.share, default=None)
        best = max(borne, key=lambda one: (round(one.share, 2), -_RANKS.index(one.alteration.kind)))
        alike = [
            one.alteration.phrase(one.value)
            for one in borne
            if one.alteration.name != best.alteration.name
            and len(one.explained & best.explained) >= _ALIKE * len(best.explained)
        ]
        return replace(best, alike=tuple(alike))

    def _judge_all(self, candidates: Sequence[Alteration], flagged: np.ndarray) -> list[Explained]:
        judges = [self._judge_stuck if one.sometimes else self._judge for one in candidates]
        return [*filter(None, (judge(one, flagged) for judge, one in zip(judges, candidates, strict=True)))]

    def _screen(self, candidates: Sequence[Alteration], some: np.ndarray) -> list[Alteration]:
        """Return the candidates that bring some windows nearest."""
        self._sample.prepare(
            (self._with(one, value), own) for one in candidates if len(own := self._own(one, some))
            for value in one.starts or (_sides(one) if one.step else one.values)
        )  # fmt: skip
        losses = [self._try(one, some)[1] for one in candidates]
        enough = self._sample.loss(self.applied, some) - 0.1
        order = sorted(range(len(losses)), key=losses.__getitem__)
        return [candidates[place] for place in order[:_FITTED] if losses[place] < enough]

    def _with(self, one: Alteration, value: float) -> Applied:
        return (*self.applied, (one, value))

    def _loss_with(self, one: Alteration, value: float, which: np.ndarray) -> float:
        return self._sample.loss(self._with(one, value), which)

    def _own(self, one: Alteration, which: np.ndarray) -> np.ndarray:
        """Return those of some windows in which an alteration can change anything."""
        return which[[one.can_change(self._sample.windows[place]) for place in which.tolist()]]

    def _try(self, one: Alteration, which: np.ndarray, start: float | None = None) -> tuple[float, float]:
        """Return the parameter that fits some windows best, and its loss; `start` is a first guess."""
        sample, own = self._sample, self._own(one, which)
        if not len(own):
            return one.neutral, sample.loss(self.applied, which)
        values = self._bend(one, own, start) if one.step else one.values
        tried = {value: self._loss_with(one, value, own) for value in values}
        between = one.unit == "of 1" and min(tried.values()) < sample.loss(self.applied, own) - _HELPS
        step = 0.02 if between else 0.0  # between the values that are tried
        best = _halve(lambda value: self._loss_with(one, value, own), tried, step, 0.004)
        others = np.setdiff1d(which, own)
        rest = sample.loss(self.applied, others)
        return best, (tried[best] * len(own) + rest * len(others)) / len(which)

    def _bend(self, one: Alteration, which: np.ndarray, start: float | None) -> list[float]:
        """Return values of a linear parameter, each fitted around the one before, from both sides."""
        low, high = min(one.values), max(one.values)
        base = self._sample.off(self.applied, which)
        starts, found = _sides(one), []
        if start is not None and start != one.neutral:
            starts = found = [start]
        elif one.starts and start is None:  # what touches, or no more, bends too much
            tried = {value: self._loss_with(one, value, which) for value in one.starts}
            first = min(tried, key=tried.__getitem__)
            starts = found = [_halve(lambda at: self._loss_with(one, at, which), tried, abs(first) / 4, 0.05)]
        found = [*found]
        for value in starts:
            last, before = one.neutral, base
            for bend in range(_BENDS):
                off = self._sample.off(self._with(one, value), which)
                amount = _fit_amount(off, (before - off) / (value - last))
                last, before = value, off
                value = float(np.clip(value + amount, low, high))
                found.append(value)
                if bend == _LOOKS and _loss(off) > _loss(base) - _HELPS:
                    break
                if abs(value - last) < 1e-3 * abs(last - one.neutral) or abs(value - one.neutral) < 1e-9:
                    break
        return found

    def _judge(self, one: Alteration, flagged: np.ndarray) -> Explained | None:
        """Fit an alteration to one half of the stretches and judge it on the other, and the reverse."""
        sample = self._sample
        stretches = np.unique(sample.stretches[flagged])
        before = sample.ratios(self.applied, sample.every)
        after, fits = before.copy(), []
        value, _ = self._try(one, flagged)
        acts = _largest(sample.off(self.applied, sample.every)
                        - sample.off(self._with(one, value), sample.every)) > 0.5  # fmt: skip
        if not acts.any():
            return None
        mine = np.isin(sample.stretches, stretches[::2])
        held_out = len(stretches) >= 4
        for fitted_to, judged_on in ((mine, ~mine), (~mine, mine)) if held_out else ((mine | True,) * 2,):
            fitted, _ = self._try(one, flagged[fitted_to[flagged]], value)
            fits.append(fitted)
            places = np.flatnonzero(judged_on)
            after[places] = sample.ratios_drawn(self._with(one, fitted), places)
        explained = flagged[after[flagged] <= _WITHIN]
        within = (after <= _WITHIN) & (after <= np.maximum(_WITHIN, 1.02 * before))
        share = len(explained) / max(len(flagged), 1)
        borne = (
            within[acts].mean() >= _BORNE and share >= _COVERED
            and len(explained) >= max(_FEWEST, min(_LEAST, len(flagged)))
            and (before[explained].max(initial=0.0) > _PLAIN or one.name == NEW_SIMULATOR)
            and (not one.grain or abs(value - one.neutral) > 1.5 * one.grain)
            and not (one.step == 0 and np.ptp(fits) > 0.03 and held_out)
        )  # fmt: skip
        whole = sample.ratios(self._with(one, value), sample.every)
        low, high = self._interval(one, value, np.flatnonzero(acts & (whole <= _WITHIN)))
        return Explained(one, value, low, high, share, frozenset(explained.tolist()), bool(borne))

    def _interval(self, one: Alteration, value: float, which: np.ndarray) -> tuple[float, float]:
        """Return where windows stay within their bounds, by the linear effect of the parameter."""
        if not one.step:
            return (value, value) if one.unit else (np.nan, np.nan)
        if not len(which):
            return min(one.values), max(one.values)
        away = one.neutral if value != one.neutral else one.neutral + one.step
        here, there = (self._sample.off(self._with(one, at), which) for at in (value, away))
        return _intersect(here, (here - there) / (value - away), one, value)

    def _likeliest_stuck(self, candidates: Sequence[Alteration], some: np.ndarray) -> list[Alteration]:
        """Return the stuck controls whose effect points where windows are off, however strong it was."""
        base = np.nan_to_num(self._sample.off(self.applied, some))
        power = np.maximum((base**2).sum((1, 2)), 1e-9)
        left, stuck = [], [one for one in candidates if one.sometimes]
        for one in stuck:
            change = partial(change_columns, [one.stuck], _shift)
            shift = Alteration(f"shift of {one.name}", INPUTS, one.car, change=change)
            effect = base - np.nan_to_num(self._sample.off(self._with(shift, one.stuck >= _BUTTONS), some))
            along = (base * effect).sum((1, 2)) ** 2 / np.maximum((effect**2).sum((1, 2)), 1e-9)
            left.append(float(np.sqrt((1 - along / power).clip(0)).mean()))
        return [stuck[place] for place in np.argsort(left)[:_STUCK].tolist()]

    def _judge_stuck(self, one: Alteration, flagged: np.ndarray) -> Explained | None:
        """Look in each window for the span in which the control is stuck, first of all, then tick by tick."""
        # Windows of half a second or less are asked: in longer ones it may stick and slide on.
        lengths = np.array([HORIZONS[self._sample.windows[at].horizons[0]] for at in flagged.tolist()])
        flagged, lengths = flagged[lengths <= _LONGEST], lengths[lengths <= _LONGEST]
        if len(flagged) < _LEAST:
            return None
        before = self._sample.ratios(self.applied, flagged)
        best, chosen = before.copy(), np.full(len(flagged), np.nan)

        def keep_better(value: float, places: np.ndarray) -> None:
            if len(places):
                ratios = self._sample.ratios(self._with(one, value), flagged[places])
                nearer = ratios < best[places]
                best[places[nearer]], chosen[places[nearer]] = ratios[nearer], value

        for value in one.values:
            begin, end = spanned(value)
            inside = (begin < lengths) & ((end < lengths) | (end == max(HORIZONS)))
            keep_better(value, np.flatnonzero(inside & (best > 1)))
        for step in (5, 2, 1, 1):
            for change in ((0, step), (0, -step), (step, 0), (-step, 0)):
                for value in np.unique(chosen[np.isfinite(chosen)]).tolist():
                    begin, end = (old + new for old, new in zip(spanned(value), change, strict=True))
                    if begin < end:
                        keep_better(span(begin, end), np.flatnonzero((chosen == value) & (best > 1)))
        explained = flagged[(best <= _WITHIN) & (before > _WITHIN)]
        share = float((best <= _WITHIN).mean())
        least = _STUCK_SHARE if one.stuck >= _BUTTONS else _STUCK_STICK
        borne = share >= least and len(explained) >= _LEAST and before.max(initial=0.0) > _PLAIN
        return Explained(one, 1.0, np.nan, np.nan, share, frozenset(explained.tolist()), bool(borne))


def _halve(loss: Callable[[float], float], tried: dict[float, float], step: float, least: float) -> float:
    """Return the value of the least loss of those tried and some around it, which are added to `tried`."""
    best = min(tried, key=tried.__getitem__)
    while step > least:
        tried |= {value: loss(value) for value in (best - step, best + step)}
        best, step = min(tried, key=tried.__getitem__), step / 2
    return best


def _shift(values: np.ndarray, button: float) -> np.ndarray:
    """Return a button the other way, or a stick a third away."""
    return 1 - values if button else values - np.copysign(0.35, values)


def _fit_amount(base: np.ndarray, effect: np.ndarray) -> float:
    """Return the multiple of an effect that makes up for residuals `(windows, bodies, 12)`, robustly."""
    r, e = (np.nan_to_num(one, posinf=0.0, neginf=0.0) for one in (base, effect))
    power = (e * e).sum((1, 2))
    if not power.any():
        return 0.0
    own = np.where(power > 0, (r * e).sum((1, 2)) / np.maximum(power, 1e-30), 0.0)
    order = np.argsort(own)
    total = np.cumsum(np.sqrt(power[order]))
    amount = float(own[order][np.searchsorted(total, total[-1] / 2)])  # the weighted median begins
    for _ in range(8):
        trust = 1.0 / (1.0 + ((r - amount * e) ** 2).sum((1, 2)))
        amount = float((trust * (r * e).sum((1, 2))).sum() / max((trust * power).sum(), 1e-30))
    return amount


def _intersect(here: np.ndarray, slope: np.ndarray, one: Alteration, value: float) -> tuple[float, float]:
    """Return the parameters at which each part's size stays at 1 or below; `here` is that at `value`."""
    low, high = min(one.values), max(one.values)
    r, s = (np.nan_to_num(each).reshape(-1, 3) for each in (here, slope))
    a, b, size = (s * s).sum(1), (r * s).sum(1), (r * r).sum(1)
    some = a > 1e-16
    if not some.any():
        return low, high
    a, b, c = a[some], b[some], (size - np.maximum(size * 1.0001, 1.0))[some]
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    return float(max(low, value + ((-b - root) / a).max())), float(min(high, value + ((-b + root) / a).min()))


def _intervals(sample: _Sample, catalogue: Sequence[Alteration], applied: Applied) -> _Intervals:
    """Return `Attribution.intervals`, with what is borne out applied."""
    within = sample.every[sample.ratios(applied, sample.every) <= _WITHIN]
    base = sample.off(applied, within) if len(within) else np.empty(0)
    found, asked = {}, []
    for one in catalogue:
        can = np.array([one.can_change(sample.windows[number]) for number in within.tolist()], bool)
        if not one.step or not can.any():
            continue
        value = next((value for other, value in applied if other.key == one.key), one.neutral)
        kept = [(one, at + one.step) if other.key == one.key else (other, at) for other, at in applied]
        asked.append((one, can, value, kept if value != one.neutral else [*kept, (one, value + one.step)]))
    sample.prepare((changed, within[can]) for _, can, _, changed in asked)
    for one, can, value, changed in asked:
        here, tried = base[can], sample.off(changed, within[can])
        moved = _largest(tried - here)
        telling = (moved > 1e-6) & (moved < _MOST)
        if telling.any():
            low, high = _intersect(here[telling], (tried - here)[telling] / one.step, one, value)
            found[one.key] = (low, high, int(telling.sum()))
    return found
