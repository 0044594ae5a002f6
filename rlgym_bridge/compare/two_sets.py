"""Test whether two sets of matches were played alike, feature by feature (permutation test).

Pieces of play are what is drawn at random: ticks of a piece hang together. For every feature a distance
between the sets is set beside the distances of the same pieces dealt out at random; the largest of all
features decides how far is far, so that many features do not make many false alarms (Westfall and Young's
max-T).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.play_features import Pieces, pieces_of
from rlgym_bridge.recording.mcap.match_recording import MatchRecording

LEVEL: Final = 0.01
"""Chance of any false alarm among all features."""

_DEALS: Final = 4000  # random deals; the level needs some tens beyond it
_BINS: Final = 12
_LEAST_DEALS: Final = 1000  # ways to deal the pieces: the most telling of them has to be beyond `LEVEL`
_CATEGORIES: Final = 200  # more different values are a distribution, not categories
_TINY: Final = 1e-9


@dataclass(frozen=True)
class Difference:
    """One feature in two sets of matches.

    Attributes:
        name: Of the feature.
        here, there: Its mean in each.
        low, high: Interval of `there - here` that holds it with 95 %, from resampled pieces.
        distance: 0..1 between distributions: the largest difference of their cumulated shares (Kolmogorov
            and Smirnov's), for actions half the sum of the shares' differences; of single numbers the
            difference of the means in standard deviations of a piece.
        chance: That any feature of equal sets is as far apart.
        differs: Whether that is less than `LEVEL`.
    """

    name: str
    here: float
    there: float
    low: float
    high: float
    distance: float
    chance: float
    differs: bool


@dataclass
class Against:
    """Two sets of matches.

    Attributes:
        pieces: Of play, in each.
        differences: Every feature, the least likely first.
    """

    pieces: tuple[int, int]
    differences: list[Difference]

    @property
    def alike(self) -> bool:
        """True if no feature differs."""
        return not any(one.differs for one in self.differences)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return {
            "pieces": list(self.pieces),
            "level": LEVEL,
            "alike": self.alike,
            "features": [
                {name: _plain(value) for name, value in vars(one).items()} for one in self.differences
            ],
        }


def against(here: Sequence[MatchRecording], there: Sequence[MatchRecording], seed: int = 0) -> Against:
    """Compare two sets of matches of the same cars.

    Args:
        here: The matches of one set.
        there: Those of the other.
        seed: Of the random deals.

    Raises:
        ValueError: The sets have too few pieces of ten seconds to be sure of anything, or cars differ.
    """
    sizes = {(one.state.layout.blue, one.state.layout.orange) for one in (*here, *there)}
    if len(sizes) > 1:
        raise ValueError(f"matches have team sizes {sorted(sizes)}, expected the same in all")
    sets = [[pieces_of(one) for one in every] for every in (here, there)]
    table = _FeatureTable(sets)
    counts = table.counts
    if math.comb(sum(counts), counts[0]) < _LEAST_DEALS:
        raise ValueError(
            f"the sets have {counts[0]} and {counts[1]} pieces of play of up to ten seconds, too few to tell "
            "chance from difference; expected 7 each, or more: record longer matches"
        )
    random = np.random.default_rng(seed)
    mine = np.arange(sum(counts)) < counts[0]
    deals = np.array([random.permutation(mine) for _ in range(_DEALS)])
    found = table.distances(mine[None])[0]
    dealt = table.distances(deals)
    middle, spread = dealt.mean(0), dealt.std(0)
    usable = (spread > _TINY) | (found > _TINY)
    scores = (found - middle) / np.maximum(spread, _TINY)
    largest = np.where(spread > _TINY, (dealt - middle) / np.maximum(spread, _TINY), 0.0).max(1)
    rows = []
    low, high = table.interval(counts, random)
    for number, name in enumerate(table.names):
        if not usable[number]:
            continue
        chance = float((1 + (largest >= scores[number]).sum()) / (1 + _DEALS))
        here_mean, there_mean = table.means(mine)[:, number].tolist()
        rows.append(
            Difference(
                name, here_mean, there_mean, float(low[number]), float(high[number]), float(found[number]),
                chance, chance < LEVEL,
            )
        )  # fmt: skip
    rows.sort(key=lambda one: (one.chance, -one.distance))
    return Against((counts[0], counts[1]), rows)


class _FeatureTable:
    """All pieces of both sets, and the distance of every feature for any deal of them into two."""

    def __init__(self, sets: Sequence[Sequence[Pieces]]) -> None:
        every = [pieces for one in sets for pieces in one]
        self.counts = [sum(len(next(iter(pieces.means.values()), ())) for pieces in one) for one in sets]
        self._numbers = [name for name in every[0].means if all(name in one.means for one in every)]
        if not self._numbers:
            raise ValueError("the matches have nothing in common to compare, expected the same cars in all")
        self._values = np.array(
            [np.concatenate([one.means[name] for one in every]) for name in self._numbers]
        ).reshape(len(self._numbers), -1).T  # fmt: skip
        self._spread = np.nanstd(self._values, axis=0)
        self._histograms, self._named, self._sums, self._is_action = [], [], [], []
        for action, found in (
            (False, [one.samples for one in every]),
            (True, [one.actions for one in every]),
        ):
            for name in (name for name in found[0] if all(name in one for one in found)):
                pieces = [values for one in found for values in one[name]]
                pooled = np.concatenate(pieces)
                if not len(pooled):
                    continue
                self._named.append(name)
                self._histograms.append(_histograms(pieces, pooled, action))
                self._is_action.append(action)
                self._sums.append([float(values.sum()) for values in pieces])
        self.names = self._numbers + self._named

    def distances(self, deals: np.ndarray) -> np.ndarray:
        """Return `(deals, features)`; a deal `(pieces,)` is True for the first set."""
        found = np.zeros((len(deals), len(self.names)))
        told = np.isfinite(self._values)
        filled = np.where(told, self._values, 0.0)
        first = deals.astype(float)
        parts = []
        for one in (first, 1 - first):
            parts.append((one @ filled) / np.maximum(one @ told, 1))
        found[:, : len(self._numbers)] = np.abs(parts[0] - parts[1]) / np.maximum(self._spread, _TINY)
        for number, (shares, action) in enumerate(zip(self._histograms, self._is_action, strict=True)):
            sums = [one @ shares for one in (first, 1 - first)]
            rates = [one / np.maximum(one.sum(1, keepdims=True), 1) for one in sums]
            apart = rates[0] - rates[1]
            distance = np.abs(apart).sum(1) / 2 if action else np.abs(apart.cumsum(1)).max(1)
            found[:, len(self._numbers) + number] = distance
        return found

    def means(self, first: np.ndarray) -> np.ndarray:
        """Return `(2, features)`."""
        return np.stack([self._means(one[None].astype(float))[0] for one in (first, ~first)])

    def _means(self, weights: np.ndarray) -> np.ndarray:
        told = np.isfinite(self._values)
        numbers = (weights @ np.where(told, self._values, 0.0)) / np.maximum(weights @ told, _TINY)
        if not self._named:
            return np.asarray(numbers)
        sums = weights @ np.array(self._sums).T
        counts = weights @ np.array([one.sum(1) for one in self._histograms]).T
        return np.concatenate([numbers, sums / np.maximum(counts, _TINY)], axis=1)

    def interval(self, counts: Sequence[int], random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds that 95 % of resampled differences of the means lie in."""
        means = []
        for first, count in ((0, counts[0]), (counts[0], counts[1])):
            weights = np.zeros((400, sum(counts)))
            weights[:, first : first + count] = random.multinomial(count, np.full(count, 1 / count), 400)
            means.append(self._means(weights))
        low, high = np.percentile(means[1] - means[0], [2.5, 97.5], axis=0)
        return low, high


def _histograms(pieces: Sequence[np.ndarray], pooled: np.ndarray, action: bool) -> np.ndarray:
    """Return `(pieces, bins)`: counts in bins of equal shares of all, for actions in a bin for each value."""
    values = np.unique(pooled)
    if (action and len(values) <= _CATEGORIES) or len(values) <= _BINS:
        places = [np.searchsorted(values, one) for one in pieces]
        return np.array([np.bincount(one, minlength=len(values)) for one in places], float)
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, _BINS + 1)[1:-1]))
    places = [np.searchsorted(edges, one, side="right") for one in pieces]
    return np.array([np.bincount(one, minlength=len(edges) + 1) for one in places], float)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) if np.isfinite(value) else None
    return bool(value) if isinstance(value, np.bool_) else value
