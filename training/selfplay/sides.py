"""Assign the cars of a collector's matches to the policy, its older versions and rivals.

The first matches have a snapshot on one side, the next ones a rival each. In all others the policy plays
itself. All collectors are alike. Of several team sizes each has its own share of such matches.
"""

from itertools import pairwise

import numpy as np

from rlgym_bridge.training.settings import TrainingSettings
from rlgym_bridge.training.team_sizes import name_sizes


def snapshot_sides(settings: TrainingSettings) -> np.ndarray:
    """Return which team a snapshot plays in each match, `(matches,)` int8: 1 blue, -1 orange, 0 neither."""
    return _sides(settings, 0, _count(settings, settings.snapshot_share))


def rival_sides(settings: TrainingSettings) -> dict[str, np.ndarray]:
    """Return which team each rival plays in each match, `(matches,)` int8: 1 blue, -1 orange, 0 neither."""
    ends = np.cumsum([settings.snapshot_share, *settings.rivals.values()])
    places = [_count(settings, end) for end in ends.round(9).tolist()]
    return {
        name: _sides(settings, first, end - first)
        for name, (first, end) in zip(settings.rivals, pairwise(places), strict=True)
    }


def cars_of_sides(sides: np.ndarray, settings: TrainingSettings) -> np.ndarray:
    """Return the cars of some sides, `(matches, cars)` bool."""
    cars: np.ndarray = sides[:, None] == np.repeat((1, -1), settings.team_sizes)
    return cars


def snapshot_cars(settings: TrainingSettings) -> np.ndarray:
    """Return the cars that a snapshot plays, `(cars,)` bool: of all matches, one after another."""
    return np.concatenate([cars_of_sides(snapshot_sides(one), one).ravel() for one in settings.by_size()])


def learned_cars(settings: TrainingSettings) -> np.ndarray:
    """Return the cars that are learned from, `(cars,)` bool: the policy's in training, of all matches."""
    opponents = (
        cars_of_sides(sum(rival_sides(one).values(), snapshot_sides(one)), one) for one in settings.by_size()
    )
    learned: np.ndarray = ~np.concatenate([cars.ravel() for cars in opponents])
    return learned


def name_car(settings: TrainingSettings, number: int) -> str:
    """Say which car of a collector a number means, where all cars stand one after another."""
    for one in settings.by_size():
        if number < one.matches * one.cars:
            match, car = divmod(number, one.cars)
            of = "" if one is settings else f" of {name_sizes(one.sizes)}"
            return f"car {car} in match {match}{of}"
        number -= one.matches * one.cars
    raise IndexError(number)


def _count(settings: TrainingSettings, share: float) -> int:
    return round(share * settings.matches)


def _sides(settings: TrainingSettings, first: int, count: int) -> np.ndarray:
    sides = np.zeros(settings.matches, np.int8)
    sides[first : first + count] = np.where(np.arange(len(sides[first : first + count])) % 2 == 0, 1, -1)
    return sides
