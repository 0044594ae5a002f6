"""The matches of one collector: who is not in training is part of the world, and its goals are counted.

actions of policy and snapshots -> the opponents' beside them -> VectorEnv -> goals of each kind of opponent
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from rlgym_bridge.components.batch_form import find_masks, mask_holder
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.sim.play_statistics import PlayStatistics
from rlgym_bridge.sim.simulator import PartTimes
from rlgym_bridge.sim.vector_env import Step, VectorEnv
from rlgym_bridge.state import layout_of
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.selfplay.opponents import (
    Opponent,
    Teacher,
    cars_of_sides,
    opponent_sides,
    snapshot_sides,
)
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from rlgym_bridge.user_input.text_files import toml_value


def goals_label(opponent: str) -> str:
    """Return the label of an opponent's goals: they count as `<label>_goals` and `goals_against_<label>`."""
    return f"opponent/{opponent}"


class SelfPlayMatches:
    """A `VectorEnv`, of one team size, in which opponents play their seats; arguments are those of `Task`.

    `agents` are the names of the cars, `parser` is the action parser (of the first match). `times` counts how
    long the parts of a step take, as `VectorEnv.times`, and the opponents' `inference`; where the matches are
    somebody's own, `environment` alone. None, as at first, counts nothing.
    """

    def __init__(self, settings: TrainingSettings, whole: TrainingSettings | None = None) -> None:
        task = Task(settings, whole)
        opponents = opponent_sides(settings)
        self._sides = {"snapshot": snapshot_sides(settings)}
        self._sides |= {goals_label(name): sides for name, sides in opponents.items()}
        self._opponents = [
            Opponent(name, settings, task, sides) for name, sides in opponents.items() if sides.any()
        ]
        own_delays = np.max([opponent.delays for opponent in self._opponents], 0) if self._opponents else None
        self._env: Any = task.make_env(own_delays)
        self.agents, self.parser = layout_of(*settings.team_sizes).agents, task.obs_and_parser().parser
        self._teacher = Teacher(settings, task) if settings.teacher else None
        if (self._opponents or self._teacher) and not hasattr(self._env, "state"):
            raise SettingsError(
                f"opponents is {toml_value(settings.opponents)}, teacher {toml_value(settings.teacher)}, and "
                f"the matches that make_env of {task.name} returns have no attribute state, expected their "
                "MatchState, on which these decide; or take both out of the settings"
            )
        self._goals = self._no_goals()
        self.times: PartTimes | None = None
        self._counts_times = hasattr(self._env, "times")  # not where it is somebody's own
        self._statistics: PlayStatistics | None = None
        if isinstance(self._env, VectorEnv):  # not where they are somebody's own
            sides: np.ndarray = sum(self._sides.values(), np.zeros(settings.matches, np.int8))
            self._statistics = self._env.statistics = PlayStatistics(cars_of_sides(sides, settings))

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin new episodes in all matches; return observations `(matches, cars, size)` float32."""
        self.renew_opponents()
        for number, opponent in enumerate(self._opponents):
            opponent.reset((seed or 0) + number)
        if self._teacher is not None:
            self._teacher.restart()
        obs: np.ndarray = self._env.reset(seed)
        return obs

    def renew_opponents(self) -> None:
        """Let opponents that are training runs play their newest checkpoints from now on."""
        for opponent in self._opponents:
            opponent.renew()

    def step(self, actions: np.ndarray) -> Step:
        """Play one decision; of actions `(matches, cars, ...)` those of opponents are written over."""
        times = self.times
        if times is not None:
            times.begin()
        for opponent in self._opponents:
            for where, chosen in opponent.actions(self._env.state):
                actions[where] = chosen
        if times is not None:
            times.end("inference")
        if self._counts_times:
            self._env.times = times
        step: Step = self._env.step(actions)
        if times is not None and not self._counts_times:
            times.end("environment")
        ended = step.terminated | step.truncated
        for opponent in self._opponents:
            opponent.forget(ended)
        if self._teacher is not None:
            self._teacher.forget(ended)
        for name, sides in self._sides.items():
            scored = self._env.scored * sides
            self._goals[f"{name}_goals"] += np.count_nonzero(scored > 0)
            self._goals[f"goals_against_{name}"] += np.count_nonzero(scored < 0)
        return step

    def masks(self) -> np.ndarray | None:
        """Return which actions each car may choose next, `(matches, cars, actions)` bool; None for all."""
        if hasattr(self._env, "masks"):
            masks: np.ndarray | None = self._env.masks()
            return masks
        if hasattr(self._env, "state") and find_masks(self.parser, self._env.state) is not None:
            raise ValueError(
                "the parser has action masks, and the matches of make_env have no method masks(), expected "
                "one that returns (matches, cars, actions) of bool"
            )
        return None

    def teach(self) -> np.ndarray:
        """Return how likely the teacher would take each action next, `(matches, cars, actions)` float32."""
        assert self._teacher is not None  # the settings have one
        return self._teacher.probabilities(self._env.state)

    def take_counts(self) -> dict[str, float]:
        """Return what was counted since the last call: `VectorEnv.take_counts`, and goals by opponent.

        `snapshot_goals` are those of snapshots, `goals_against_snapshot` the policy's in the same matches;
        of opponents see `goals_label`. What cars did and what each reward gave stands there as
        `play_statistics.means_of` takes it, unless the matches are somebody's own.
        """
        goals, self._goals = self._goals, self._no_goals()
        played = {} if self._statistics is None else self._statistics.take()
        return dict(self._env.take_counts()) | goals | played

    def _no_goals(self) -> dict[str, float]:
        names = (one for name in self._sides for one in (f"{name}_goals", f"goals_against_{name}"))
        return dict.fromkeys(names, 0.0)


class CarStep(NamedTuple):
    """The results of a step for the cars of all matches."""

    obs: np.ndarray  # (cars, size) float32, what the next actions are chosen on
    rewards: np.ndarray  # (cars,) float32
    terminated: np.ndarray  # (cars,) bool, by the termination condition of their matches
    truncated: np.ndarray  # (cars,) bool, by the truncation condition alone
    final_obs: np.ndarray  # (ended, size) float32, the last observations of cars whose matches ended


class MixedMatches:
    """Matches of all team sizes; those of each size are a `SelfPlayMatches`.

    `obs_size` is that of an observation, and `masked` says whether the policy was made for action masks.
    """

    def __init__(self, settings: TrainingSettings, obs_size: int, masked: bool = False) -> None:
        self._parts = [SelfPlayMatches(one, settings) for one in settings.by_size()]
        self._shapes = [(one.matches, one.cars) for one in settings.by_size()]
        ends = np.cumsum([matches * cars for matches, cars in self._shapes]).tolist()
        self._ranges = [
            slice(end - shape[0] * shape[1], end) for end, shape in zip(ends, self._shapes, strict=True)
        ]
        self._obs_size, self._masked = obs_size, masked

    def time_parts(self, times: PartTimes | None) -> None:
        """Count from now on how long the parts of a step take; see `SelfPlayMatches.times`."""
        for part in self._parts:
            part.times = times

    def reset(self, seed: int) -> np.ndarray:
        """Begin new episodes in all matches; return observations `(cars, size)` float32."""
        every = []
        for number, (part, shape) in enumerate(zip(self._parts, self._shapes, strict=True)):
            own = seed if not number else int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
            obs = part.reset(own)
            if obs.shape != (*shape, self._obs_size):
                raise ValueError(f"observations have shape {obs.shape}, expected {(*shape, self._obs_size)}")
            every.append(obs.reshape(-1, self._obs_size))
        if not self._masked and any(part.masks() is not None for part in self._parts):
            raise ValueError(
                "matches have an action mask, and the probe states of the parser and shared info had none; "
                "expected masks in all states, or in none"
            )
        return _joined(every)

    def masks(self) -> np.ndarray | None:
        """Return which actions each car may choose next, `(cars, actions)` bool; None without masks.

        Raises ValueError where the policy was made for masks, and a match has none; or a mask does not fit.
        """
        if not self._masked:
            return None
        given = [masks for part in self._parts if (masks := part.masks()) is not None]
        if len(given) < len(self._parts):
            holder = mask_holder(self._parts[0].parser)
            raise ValueError(
                f"{type(holder).__name__} gave no action mask for a match, and some for the probe states; "
                f"expected masks in all states, or in none{locate_method(holder, 'masks')}"
            )
        return _joined([masks.reshape(-1, masks.shape[2]) for masks in given])

    def step(self, actions: np.ndarray) -> CarStep:
        """Play one decision; of actions `(cars, ...)` those of opponents' cars are written over."""
        steps = []
        for part, shape, cars in zip(self._parts, self._shapes, self._ranges, strict=True):
            step = part.step(actions[cars].reshape(*shape, *actions.shape[1:]))
            ends = (np.repeat(flags, shape[1]) for flags in (step.terminated, step.truncated))
            steps.append((step.obs.reshape(-1, self._obs_size), step.rewards.reshape(-1), *ends,
                          step.final_obs.reshape(-1, self._obs_size)))  # fmt: skip
        return CarStep(*map(_joined, zip(*steps, strict=True)))

    def teach(self) -> np.ndarray:
        """Return how likely the teacher would take each action next, `(cars, actions)` float32."""
        found = (part.teach() for part in self._parts)
        return _joined([one.reshape(-1, one.shape[2]) for one in found])

    def take_counts(self) -> dict[str, float]:
        """Return the sums of `SelfPlayMatches.take_counts`."""
        total: Counter[str] = Counter()
        for part in self._parts:
            total.update(part.take_counts())
        return dict(total)


def _joined(parts: list[np.ndarray] | tuple[np.ndarray, ...]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
