"""Choose the explanation of what a simulation leaves over: fit on odd blocks of time, judge on even ones.

All explanations are screened on a few windows that are far off. The best are fitted on the odd blocks. The
best of these is judged on the even blocks, which had no part in the choice: so one test is made for each
choice. What is claimed is applied, and the next explanation is looked for in what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from rlgym_bridge.compare.findings.explained_windows import Applied
from rlgym_bridge.compare.findings.explanations import Explanation
from rlgym_bridge.compare.findings.significance import flip_test

_NOISE: Final = 0.3  # uu/s; what a window is off below it counts little
_SCREENED: Final = 14  # windows that are farthest off, of the odd blocks, on which everything is tried
_FITTED: Final = 5  # explanations that are fitted
_AMOUNTS: Final = 24  # amounts tried for each explanation that is linear
_ROUNDS: Final = 3  # explanations of one family, at most
_LEAST: Final = 4  # blocks of the odd half that have to be far off
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
        share: Of what the even blocks are off, what it explains.
        blocks: Even blocks that it changes.
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


class _Search:
    """A forward selection over explanations."""

    def __init__(self, windows: Windows, explanations: Sequence[Explanation], level: float) -> None:
        self._windows, self._explanations, self._level = windows, list(explanations), level
        odd = windows.blocks % 2 == 1
        self._odd, self._even = np.flatnonzero(odd).tolist(), np.flatnonzero(~odd).tolist()
        self._applied: Applied = ()

    def run(self, source: str, car: int | None) -> list[Mechanism]:
        """Choose, judge and apply until nothing more is borne out."""
        claims: list[Mechanism] = []
        while len(claims) < _ROUNDS and self._is_off():
            fitted = [self._fit(each) for each in self._screen()]
            fitted = [(each, value) for each, value in fitted if abs(value - each.neutral) >= each.relevant]
            if not fitted:
                break
            fitted.sort(key=lambda pair: self._loss(self._odd, (*self._applied, pair)).mean())
            claim = self._judge(fitted, source, car)
            if claim is None:
                break
            claims.append(claim)
            self._applied = (*self._applied, fitted[0])
            self._explanations = [each for each in self._explanations if each.name != claim.name]
        return claims

    def _loss(self, which: Sequence[int], applied: Applied) -> np.ndarray:
        return loss_of(self._windows.errors(applied, which))

    def _is_off(self) -> bool:
        """Tell whether enough odd blocks are off by more than noise."""
        if not self._odd or not self._even:
            return False
        off = np.linalg.norm(self._windows.errors(self._applied, self._odd), axis=1)
        return len(np.unique(self._windows.blocks[self._odd][off > _FAR * _NOISE])) >= _LEAST

    def _screen(self) -> list[Explanation]:
        """Return the explanations that make up for most in the windows that are farthest off."""
        base = self._windows.errors(self._applied, self._odd)
        farthest = np.argsort(-np.linalg.norm(base, axis=1), kind="stable")[:_SCREENED]
        which = [self._odd[place] for place in farthest.tolist()]
        base = base[farthest]
        before, scores = loss_of(base).mean(), []
        for each in self._explanations:
            probe = each.neutral + each.step if each.step else each.values[0]
            tried = self._windows.errors((*self._applied, (each, probe)), which)
            if each.step or each.unit == "ticks":
                bounds = (min(each.values) - each.neutral, max(each.values) - each.neutral)
                amount = _amount(base, (base - tried) / (probe - each.neutral), bounds)
                tried = base - (base - tried) / (probe - each.neutral) * amount
            scores.append(before - loss_of(tried).mean())
        order = np.argsort(-np.array(scores), kind="stable")[:_FITTED]
        return [self._explanations[place] for place in order.tolist() if scores[place] > 0]

    def _fit(self, each: Explanation) -> tuple[Explanation, float]:
        """Return an explanation with the parameter that fits the odd blocks best."""
        values = each.values if not each.step else self._bend(each)
        losses = [self._loss(self._odd, (*self._applied, (each, value))).mean() for value in values]
        return each, float(values[int(np.argmin(losses))])

    def _bend(self, each: Explanation) -> tuple[float, ...]:
        """Return values of a linear parameter, each fitted around the one before."""
        base = self._windows.errors(self._applied, self._odd)
        bounds = (min(each.values) - each.neutral, max(each.values) - each.neutral)
        value, values = each.neutral + each.step, []
        for _ in range(_BENDS):
            effect = base - self._windows.errors((*self._applied, (each, value)), self._odd)
            value = each.neutral + _amount(base, effect / (value - each.neutral), bounds)
            if abs(value - each.neutral) < each.relevant / 2:
                break
            values.append(value)
        return tuple(values) or (each.neutral,)

    def _judge(
        self, fitted: Sequence[tuple[Explanation, float]], source: str, car: int | None
    ) -> Mechanism | None:
        """Return the claim of the explanation that fits odd blocks best, if even ones bear it out."""
        best, value = fitted[0]
        before = self._loss(self._even, self._applied)
        after = self._loss(self._even, (*self._applied, fitted[0]))
        gains = self._by_block(before - after)
        chance = flip_test(gains)
        if chance >= self._level:
            return None
        alike = []
        for other in fitted[1:]:
            theirs = self._loss(self._even, (*self._applied, other))
            better = flip_test(self._by_block(theirs - after))
            if better >= _APART and flip_test(self._by_block(before - theirs)) < self._level:
                alike.append(other[0].phrase(other[1]))
        sizes = [
            np.linalg.norm(self._windows.errors(applied, self._even), axis=1).sum()
            for applied in (self._applied, (*self._applied, fitted[0]))
        ]
        low, high = self._interval(best, value)
        return Mechanism(
            best.name, best.phrase(value), best.kind, [] if car is None else [car], source,
            value if best.unit else np.nan, low, high, best.unit, float(1 - sizes[1] / max(sizes[0], 1e-9)),
            int((np.abs(gains) > 1e-9).sum()), chance, self._level, alike, best.mutator,
        )  # fmt: skip

    def _by_block(self, gains: np.ndarray) -> np.ndarray:
        """Return the means of gains of the even windows over their blocks."""
        blocks = self._windows.blocks[self._even]
        return np.array([gains[blocks == block].mean() for block in np.unique(blocks).tolist()])

    def _interval(self, each: Explanation, value: float) -> tuple[float, float]:
        """Return the interval of a linear parameter, from blocks of the odd half drawn at random."""
        if not each.step:
            return (value, value) if each.unit else (np.nan, np.nan)
        base = self._windows.errors(self._applied, self._odd)
        tried = self._windows.errors((*self._applied, (each, value)), self._odd)
        effect = (base - tried) / (value - each.neutral)
        bounds = (min(each.values) - each.neutral, max(each.values) - each.neutral)
        blocks = self._windows.blocks[self._odd]
        members = [np.flatnonzero(blocks == block) for block in np.unique(blocks).tolist()]
        random, amounts = np.random.default_rng(0), []
        for _ in range(_DRAWS):
            drawn = np.concatenate(
                [members[place] for place in random.integers(len(members), size=len(members))]
            )
            amounts.append(_amount(base[drawn], effect[drawn], bounds))
        low, high = np.percentile(amounts, [0.5, 99.5]) + each.neutral
        return float(min(low, value)), float(max(high, value))


def loss_of(errors: np.ndarray) -> np.ndarray:
    """Return the log of how far windows are off, `(windows,)`; what is below the noise counts little."""
    return np.asarray(0.5 * np.log1p((errors**2).sum(-1) / _NOISE**2))


def _amount(base: np.ndarray, effect: np.ndarray, bounds: tuple[float, float]) -> float:
    """Return how much of an effect, `(windows, numbers)`, the windows have: what leaves least of them."""
    lengths = (effect**2).sum(1)
    shows = lengths > _NOISE**2 * 1e-2
    if not shows.any():
        return 0.0
    amounts = ((base * effect).sum(1)[shows] / lengths[shows]).clip(*bounds)
    every = np.unique(np.append(np.quantile(amounts, np.linspace(0.02, 0.98, _AMOUNTS)), 0.0))
    losses = loss_of(base[None] - every[:, None, None] * effect[None]).mean(1)
    return float(every[int(losses.argmin())])
