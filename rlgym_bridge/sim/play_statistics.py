"""Add up what cars do in many matches and what each reward gives them: the curves of a training."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.rewards import find_alive, flies_into_goals, project, spread_by_team
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.state import MatchState

SIDES: Final = ("policy", "opponents")  # cars of the policy in training, and those of snapshots and opponents

LOOKED_AT_EVERY: Final = 8
"""Steps between two looks at what changes slowly, and between two calls of a component's `metrics`."""

_STATES: Final = ("boost", "speed", "time_in_air")
_EVENTS: Final = ("flips", "touches", "shots", "saves", "goals")
_SHOT_SECONDS: Final = 2.0  # as far as `SaveReward` looks ahead


class PlayStatistics:
    """Sums over the steps of all matches since the latest `take`.

    `opponents` `(matches, cars)` bool are cars that others play; all others are the policy's.
    """

    def __init__(self, opponents: np.ndarray) -> None:
        sides = np.stack([~opponents, opponents])
        self._sides = sides.reshape(2, -1).T.astype(np.float64)  # (matches * cars, 2)
        self._shape = opponents.shape
        self._ticks = np.zeros(len(opponents))  # of the episodes under way
        self._steps = 0
        self._forget()

    def _forget(self) -> None:
        self._cars_seen, self._minutes = 0, 0.0  # looks, and game time
        self._states = np.zeros((len(_STATES), *self._shape))
        self._events = np.zeros((len(_EVENTS), *self._shape))
        self._rewarded = 0  # steps
        self._weights: dict[str, float] = {}  # of rewards, by name
        self._rewards = np.zeros((2, 0, *self._shape))  # sums, and sums of sizes
        self._ended = np.zeros(3)  # episodes, ticks of them, truncated ones
        self._metrics: dict[str, tuple[float, float]] = {}  # sum and count

    def begin(self) -> None:
        """Forget all: new episodes begin in all matches."""
        self._ticks[:] = 0
        self._steps = 0
        self._forget()

    @property
    def looks_closer(self) -> bool:
        """Tell whether this step is one in `LOOKED_AT_EVERY`, at which metrics are asked for."""
        return self._steps % LOOKED_AT_EVERY == 0

    def count(
        self, before: MatchState, after: MatchState, contacts: np.ndarray, touches: np.ndarray,
        scored: np.ndarray, ticks: int,
    ) -> None:  # fmt: skip
        """Take in a step of some ticks, from `before` to `after`.

        `contacts` `(matches, cars)` bool touched the ball, `touches` began to; `scored` `(matches,)` int8 is
        1 for blue, -1 for orange, else 0.
        """
        self._steps += 1
        self._ticks += ticks
        self._minutes += ticks / (60 * TICKS_PER_SECOND)
        events, layout = self._events, after.layout
        events[0] += after.car_has_flipped > before.car_has_flipped
        if contacts.any():
            events[1] += touches
            rows = np.flatnonzero(contacts.any(1))
            was, now = (
                flies_into_goals(one.ball_position[rows], one.ball_linear_velocity[rows], _SHOT_SECONDS)
                for one in (before, after)
            )  # (n, 2) bool: into blue's goal, into orange's
            shot, saved = now & ~was, was & ~now & (after.goal_scored[rows] == 0)[:, None]
            events[2, rows] += contacts[rows] & spread_by_team(shot[:, ::-1], layout)
            events[3, rows] += contacts[rows] & spread_by_team(saved, layout)
        if scored.any():
            events[4] += spread_by_team(np.stack([scored > 0, scored < 0], 1), layout)
        if self.looks_closer:
            velocity = after.car_linear_velocity
            self._cars_seen += 1
            self._states[0] += after.car_boost_amount
            self._states[1] += np.sqrt(project(velocity, velocity))
            self._states[2] += (1 - after.car_on_ground) * find_alive(after)

    def count_rewards(
        self, given: Sequence[np.ndarray], name: Callable[[], Sequence[tuple[str, float]]]
    ) -> None:
        """Take in what each part of a reward gave in a step, `(matches, cars)` each, before its weight.

        `name` returns names and weights of the parts, which stay the same until `take`.
        """
        if not given:
            return
        if len(self._weights) != len(given):
            self._rewards = np.zeros((2, len(given), *self._shape))
            self._weights = _number_names(name())
        numbers = np.array(given)
        self._rewarded += 1
        self._rewards[0] += numbers
        self._rewards[1] += np.abs(numbers)

    def count_ends(self, terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Take in which episodes ended with the step, `(matches,)` bool each."""
        ended = terminated | truncated
        if ended.any():
            self._ended += (np.count_nonzero(ended), self._ticks[ended].sum(), np.count_nonzero(truncated))
            self._ticks[ended] = 0

    def count_metrics(self, found: Mapping[str, Any]) -> None:
        """Take in numbers by name, of any shape; those that are not finite say that there is none."""
        for name, given in found.items():
            numbers = np.asarray(given, np.float64)
            known = numbers[np.isfinite(numbers)]
            total, count = self._metrics.get(name, (0.0, 0.0))
            self._metrics[name] = (total + float(known.sum()), count + known.size)

    def take(self) -> dict[str, float]:
        """Return sums by name since the last call, which may be added to those of others; see `means_of`."""
        cars = self._sides.sum(0)  # (2,)
        states = self._states.reshape(len(_STATES), -1) @ self._sides
        events = self._events.reshape(len(_EVENTS), -1) @ self._sides
        sums: dict[str, float] = {}
        for side, name in enumerate(SIDES):
            if cars[side]:
                sums[f"seen/{name}"] = self._cars_seen * float(cars[side])
                sums[f"minutes/{name}"] = self._minutes * float(cars[side])
                for rows, names in ((states, _STATES), (events, _EVENTS)):
                    sums |= {f"sum/{name}/{one}": float(rows[i, side]) for i, one in enumerate(names)}
        totals, sizes = self._rewards.reshape(2, -1, len(self._sides)) @ self._sides[:, 0]
        if len(totals):
            sums["rewarded"] = self._rewarded * float(cars[0])
        for (name, weight), total, size in zip(self._weights.items(), totals, sizes, strict=True):
            sums[f"raw/{name}"], sums[f"given/{name}"] = float(total), weight * float(total)
            sums[f"size/{name}"] = abs(weight) * float(size)
        ended = dict(zip(("ended", "ended_ticks", "ended_cut"), self._ended.tolist(), strict=True))
        for name, (total, count) in self._metrics.items():
            sums[f"metric/{name}"], sums[f"metric_count/{name}"] = total, count
        self._forget()
        return sums | ended


def _number_names(parts: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return weights by names, of which none is there twice: the second `touch` is `touch_2`."""
    weights: dict[str, float] = {}
    for name, weight in parts:
        free, number = name, 2
        while free in weights:
            free, number = f"{name}_{number}", number + 1
        weights[free] = weight
    return weights


def means_of(sums: Mapping[str, float]) -> dict[str, float]:
    """Return the columns of a training's table from the sums of one or several statistics.

    Of each part of the reward there are its mean a step before its weight (`reward_raw/NAME`) and after it
    (`reward/NAME`), and its share of the sizes of all (`reward_share/NAME`). For each of `SIDES` means of
    boost (0..100), speed in uu/s and share of the time in the air, and events a car and minute. Mean length
    of the episodes that ended in seconds, and which share of them was truncated. Own metrics. What was not
    seen is nan, or missing.
    """
    means: dict[str, float] = {}
    sizes = sum(value for name, value in sums.items() if name.startswith("size/"))
    for key, value in sums.items():
        kind, _, name = key.partition("/")
        if kind == "given":
            means[f"reward/{name}"] = _ratio(value, sums["rewarded"])
            means[f"reward_raw/{name}"] = _ratio(sums[f"raw/{name}"], sums["rewarded"])
            means[f"reward_share/{name}"] = _ratio(sums[f"size/{name}"], sizes)
        elif kind == "sum":
            side, _, what = name.partition("/")
            of = sums[f"{'seen' if what in _STATES else 'minutes'}/{side}"]
            means[f"{name}_per_minute" if what in _EVENTS else name] = _ratio(value, of)
        elif kind == "metric":
            means[f"metrics/{name}"] = _ratio(value, sums[f"metric_count/{name}"])
    if "ended" in sums:
        means["episode_seconds"] = _ratio(sums["ended_ticks"] / TICKS_PER_SECOND, sums["ended"])
        means["truncated_share"] = _ratio(sums["ended_cut"], sums["ended"])
    return means


def _ratio(amount: float, of: float) -> float:
    return amount / of if of else float("nan")
