"""Choose the explanation of what a simulation leaves over: fit on one half of the time, judge on the other.

Blocks of time are of one half or of the other. For each half, all explanations are screened on a few of its
windows that are off, the best are fitted on it, and the best of these is judged on the other half, which had
no part in the choice. So one test is made, however many explanations were tried. What is claimed is applied,
and the next explanation is looked for in what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from rlgym_bridge.compare.findings.explained_windows import Applied
from rlgym_bridge.compare.findings.explanations import Explanation
from rlgym_bridge.compare.findings.significance import flip_test
from rlgym_bridge.compare.findings.window_losses import NOISE, fit_amount, loss_of

_SCREENED: Final = 14  # windows of a half, of those that are off, on which everything is tried
_FITTED: Final = 5  # explanations that are fitted
_VALUES: Final = 2  # values of an explanation that are tried on a whole half
_ROUNDS: Final = 3  # explanations of one family, at most
_LEAST_SHARE: Final = 0.02  # of what is off: less explains nothing that anybody looks for
_LEAST: Final = 3  # blocks of a half that have to be far off
_FAR: Final = 3.0  # noises
_APART: Final = 0.01  # chance below which one explanation is better than another
_DRAWS: Final = 200  # of blocks, for the interval of a parameter
_BENDS: Final = 2  # times that a linear parameter is fitted again around the last


class Windows(Protocol):
    """Windows that can be simulated with explanations applied."""

    blocks: np.ndarray

    def __len__(self) -> int:
        """Return how many windows there are."""

    def errors(self, applied: Applied, which: Sequence[int]) -> np.ndarray:
        """Return what some windows are off, `(windows, numbers)` uu/s."""


@dataclass
class Mechanism:
    """An explanation that a recording bears out.

    Attributes:
        name: Of the explanation.
        phrase: The explanation with its parameter.
        kind: "controls", "timing", "frame" or "physics".
        cars: Cars that show it.
        source: Of the recording.
        value: The parameter; nan where it has none.
        low, high: Its interval, which holds it with 99 %.
        unit: Of the parameter.
        share: Of what windows are off, what it explains.
        blocks: Blocks of time that it changes, each judged with what was fitted on others.
        chance: Of such an improvement if it were none.
        level: Chance below which an explanation is claimed: its share of `significance.LEVEL`.
        alike: Phrases of the explanations that it cannot be distinguished from.
        mutator: Constant of RocketSim's that it changes; "" for none.
    """

    name: str
    phrase: str
    kind: str
    cars: list[int]
    source: str
    value: float
    low: float
    high: float
    unit: str
    share: float
    blocks: int
    chance: float
    level: float
    alike: list[str] = field(default_factory=list)
    mutator: str = ""

    @property
    def certain(self) -> bool:
        """True if no other explanation does as well."""
        return not self.alike


def find_mechanisms(
    windows: Windows, explanations: Sequence[Explanation], level: float, source: str, car: int | None
) -> list[Mechanism]:
    """Return the explanations that windows bear out, the most important first.

    Args:
        windows: The windows.
        explanations: Those to try.
        level: Chance of a false claim.
        source: Of the recording, for the result.
        car: Whose windows they are; None for those of all bodies.
    """
    return _Search(windows, explanations, level).run(source, car)


_Pick = tuple[Explanation, float]  # an explanation and its parameter


class _Search:
    """A forward selection over explanations."""

    def __init__(self, windows: Windows, explanations: Sequence[Explanation], level: float) -> None:
        self._windows, self._explanations, self._level = windows, list(explanations), level
        self._applied: Applied = ()
        first = self._first_half()
        self._halves = [np.flatnonzero(half).tolist() for half in (first, ~first)]

    def run(self, source: str, car: int | None) -> list[Mechanism]:
        """Choose, judge and apply until nothing more is borne out."""
        claims: list[Mechanism] = []
        while len(claims) < _ROUNDS and all(map(self._is_off, self._halves)):
            picks = [self._rank(half) for half in self._halves]
            judged = self._judge(picks)
            if judged is None:
                break
            (best, value), gains, chance = judged
            claim = self._claim(best, value, picks, gains, chance, source, car)
            if claim.share < _LEAST_SHARE:
                break
            claims.append(claim)
            self._applied = (*self._applied, (best, value))
            self._explanations = [each for each in self._explanations if each.name != best.name]
        return claims

    def _first_half(self) -> np.ndarray:
        """Return which windows lie in the first half of the blocks, `(windows,)` bool.

        Of the blocks that are far off every second one, and of the others: rare events, such as bumps, may
        lie in odd blocks alone.
        """
        blocks = self._windows.blocks
        off = self._off(range(len(blocks))) > _FAR * NOISE if len(blocks) else np.zeros(0, bool)
        far = np.unique(blocks[off])
        near = np.setdiff1d(blocks, far)
        return np.isin(blocks, [*far[::2].tolist(), *near[1::2].tolist()])

    def _off(self, which: Sequence[int]) -> np.ndarray:
        """Return how far some windows are off, `(windows,)` uu/s."""
        return np.asarray(np.linalg.norm(self._windows.errors(self._applied, which), axis=1))

    def _loss(self, which: Sequence[int], *more: _Pick) -> np.ndarray:
        return loss_of(self._windows.errors((*self._applied, *more), which))

    def _is_off(self, half: Sequence[int]) -> bool:
        """Tell whether enough blocks of a half are off by more than noise."""
        if not half:
            return False
        blocks = self._windows.blocks[half]
        return len(np.unique(blocks[self._off(half) > _FAR * NOISE])) >= _LEAST

    def _rank(self, half: Sequence[int]) -> list[_Pick]:
        """Return the explanations that fit a half best, with their parameters, the best first."""
        some = self._far_off(half)
        fitted = [self._fit(each, half, some) for each in self._screen(some)]
        fitted = [(each, value) for each, value in fitted if abs(value - each.neutral) >= each.relevant]
        return sorted(fitted, key=lambda pick: self._loss(half, pick).mean())

    def _far_off(self, half: Sequence[int]) -> list[int]:
        """Return some windows of a half that are off, little and much."""
        lengths = self._off(half)
        order = np.argsort(-lengths, kind="stable")[: max(int((lengths > NOISE).sum()), 1)]
        chosen = order[np.linspace(0, len(order) - 1, min(len(order), _SCREENED)).astype(int)]
        return [half[place] for place in chosen.tolist()]

    def _screen(self, which: Sequence[int]) -> list[Explanation]:
        """Return the explanations that make up for most in some windows."""
        base = self._windows.errors(self._applied, which)
        before, scores = loss_of(base).mean(), []
        for each in self._explanations:
            losses = []
            for probe, (low, high) in each.probes():
                tried = self._windows.errors((*self._applied, (each, probe)), which)
                if each.step or each.unit == "ticks":
                    effect = (base - tried) / (probe - each.neutral)
                    bounds = (low - each.neutral, high - each.neutral)
                    tried = base - effect * fit_amount(base, effect, bounds)
                losses.append(loss_of(tried).mean())
            scores.append(before - min(losses))
        ranks = np.argsort(-np.array(scores), kind="stable")[:_FITTED]
        return [self._explanations[place] for place in ranks.tolist() if scores[place] > 0]

    def _fit(self, each: Explanation, half: Sequence[int], some: Sequence[int]) -> _Pick:
        """Return an explanation with the parameter that fits a half best.

        Values that are tried one by one are tried on some of its windows first.
        """
        if each.step:
            values = self._bend(each, half)
        else:
            losses = [self._loss(some, (each, value)).mean() for value in each.values]
            values = tuple(each.values[place] for place in np.argsort(losses, kind="stable")[:_VALUES])
        losses = [self._loss(half, (each, value)).mean() for value in values]
        return each, float(values[int(np.argmin(losses))])

    def _bend(self, each: Explanation, half: Sequence[int]) -> tuple[float, ...]:
        """Return values of a linear parameter, each fitted around the one before."""
        base, values = self._windows.errors(self._applied, half), []
        for value, (low, high) in each.probes():
            for _ in range(_BENDS):
                effect = base - self._windows.errors((*self._applied, (each, value)), half)
                bounds = (low - each.neutral, high - each.neutral)
                value = each.neutral + fit_amount(base, effect / (value - each.neutral), bounds)
                if abs(value - each.neutral) < each.relevant / 2:
                    break
                values.append(value)
        return tuple(values) or (each.neutral,)

    def _judge(self, picks: Sequence[Sequence[_Pick]]) -> tuple[_Pick, np.ndarray, float] | None:
        """Return the explanation that is borne out, its gains by block, and their chance.

        Where both halves choose the same one, each is judged with the other's parameter, both together. Else
        each choice is judged on the other half alone, and has half of the level.
        """
        odd, even = self._halves
        best = [ranked[0] if ranked else None for ranked in picks]
        if best[0] and best[1] and best[0][0].name == best[1][0].name:
            gains = np.concatenate([self._gains(even, best[0]), self._gains(odd, best[1])])
            middle = (best[0][1] + best[1][1]) / 2 if best[0][0].step else best[0][1]
            chance = flip_test(gains)
            return ((best[0][0], middle), gains, chance) if chance < self._level else None
        judged = [
            (pick, self._gains(half, pick)) for pick, half in zip(best, (even, odd), strict=True) if pick
        ]
        if not judged:
            return None
        pick, gains = min(judged, key=lambda each: flip_test(each[1]))
        chance = min(2 * flip_test(gains), 1.0)
        return (pick, gains, chance) if chance < self._level else None

    def _gains(self, half: Sequence[int], pick: _Pick) -> np.ndarray:
        return self._by_block(half, self._loss(half) - self._loss(half, pick))

    def _by_block(self, which: Sequence[int], gains: np.ndarray) -> np.ndarray:
        """Return the means of gains of windows over their blocks."""
        blocks = self._windows.blocks[which]
        return np.array([gains[blocks == block].mean() for block in np.unique(blocks).tolist()])

    def _alike(self, best: _Pick, picks: Sequence[Sequence[_Pick]]) -> list[str]:
        """Return the phrases of explanations that are borne out and that the best is not better than."""
        every = sorted(half for both in self._halves for half in both)
        before, after = self._loss(every), self._loss(every, best)
        others = {
            each.name: (each, value) for ranked in picks for each, value in ranked if each is not best[0]
        }
        alike = []
        for other in others.values():
            theirs = self._loss(every, other)
            better = flip_test(self._by_block(every, theirs - after))
            if better >= _APART and flip_test(self._by_block(every, before - theirs)) < self._level:
                alike.append(other[0].phrase(other[1]))
        return alike

    def _claim(
        self,
        best: Explanation,
        value: float,
        picks: Sequence[Sequence[_Pick]],
        gains: np.ndarray,
        chance: float,
        source: str,
        car: int | None,
    ) -> Mechanism:
        every = sorted(half for both in self._halves for half in both)
        sizes = [
            np.linalg.norm(self._windows.errors(applied, every), axis=1).sum()
            for applied in (self._applied, (*self._applied, (best, value)))
        ]
        low, high = self._interval(best, value, every)
        return Mechanism(
            best.name, best.phrase(value), best.kind, [] if car is None else [car], source,
            value if best.unit else np.nan, low, high, best.unit, float(1 - sizes[1] / max(sizes[0], 1e-9)),
            int((np.abs(gains) > 1e-9).sum()), chance, self._level, self._alike((best, value), picks),
            best.mutator,
        )  # fmt: skip

    def _interval(self, each: Explanation, value: float, every: Sequence[int]) -> tuple[float, float]:
        """Return the interval of a linear parameter, from blocks drawn at random."""
        if not each.step:
            return (value, value) if each.unit else (np.nan, np.nan)
        base = self._windows.errors(self._applied, every)
        tried = self._windows.errors((*self._applied, (each, value)), every)
        effect = (base - tried) / (value - each.neutral)
        bounds = (min(each.values) - each.neutral, max(each.values) - each.neutral)
        blocks = self._windows.blocks[every]
        members = [np.flatnonzero(blocks == block) for block in np.unique(blocks).tolist()]
        random, amounts = np.random.default_rng(0), []
        for _ in range(_DRAWS):
            places = random.integers(len(members), size=len(members)).tolist()
            drawn = np.concatenate([members[place] for place in places])
            amounts.append(fit_amount(base[drawn], effect[drawn], bounds))
        low, high = np.percentile(amounts, [0.5, 99.5]) + each.neutral
        return float(min(low, value)), float(max(high, value))
