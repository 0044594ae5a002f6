"""Test whether two sets of matches were played alike, feature by feature (permutation test).

Pieces of play are what is drawn at random: ticks of a piece hang together. For every feature a distance
between the sets is set beside the distances of the same pieces dealt out at random; the largest of all
features decides how far is far, so that many features do not make many false alarms (Westfall and Young's
max-T).
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.comparison_result import plain
from rlgym_bridge.compare.input_lag import latencies
from rlgym_bridge.game import CONTROL_NAMES, PLAYING_PHASES, TICKS_PER_SECOND
from rlgym_bridge.recording.mcap.agent_track import AgentTrack
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.sim.touches import is_new_touch

LEVEL: Final = 0.01
"""Chance of any false alarm among all features."""

_DEALS: Final = 4000  # random deals; the level needs some tens beyond it
_BINS: Final = 12
_LEAST_DEALS: Final = 1000  # ways to deal the pieces: the most telling of them has to be beyond `LEVEL`
_CATEGORIES: Final = 200  # more different values are a distribution, not categories
_TINY: Final = 1e-9
_PIECE_SECONDS: Final = 10.0  # longer than a car's moves hang together; a match has many
_LEAST_SECONDS: Final = 3.0  # shorter rests of play are left out
_MINUTE: Final = 60.0
_STICKS: Final = 5  # of the controls; the others are buttons
_PRESSED: Final = 0.5


@dataclass
class Pieces:
    """The features of some pieces of play."""

    means: dict[str, np.ndarray]  # by name: `(pieces,)`, one number a piece
    # by name: for each piece the values of a distribution, `(ticks or decisions,)`
    samples: dict[str, list[np.ndarray]]
    # by name: for each piece what a policy chose, numbers that are names and not amounts
    actions: dict[str, list[np.ndarray]]


@dataclass(frozen=True)
class Difference:
    """One feature in two sets of matches."""

    name: str  # of the feature
    here: float  # here, there: its mean in each
    there: float
    low: float  # low, high: interval of `there - here` that holds it with 95 %, from resampled pieces
    high: float
    # 0..1 between distributions: the largest difference of their cumulated shares (Kolmogorov and
    # Smirnov's), for actions half the sum of the shares' differences; of single numbers the difference
    # of the means in standard deviations of a piece
    distance: float
    chance: float  # that any feature of equal sets is as far apart
    differs: bool  # whether that is less than `LEVEL`


@dataclass
class Against:
    """Two sets of matches."""

    pieces: tuple[int, int]  # of play, in each
    differences: list[Difference]  # every feature, the least likely first

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
            "features": [plain(one) for one in self.differences],
        }


def against(here: Sequence[MatchRecording], there: Sequence[MatchRecording], seed: int = 0) -> Against:
    """Compare two sets of matches of the same cars.

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
    scores = (found - middle) / np.maximum(spread, _TINY)
    largest = np.where(spread > _TINY, (dealt - middle) / np.maximum(spread, _TINY), 0.0).max(1)
    numbers = np.stack([*table.means(np.stack([mine, ~mine]).astype(float)), *table.interval(random), found])
    rows = []
    for number in np.flatnonzero((spread > _TINY) | (found > _TINY)).tolist():
        chance = float((1 + (largest >= scores[number]).sum()) / (1 + _DEALS))
        mean, other, low, high, apart = numbers[:, number].tolist()
        rows.append(Difference(table.names[number], mean, other, low, high, apart, chance, chance < LEVEL))
    rows.sort(key=lambda one: (one.chance, -one.distance))
    return Against((counts[0], counts[1]), rows)


class _FeatureTable:
    """All pieces of both sets, and the distance of every feature for any deal of them into two."""

    def __init__(self, sets: Sequence[Sequence[Pieces]]) -> None:
        every = [pieces for one in sets for pieces in one]
        self.counts = [sum(len(next(iter(pieces.means.values()), ())) for pieces in one) for one in sets]
        numbers = [name for name in every[0].means if all(name in one.means for one in every)]
        if not numbers:
            raise ValueError("the matches have nothing in common to compare, expected the same cars in all")
        values = np.stack([np.concatenate([one.means[name] for one in every]) for name in numbers], axis=1)
        self._known, self._spread = np.isfinite(values), np.nanstd(values, axis=0)
        self._values = np.where(self._known, values, 0.0)
        self.names, self._histograms, self._sums = numbers, [], []
        for action, found in enumerate(([one.samples for one in every], [one.actions for one in every])):
            for name in (name for name in found[0] if all(name in one for one in found)):
                pieces = [values for one in found for values in one[name]]
                pooled = np.concatenate(pieces)
                if len(pooled):
                    self.names.append(name)
                    self._histograms.append((_histograms(pieces, pooled, bool(action)), bool(action)))
                    self._sums.append([float(values.sum()) for values in pieces])

    def distances(self, deals: np.ndarray) -> np.ndarray:
        """Return `(deals, features)`; a deal `(pieces,)` is True for the first set."""
        both = deals.astype(float), 1 - deals.astype(float)
        here, there = ((one @ self._values) / np.maximum(one @ self._known, 1) for one in both)
        columns = [*(np.abs(here - there) / np.maximum(self._spread, _TINY)).T]
        for counts, action in self._histograms:
            sums = [one @ counts for one in both]
            here, there = (one / np.maximum(one.sum(1, keepdims=True), 1) for one in sums)
            apart = here - there
            columns.append(np.abs(apart).sum(1) / 2 if action else np.abs(apart.cumsum(1)).max(1))
        return np.stack(columns, axis=1)

    def means(self, weights: np.ndarray) -> np.ndarray:
        """Return `(n, features)` from weights of the pieces, `(n, pieces)` float64."""
        numbers = (weights @ self._values) / np.maximum(weights @ self._known, _TINY)
        if not self._histograms:
            return np.asarray(numbers)
        counts = weights @ np.array([one.sum(1) for one, _ in self._histograms]).T
        return np.hstack([numbers, weights @ np.array(self._sums).T / np.maximum(counts, _TINY)])

    def interval(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds that 95 % of resampled differences of the means lie in."""
        means = []
        for first, count in ((0, self.counts[0]), (self.counts[0], self.counts[1])):
            weights = np.zeros((400, sum(self.counts)))
            weights[:, first : first + count] = random.multinomial(count, np.full(count, 1 / count), 400)
            means.append(self.means(weights))
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


# --- features of pieces of play ---------------------------------------------------------------------


def pieces_of(recording: MatchRecording) -> Pieces:
    """Cut a match into pieces and describe each.

    For each car touches, goals and boost per minute, the input latency, and as distributions: speed, height,
    boost, controls, actions and observations of the policy, as far as they were recorded.
    """
    rows, state = list(_pieces(recording)), recording.state
    means: dict[str, list[float]] = defaultdict(list)
    samples: dict[str, list[np.ndarray]] = defaultdict(list)
    actions: dict[str, list[np.ndarray]] = defaultdict(list)
    score, touches = state.score.astype(int), _touches(recording)
    late = {}
    for track in recording.agents.values():
        for row in {*track.inputs.row.tolist()} - {-1}:
            _, ticks = latencies(recording, track.inputs, row)
            late[row] = float(np.bincount(ticks).argmax()) if len(ticks) else float("nan")
    for piece in rows:
        minutes = (piece.stop - piece.start) / TICKS_PER_SECOND / _MINUTE
        for team, name in enumerate(("blue", "orange")):
            scored = score[min(piece.stop, len(score) - 1), team] - score[piece.start, team]
            means[f"{name} goals/min"].append(scored / minutes)
        for car, agent in enumerate(state.agents):
            shown, controls = recording.car_shown[piece, car], state.car_controls[piece, car]
            position, boost = state.car_position[piece, car], state.car_boost_amount[piece, car]
            used = np.clip(-np.diff(boost), 0, None)
            values = {
                "speed, uu/s": np.linalg.norm(state.car_linear_velocity[piece, car], axis=-1)[shown],
                "height, uu": position[shown, 2],
                "boost": boost[shown],
                "distance to ball, uu": np.linalg.norm(state.ball_position[piece] - position, axis=-1)[shown],
            } | dict(zip(CONTROL_NAMES[:_STICKS], controls.T, strict=False))
            held = (controls[:, _STICKS:] > _PRESSED).mean(0).tolist()
            buttons = [f"{name} held, share" for name in CONTROL_NAMES[_STICKS:]]
            numbers = dict(zip(buttons, held, strict=True)) | {
                "touches/min": int(touches[piece, car].sum()) / minutes,
                "in the air, share": float((state.car_on_ground[piece, car] < 1).mean()),
                "boost used/min": float(used[used < 5].sum()) / minutes,
            }
            if car in late:
                numbers["input latency, ticks"] = late[car]
            for name, one in values.items():
                samples[f"{agent} {name}"].append(one)
            for name, value in numbers.items():
                means[f"{agent} {name}"].append(value)
    for track in recording.agents.values():
        _add_decisions(recording, track, rows, samples, actions)
    return Pieces({name: np.array(one) for name, one in means.items()}, samples, actions)


def _pieces(recording: MatchRecording) -> Iterator[slice]:
    """Yield segments of play, cut into pieces."""
    size, least = int(_PIECE_SECONDS * TICKS_PER_SECOND), int(_LEAST_SECONDS * TICKS_PER_SECOND)
    for play in _plays(recording):
        for first in range(play.start, play.stop, size):
            last = min(first + size, play.stop)
            if last - first >= least:
                yield slice(first, last)


def _plays(recording: MatchRecording) -> list[slice]:
    """Return the rows of each segment of play."""
    playing = np.isin(recording.state.phase, [int(phase) for phase in PLAYING_PHASES])
    ends = np.flatnonzero(np.diff(playing.astype(np.int8), prepend=0, append=0)).tolist()
    return [slice(start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True)]


def _touches(recording: MatchRecording) -> np.ndarray:
    """Return in which rows of play each car began a touch, `(rows, cars)` bool."""
    contacts = recording.state.car_ball_touches > 0
    begun = np.zeros(contacts.shape, bool)
    for play in _plays(recording):
        for car in range(contacts.shape[1]):
            rows = play.start + np.flatnonzero(contacts[play, car])
            begun[rows[:1], car] = True
            begun[rows[1:], car] = is_new_touch(np.diff(recording.tick[rows]))
    return begun


def _add_decisions(
    recording: MatchRecording, track: AgentTrack, rows: list[slice], samples: dict[str, list[np.ndarray]],
    actions: dict[str, list[np.ndarray]],
) -> None:  # fmt: skip
    """Add the distributions of what a policy saw and chose."""
    if not track.decisions:
        return
    seats, shape = track.decisions[0].seats.tolist(), track.decisions[0].actions.shape
    decisions = [one for one in track.decisions if one.seats.tolist() == seats and one.actions.shape == shape]
    here = np.array([one.frame for one in decisions])
    names = (track.policy and track.policy.get("obs_names")) or ()
    for place, seat in enumerate(seats):
        agent = recording.state.agents[seat]
        obs = np.array([one.obs[place] for one in decisions])
        acted = np.array([one.actions[place] for one in decisions])
        seen = [*names, *(f"number {number}" for number in range(len(names), obs.shape[1]))]
        done = ["action"] if acted.shape[1] == 1 else [f"action {number}" for number in range(acted.shape[1])]
        for piece in rows:
            chosen = (here >= recording.tick[piece.start]) & (here <= recording.tick[piece.stop - 1])
            for name, column in zip(seen, obs.T, strict=False):
                samples[f"{agent} sees {name}"].append(column[chosen])
            for name, column in zip(done, acted.T, strict=True):
                actions[f"{agent} {name}"].append(column[chosen])
