"""Test whether two sets of matches were played alike, feature by feature (permutation test).

Pieces of play are what is drawn at random: ticks of a piece hang together. For every feature a distance
between the sets is set beside the distances of the same pieces dealt out at random; the largest of all
features decides how far is far, so that many features do not make many false alarms (Westfall and Young's
max-T).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rlgym_bridge.compare.action_delay import latencies
from rlgym_bridge.compare.comparison_result import plain
from rlgym_bridge.game import CONTROL_NAMES, PLAYING_PHASES, TICKS_PER_SECOND
from rlgym_bridge.recording.mcap.agent_track import AgentTrack, InputTrack
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.sim.touches import is_new_touch

LEVEL: Final = 0.01
"""Chance of any false alarm among all features."""

_DEALS: Final = 4000  # random deals; the level needs some tens beyond it
_BINS: Final = 12
_LEAST_DEALS: Final = 1000  # ways to deal the pieces: the most telling of them has to be beyond `LEVEL`
_CATEGORIES: Final = 200  # more different values are a distribution, not categories
_TINY: Final = 1e-9


PIECE_SECONDS: Final = 10.0
"""Length of a piece: longer than a car's moves hang together, short enough that a match has many."""

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


# --- features of pieces of play ---------------------------------------------------------------------


def pieces_of(recording: MatchRecording) -> Pieces:
    """Cut a match into pieces and describe each.

    For each car touches, goals and boost per minute, the input latency, and as distributions: speed, height,
    boost, controls, actions and observations of the policy, as far as they were recorded.
    """
    rows = list(_pieces(recording))
    means: dict[str, list[float]] = {}
    samples: dict[str, list[np.ndarray]] = {}
    actions: dict[str, list[np.ndarray]] = {}
    state = recording.state
    score = state.score.astype(int)
    seats = {row: track for track in recording.agents.values() for row in set(track.inputs.row.tolist())}
    touches = _touches(recording)
    latencies = {row: _latency(recording, track.inputs, row) for row, track in seats.items() if row >= 0}
    for piece in rows:
        minutes = (piece.stop - piece.start) / TICKS_PER_SECOND / _MINUTE
        for team, name in enumerate(("blue", "orange")):
            scored = score[min(piece.stop, len(score) - 1), team] - score[piece.start, team]
            means.setdefault(f"{name} goals/min", []).append(scored / minutes)
        for car, agent in enumerate(state.agents):
            shown = recording.car_shown[piece, car]
            speed = np.linalg.norm(state.car_linear_velocity[piece, car], axis=-1)
            boost = state.car_boost_amount[piece, car]
            values = {
                "speed, uu/s": speed[shown],
                "height, uu": state.car_position[piece, car, 2][shown],
                "boost": boost[shown],
                "distance to ball, uu": np.linalg.norm(
                    state.ball_position[piece] - state.car_position[piece, car], axis=-1
                )[shown],
            }
            for name, one in values.items():
                samples.setdefault(f"{agent} {name}", []).append(one)
            controls = state.car_controls[piece, car]
            for number, control in enumerate(CONTROL_NAMES):
                if number < _STICKS:
                    samples.setdefault(f"{agent} {control}", []).append(controls[:, number])
                else:
                    pressed = float((controls[:, number] > _PRESSED).mean())
                    means.setdefault(f"{agent} {control} held, share", []).append(pressed)
            used = np.clip(-np.diff(boost), 0, None)
            numbers = {
                "touches/min": int(touches[piece, car].sum()) / minutes,
                "in the air, share": float((state.car_on_ground[piece, car] < 1).mean()),
                "boost used/min": float(used[used < 5].sum()) / minutes,
            }
            if car in latencies:
                numbers["input latency, ticks"] = latencies[car]
            for name, value in numbers.items():
                means.setdefault(f"{agent} {name}", []).append(value)
    for track in recording.agents.values():
        _add_decisions(recording, track, rows, samples, actions)
    return Pieces({name: np.array(one) for name, one in means.items()}, samples, actions)


def _pieces(recording: MatchRecording) -> Iterator[slice]:
    """Yield segments of play, cut into pieces."""
    size, least = int(PIECE_SECONDS * TICKS_PER_SECOND), int(_LEAST_SECONDS * TICKS_PER_SECOND)
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


def _latency(recording: MatchRecording, sent: InputTrack, car: int) -> float:
    """Return how many ticks after the next one most inputs act; NaN where inputs hardly change."""
    _, late = latencies(recording, sent, car)
    return float(np.bincount(late).argmax()) if len(late) else float("nan")


def _add_decisions(
    recording: MatchRecording,
    track: AgentTrack,
    rows: list[slice],
    samples: dict[str, list[np.ndarray]],
    actions: dict[str, list[np.ndarray]],
) -> None:
    """Add the distributions of what a policy saw and chose."""
    if not track.decisions:
        return
    seats, shape = track.decisions[0].seats.tolist(), track.decisions[0].actions.shape
    decisions = [one for one in track.decisions if one.seats.tolist() == seats and one.actions.shape == shape]
    here = np.array([one.frame for one in decisions])
    names = None if track.policy is None else track.policy.get("obs_names")
    for place, seat in enumerate(seats):
        agent = recording.state.agents[seat]
        obs = np.array([one.obs[place] for one in decisions])
        acted = np.array([one.actions[place] for one in decisions])
        for piece in rows:
            low, high = recording.tick[piece.start], recording.tick[piece.stop - 1]
            chosen = (here >= low) & (here <= high)
            for number in range(obs.shape[1]):
                name = names[number] if names and number < len(names) else f"number {number}"
                samples.setdefault(f"{agent} sees {name}", []).append(obs[chosen, number])
            for number in range(acted.shape[1]):
                name = "action" if acted.shape[1] == 1 else f"action {number}"
                actions.setdefault(f"{agent} {name}", []).append(acted[chosen, number])
