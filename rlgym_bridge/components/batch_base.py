"""What rewards, conditions and mutators have in common: RLGym's form for one match, a batch form for many.

GameState -> from_rlgym -> MatchState of 1 match -> the one formula -> numbers for each agent
many arenas -------------> MatchState of N matches -> the one formula -> numbers for N matches
"""

from collections.abc import Hashable, Iterable
from typing import Any

from rlgym.rocket_league.api import GameState

from rlgym_bridge.game import BLUE


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
