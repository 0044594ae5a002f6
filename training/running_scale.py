"""Keep running statistics of observations and returns, and scale observations by them, in numpy."""

from dataclasses import dataclass

import numpy as np

from rlgym_bridge.policy.manifest import Normalisation

_LEAST_STD = 0.01
"""Of normalised observations: what hardly ever changes is not blown up more than a hundredfold."""


@dataclass
class RunningScale:
    """Running mean and deviation of observations."""

    count: int  # observations seen
    mean: np.ndarray  # (size,) float64
    spread: np.ndarray  # (size,) float64, sum of squared distances from the mean

    @classmethod
    def of_size(cls, size: int) -> "RunningScale":
        """Return one that has seen nothing."""
        return cls(0, np.zeros(size), np.zeros(size))

    @classmethod
    def of(cls, scaling: Normalisation, count: int) -> "RunningScale":
        """Return one that has seen so many observations, and found this mean and deviation."""
        return cls(count, np.array(scaling.mean), np.square(scaling.std) * count)

    def update(self, obs: np.ndarray) -> None:
        """Take in observations `(rows, size)`."""
        self.merge(RunningScale(len(obs), obs.mean(0, np.float64), obs.var(0, np.float64) * len(obs)))

    def merge(self, other: "RunningScale") -> None:
        """Take in what another one has seen [Chan et al. 1979, the merging of two samples]."""
        total, shift = self.count + other.count, other.mean - self.mean
        self.spread = self.spread + other.spread + shift**2 * (self.count * other.count / total)
        self.mean = self.mean + shift * (other.count / total)
        self.count = total

    def normalisation(self, clip: float) -> Normalisation:
        """Return what a policy does to its observations; nothing but clipping before the first update."""
        std = np.sqrt(self.spread / self.count) if self.count else np.ones_like(self.mean)
        return Normalisation(
            tuple(self.mean.tolist()), tuple(np.maximum(std, _LEAST_STD).tolist()), float(clip)
        )


def scaled(obs: np.ndarray, scaling: Normalisation | None) -> np.ndarray:
    """Return observations `(..., size)` float32 as the networks see them."""
    if scaling is None:
        return obs
    mean, std = np.array(scaling.mean, np.float32), np.array(scaling.std, np.float32)
    shown: np.ndarray = ((obs - mean) * (1 / std)).clip(-scaling.clip, scaling.clip)
    return shown
