"""The matches of one collector: who is not in training is part of the world, and its goals are counted.

actions of policy and snapshots -> the rival's beside them -> VectorEnv -> goals of each kind of opponent
"""

from typing import Any

import numpy as np

from rlgym_bridge.sim.part_times import PartTimes
from rlgym_bridge.sim.vector_env import Step
from rlgym_bridge.state import layout_of
from training.environment import Task
from training.selfplay.rivals import Rival
from training.selfplay.sides import rival_sides, snapshot_sides
from training.settings import TrainingSettings


class SelfPlayMatches:
    """A `VectorEnv` in which the rival plays its seats.

    Args:
        settings: Of the run; where it has several team sizes, of one of them, see
            `TrainingSettings.by_size`.
        whole: Settings of the run, which name observation and parser; None where `settings` are.

    Attributes:
        agents: Names of the cars.
        parser: The action parser (of the first match).
        times: Counts how long the parts of a step take, as `VectorEnv.times`, and the rival's `inference`;
            where the matches are somebody's own, `environment` alone. None, as at first, counts nothing.

    Raises:
        SettingsError: The rival does not fit.
    """

    def __init__(self, settings: TrainingSettings, whole: TrainingSettings | None = None) -> None:
        task = Task(settings, whole)
        self._sides = {"snapshot": snapshot_sides(settings), "rival": rival_sides(settings)}
        self._rival: Rival | None = None
        if self._sides["rival"].any():
            self._rival = Rival(settings, task, self._sides["rival"])
        rival = self._rival
        self._env: Any = task.make_env() if rival is None else task.make_env(rival.reads, rival.delays)
        self.agents, self.parser = layout_of(*settings.team_sizes).agents, task.obs_and_parser().parser
        self._goals = self._no_goals()
        self.times: PartTimes | None = None
        self._counts_times = hasattr(self._env, "times")  # not where it is somebody's own

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin new episodes in all matches; return observations `(matches, cars, size)` float32."""
        if self._rival is not None:
            self._rival.reset(seed or 0)
        obs: np.ndarray = self._env.reset(seed)
        return obs

    def step(self, actions: np.ndarray) -> Step:
        """Play one decision.

        Args:
            actions: `(matches, cars)` or `(matches, cars, k)`; those of the rival's cars are written over.
        """
        times = self.times
        if times is not None:
            times.begin()
        if self._rival is not None:
            for where, chosen in self._rival.actions(self._env.state):
                actions[where] = chosen
        if times is not None:
            times.end("inference")
        if self._counts_times:
            self._env.times = times
        step: Step = self._env.step(actions)
        if times is not None and not self._counts_times:
            times.end("environment")
        for name, sides in self._sides.items():
            scored = self._env.scored * sides
            self._goals[f"{name}_goals"] += np.count_nonzero(scored > 0)
            self._goals[f"goals_against_{name}"] += np.count_nonzero(scored < 0)
        return step

    def take_counts(self) -> dict[str, float]:
        """Return what was counted since the last call: `VectorEnv.take_counts`, and goals by opponent.

        `snapshot_goals` are those of snapshots, `goals_against_snapshot` the policy's in the same matches;
        `rival_goals` and `goals_against_rival` are those of rivals.
        """
        goals, self._goals = self._goals, self._no_goals()
        return dict(self._env.take_counts()) | goals

    def _no_goals(self) -> dict[str, float]:
        names = (one for name in self._sides for one in (f"{name}_goals", f"goals_against_{name}"))
        return dict.fromkeys(names, 0.0)
