"""Helpers of rewards, conditions and mutators, which have RLGym's form and a batch form.

GameState -> from_rlgym -> MatchState of 1 match -> the one formula -> numbers for each agent
many arenas -------------> MatchState of N matches -> the one formula -> numbers for N matches
"""

from collections.abc import Hashable, Iterable
from typing import Any, cast


def car_of(cars: dict[Hashable, int], agent: Hashable) -> int:
    """Return an agent's car by its place in the state.

    Raises:
        ValueError: The agent has no car.
    """
    if agent not in cars:
        raise ValueError(f"agent {agent!r} has no car in the state, which has {list(cars)}")
    return cars[agent]


def reads_of(part: Any) -> tuple[str, ...] | None:
    """Return the fields of a state that a part reads; None for all, where it does not say.

    What a class says holds for its own methods. A subclass with further methods may read more: unless it says
    so anew, None is returned. A subclass with another constructor alone reads the same.
    """
    if "reads" in getattr(part, "__dict__", {}):
        return cast("tuple[str, ...] | None", part.reads)
    for kind in type(part).__mro__:
        if "reads" in vars(kind):
            return cast("tuple[str, ...] | None", vars(kind)["reads"])
        if any(_is_method(name, value) for name, value in vars(kind).items()):
            return None
    return None


def joined_reads(parts: Iterable[Any]) -> tuple[str, ...] | None:
    """Return the fields of a state that some parts read together; None for all, where a part does not say."""
    every = [reads_of(part) for part in parts]
    known = [names for names in every if names is not None]
    return tuple(sorted({name for names in known for name in names})) if len(known) == len(every) else None


def _is_method(name: str, value: object) -> bool:
    """Tell whether a member of a class is a method or a property; a constructor and its like are none."""
    special = name.startswith("__") and name.endswith("__")
    return not special and (callable(value) or isinstance(value, property | classmethod | staticmethod))
