"""List the matches of a league of bots over the match server.

    entries -> every pair, and each against itself -> match server in lockstep, several at once -> ratings

The bots are processes that speak RLBot's protocol, so bots of others play without the game as well.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from pathlib import Path

from rlgym_bridge.training.contests.entrant import Entrant
from rlgym_bridge.training.contests.kept_matches import MatchKey
from rlgym_bridge.training.contests.served_match import ServedMatch
from rlgym_bridge.training.contests.standings import is_swapped


def league_matches(
    entrants: Sequence[Entrant],
    count: int,
    *,
    gauntlet: bool,
    team_size: int,
    seconds: float,
    seed: int,
    simulator: str,
    allow_modules: Sequence[str],
    logs: Path,
) -> list[tuple[MatchKey, ServedMatch]]:
    """Return all matches; every pair has played about as often when only some have been.

    Args:
        entrants: Who plays.
        count: Matches of each pair, half of them from each side.
        gauntlet: Whether only the first plays each of the others.
        team_size: Cars a team.
        seconds: Game time of a match.
        seed: Of the first match of each pair; the others' follow.
        simulator: What plays, one of `simulator.SIMULATORS`.
        allow_modules: Modules that policy folders may name, besides those of their runs.
        logs: Folder for the logs of matches in which something goes wrong.
    """
    pairs = list(combinations_with_replacement(entrants, 2))
    if gauntlet:
        pairs = pairs[1 : len(entrants)]  # the first has its copy first, then the others
    matches = []
    for number, (one, other) in product(range(count), pairs):
        pair = (other, one) if is_swapped(number) else (one, other)
        modules = dict.fromkeys([*allow_modules, *one.allow_modules, *other.allow_modules])
        place = f"{entrants.index(one) + 1}-{entrants.index(other) + 1}-{number}"
        match = ServedMatch(
            bots=(pair[0].bot, pair[1].bot), team_size=team_size, seconds=seconds,
            seed=seed + number,  # equal bots would play a seed's match again from the other side
            simulator=simulator, allow_modules=tuple(modules), log_dir=(logs / place).resolve(),
        )  # fmt: skip
        matches.append(((one.name, other.name, number), match))
    return matches


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("league")
