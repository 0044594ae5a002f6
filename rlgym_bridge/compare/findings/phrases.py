"""Put numbers, lists and rules into words."""

from collections.abc import Sequence
from typing import Final

from rlgym_bridge.sim.game_rules import describe_rules
from rlgym_bridge.user_input.arguments import count_of

SECOND: Final = 120
"""Ticks in a second."""

LEAST: Final = 0.01
"""uu: what is less is not printed with its digits."""


def name_rules(rules: frozenset[str]) -> str:
    """Return RocketSim with these rules of the game, in words."""
    name = describe_rules(rules)
    if name == "default":
        return f"RocketSim with the default rules of matches ({', '.join(rules)})"
    words = {"rocketsim": "RocketSim alone", "game": "RocketSim with all rules of the game"}
    return words.get(name, f"RocketSim with the rules {name.replace(',', ', ')}")


def short(error: float) -> str:
    """Return an error in uu with two decimals, fewer where it is large; what is less than 0.01 as such."""
    return "<0.01" if error < LEAST else f"{error:.2f}" if error < 10 else f"{error:.0f}"


def in_time(ticks: int) -> str:
    """Return a horizon in ticks as a time: `a second`, `60 ticks (0.5 s)`."""
    return "a second" if ticks == SECOND else f"{count_of(ticks, 'tick')} ({ticks / SECOND:.2g} s)"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: `pitch, yaw and roll`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
