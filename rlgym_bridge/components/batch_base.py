"""Helpers of rewards, conditions and mutators, which have RLGym's form and a batch form.

GameState -> from_rlgym -> MatchState of 1 match -> the one formula -> numbers for each agent
many arenas -------------> MatchState of N matches -> the one formula -> numbers for N matches
"""

from collections.abc import Hashable


def car_of(cars: dict[Hashable, int], agent: Hashable) -> int:
    """Return an agent's car by its place in the state.

    Raises:
        ValueError: The agent has no car.
    """
    if agent not in cars:
        raise ValueError(f"agent {agent!r} has no car in the state, which has {list(cars)}")
    return cars[agent]
