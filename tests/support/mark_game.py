"""A game with known returns in place of the environment: hit the number that is shown.

An observation is one of four marks. An action that names it earns 1 (a stick of eight, an eighth); a car
that always does so gets 1 a step, one that guesses a fourth (a third or half in each of eight choices).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rlgym.api import ObsBuilder

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.training.settings import TrainingSettings

MARKS = 4


class MarkObs(ObsBuilder):
    """Builds as many numbers as there are marks; only for the policy folder's probe."""

    def get_obs_space(self, agent: Any) -> tuple[str, int]:
        return "real", MARKS

    def reset(self, agents: Sequence[Any], initial_state: Any, shared_info: dict[str, Any]) -> None:
        pass

    def build_obs(
        self, agents: Sequence[Any], state: Any, shared_info: dict[str, Any]
    ) -> dict[Any, np.ndarray]:
        return {agent: np.eye(MARKS, dtype=np.float32)[i % MARKS] for i, agent in enumerate(agents)}


class Step(NamedTuple):
    obs: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_obs: np.ndarray


class MarkEnv:
    """Many such games; an episode ends with each step by a chance of one in ten, half of the time cut off."""

    def __init__(self, matches: int, cars: int) -> None:
        self.matches, self.cars = matches, cars
        self.counts: dict[str, float] = {}
        self.scored = np.zeros(matches, np.int8)

    def reset(self, seed: int | None = None) -> np.ndarray:
        self.rng = np.random.default_rng(seed)
        return self._draw()

    def _draw(self) -> np.ndarray:
        self.marks = self.rng.integers(MARKS, size=(self.matches, self.cars))
        return np.eye(MARKS, dtype=np.float32)[self.marks]

    def hits(self, actions: np.ndarray) -> np.ndarray:
        if actions.dtype == np.float32:  # the sign of each number says the first mark or another
            wanted = np.where(self.marks == 0, 1.0, -1.0)[..., None]
            return (np.sign(actions) == wanted).mean(-1)
        if actions.ndim == 3:
            return (actions % 2 == (self.marks % 2)[..., None]).mean(-1)
        return actions % MARKS == self.marks

    def step(self, actions: np.ndarray) -> Step:
        rewards = self.hits(actions).astype(np.float32)
        ended = self.rng.random(self.matches) < 0.1
        terminated = ended & (self.rng.random(self.matches) < 0.5)
        self.scored = np.where(terminated, 1, 0).astype(np.int8)  # always blue
        shown = self._draw()
        self.counts = {
            "touches": self.counts.get("touches", 0) + float(rewards.sum()),
            "goals": self.counts.get("goals", 0) + int(terminated.sum()),
            "car_minutes": self.counts.get("car_minutes", 0) + rewards.size / 900,
            "episodes": self.counts.get("episodes", 0) + int(ended.sum()),
        }
        final = shown[ended].copy()
        return Step(shown, rewards, terminated, ended & ~terminated, final)

    def take_counts(self) -> dict[str, float]:
        counts, self.counts = self.counts, {}
        return counts


def obs(settings: TrainingSettings) -> ComponentSpec:
    return ComponentSpec.of(MarkObs)


def parser(settings: TrainingSettings) -> ComponentSpec:
    return ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=settings.tick_skip)


def make_env(settings: TrainingSettings, matches: int) -> MarkEnv:
    return MarkEnv(matches, settings.cars)
