"""What rewards, conditions and mutators have in common: RLGym's form for one match, a batch form for many.

GameState -> from_rlgym -> MatchState of 1 match -> the one formula -> numbers for each agent
many arenas -------------> MatchState of N matches -> the one formula -> numbers for N matches
"""

from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any, Final

from rlgym.api import DoneCondition, RewardFunction, StateMutator
from rlgym.rocket_league.api import GameState

from rlgym_bridge.game import BLUE

_FORMS: Final = (
    (RewardFunction, (("reward_batch", "get_rewards"), ("reward_batch", "reset"))),
    (DoneCondition, (("done_batch", "is_done"), ("reset_batch", "reset"))),
    (StateMutator, (("apply_batch", "apply"),)),
)
"""For each kind of component its batch methods, and RLGym's methods that they stand for."""


def foreign_part(component: Any) -> Any | None:
    """Return what of a reward, condition or mutator works on RLGym's objects alone.

    A subclass of ours that overrides only RLGym's form is foreign too: the batch form would bypass it.

    Args:
        component: It; one made of several has them in its attribute `parts`.

    Returns:
        The component itself, or the first such of its parts; None where all work in batches.
    """
    kind: Any = type(component)
    if not _has_batch_form(kind):
        return component
    found = (foreign_part(part) for part in getattr(component, "parts", ()))
    return next((part for part in found if part is not None), None)


@cache
def _has_batch_form(kind: Any) -> bool:
    pairs = next((pairs for base, pairs in _FORMS if issubclass(kind, base)), None)
    return pairs is not None and all(_stands_for(kind, batch, single) for batch, single in pairs)


def _stands_for(kind: Any, batch: str, single: str) -> bool:
    """Tell whether `batch` is defined no further up among the bases than `single`."""
    places = [
        next((i for i, base in enumerate(kind.__mro__) if name in vars(base)), None)
        for name in (batch, single)
    ]
    return places[0] is not None and places[1] is not None and places[0] <= places[1]


def refuse_foreign(whole: object, foreign: object | None, needed: str, instead: str) -> None:
    """Raise unless `foreign` is None.

    Raises:
        TypeError: Names the part that has no batch form, and what to call instead.
    """
    if foreign is not None:
        raise TypeError(
            f"{type(whole).__name__} holds {type(foreign).__name__}, which has no {needed} of its own; "
            f"use {instead}, one match at a time"
        )


def rows_of(game: GameState[Any]) -> dict[Hashable, int]:
    """Return the row that `from_rlgym` gives each agent's car: blue first, each team as it stands."""
    agents = sorted(game.cars, key=lambda agent: game.cars[agent].team_num != BLUE)
    return {agent: row for row, agent in enumerate(agents)}


def row_of(rows: dict[Hashable, int], agent: Hashable) -> int:
    """Return an agent's row.

    Raises:
        ValueError: The agent has no car.
    """
    if agent not in rows:
        raise ValueError(f"agent {agent!r} has no car in the state, which has {list(rows)}")
    return rows[agent]


def joined_reads(parts: Iterable[Any]) -> tuple[str, ...] | None:
    """Return what some parts read of a state together; None for everything, where one does not say."""
    every = [getattr(part, "reads", None) for part in parts]
    known = [names for names in every if names is not None]
    return tuple(sorted({name for names in known for name in names})) if len(known) == len(every) else None
