"""The matches of one collector, of one team size or of several: their cars stand one after another."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from rlgym_bridge.sim.part_times import PartTimes
from rlgym_bridge.training.selfplay.matches import SelfPlayMatches
from rlgym_bridge.training.settings import TrainingSettings


class CarStep(NamedTuple):
    """The results of a step for the cars of all matches.

    Attributes:
        obs: `(cars, size)` float32, what the next actions are chosen on.
        rewards: `(cars,)` float32.
        terminated: `(cars,)` bool, by the termination condition of their matches.
        truncated: `(cars,)` bool, by the truncation condition alone.
        final_obs: `(ended, size)` float32, the last observations of cars whose matches ended, in order.
    """

    obs: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_obs: np.ndarray


class MixedMatches:
    """Matches of all team sizes; those of each size are a `SelfPlayMatches`.

    Args:
        settings: Of the run.
        obs_size: Numbers of an observation.
        masked: Whether the policy was made for action masks.

    Raises:
        SettingsError: A rival does not fit.
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
        """Begin new episodes in all matches; return observations `(cars, size)` float32.

        Raises:
            ValueError: They have another shape.
        """
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

        Raises:
            ValueError: The policy was made for masks, and a match has none; or a mask does not fit.
        """
        if not self._masked:
            return None
        given = [masks for part in self._parts if (masks := part.masks()) is not None]
        if len(given) < len(self._parts):
            raise ValueError(
                "matches have no action mask, and the probe states had some; expected one in all"
            )
        return _joined([masks.reshape(-1, masks.shape[2]) for masks in given])

    def step(self, actions: np.ndarray) -> CarStep:
        """Play one decision.

        Args:
            actions: `(cars,)` or `(cars, k)`; those of rivals' cars are written over.
        """
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
