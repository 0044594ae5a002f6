"""Initial states of episodes by name, and a mix of them by shares: the setting `[initial_states]`."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from rlgym_bridge.components import skill_mutators
from rlgym_bridge.components.mutator_base import BatchMutator, WeightedMutator
from rlgym_bridge.components.mutators import KickoffMutator, RandomStateMutator
from rlgym_bridge.user_input.arguments import nearest_key, shorten_text, show_value

INITIAL_STATES: Final[Mapping[str, BatchMutator]] = {
    "kickoff": KickoffMutator(),
    "anywhere": RandomStateMutator(),
    "ground": RandomStateMutator(ground_share=1.0),
    "wall": skill_mutators.WallMutator(),
    "aerial": skill_mutators.AerialMutator(),
    "flight": skill_mutators.FlightMutator(),
    "dribble": skill_mutators.DribbleMutator(),
    "save": skill_mutators.SaveMutator(),
    "shot": skill_mutators.ShotMutator(),
    "recovery": skill_mutators.RecoveryMutator(),
    "collision": skill_mutators.CollisionMutator(),
}
"""All kinds of initial states that a share can be given to."""

_SUM_REACH: Final = 1e-6  # of shares that make 1 together
_ALIKE: Final = 0.6  # similarity of spelling from which on a name is suggested for an unknown one


def check_known(table: Iterable[object], name: str, known: Collection[str]) -> None:
    """Raise ValueError for a key of a table with a name that is not known; the nearest one is suggested."""
    for key in table:
        if key not in known:
            near = nearest_key(str(key), known, _ALIKE)
            hint = "" if near is None else f"; the nearest is {near}"
            raise ValueError(
                f"{shorten_text(str(key))} in [{name}] is unknown{hint}; expected one of {', '.join(known)}"
            )


def parse_initial_states(table: object) -> dict[str, float]:
    """Return shares from a table as TOML gives it, perhaps empty; raises ValueError for a wrong one."""
    if not isinstance(table, Mapping):
        names = ", ".join(INITIAL_STATES)
        raise ValueError(f"initial_states is {show_value(table)}, expected a table of {names}")
    check_known(table, "initial_states", INITIAL_STATES)
    shares: dict[str, float] = {}
    for name, share in table.items():
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise ValueError(f"{name} in [initial_states] is {show_value(share)}, expected a share, 0 to 1")
        shares[name] = float(share)
    total = math.fsum(shares.values())
    if shares and abs(total - 1) > _SUM_REACH:
        raise ValueError(f"the shares in [initial_states] are {total:g} together, expected 1")
    return shares


def mix_initial_states(shares: Mapping[str, Any], seed: int | None = None) -> WeightedMutator:
    """Return a mutator that draws initial states by shares; raises ValueError unless they make 1."""
    return WeightedMutator(
        [(INITIAL_STATES[name], share) for name, share in parse_initial_states(shares).items()], seed
    )
