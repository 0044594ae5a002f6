"""Assign the cars of a collector's matches to the policy, its older versions and a rival.

The first matches have a snapshot on one side, the next ones the rival; in all others the policy plays itself.
All collectors are alike.
"""

import numpy as np

from training.settings import TrainingSettings


def snapshot_sides(settings: TrainingSettings) -> np.ndarray:
    """Return which team a snapshot plays in each match, `(matches,)` int8: 1 blue, -1 orange, 0 neither."""
    return _sides(settings, 0, _count(settings, settings.snapshot_share))


def rival_sides(settings: TrainingSettings) -> np.ndarray:
    """Return which team the rival plays in each match, `(matches,)` int8: 1 blue, -1 orange, 0 neither."""
    first = _count(settings, settings.snapshot_share)
    return _sides(settings, first, _count(settings, settings.rival_share))


def cars_of_sides(sides: np.ndarray, settings: TrainingSettings) -> np.ndarray:
    """Return the cars of some sides, `(matches, cars)` bool."""
    cars: np.ndarray = sides[:, None] == np.repeat((1, -1), settings.team_sizes)
    return cars


def learned_cars(settings: TrainingSettings) -> np.ndarray:
    """Return the cars that are learned from, `(matches, cars)` bool: those of the policy in training."""
    return ~cars_of_sides(snapshot_sides(settings) + rival_sides(settings), settings)


def _count(settings: TrainingSettings, share: float) -> int:
    return round(share * settings.matches)


def _sides(settings: TrainingSettings, first: int, count: int) -> np.ndarray:
    sides = np.zeros(settings.matches, np.int8)
    sides[first : first + count] = np.where(np.arange(len(sides[first : first + count])) % 2 == 0, 1, -1)
    return sides
