"""Let bots play a league over the match server: list its matches, rate the entries, describe them.

entries -> every pair, and each against itself -> match server in lockstep, several at once -> standings
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from typing import Any

from rlgym_bridge.training.contests.kept_matches import (
    LeagueMatch,
    MatchKey,
    count_different,
    evaluation_of,
    is_swapped,
)
from rlgym_bridge.training.contests.served_match import Entrant, ServedMatch
from rlgym_bridge.training.elo import EloRating, rate_together
from rlgym_bridge.training.evaluate import Evaluation


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

    A pair has `count` matches, half of them from each side; in a gauntlet only the first entrant plays each
    of the others. `seconds` are game time, `seed` is that of the first match of each pair; the others'
    follow. `allow_modules` are those beside the entrants' own. `logs` is the folder for the logs of matches
    in which something goes wrong.
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


@dataclass(frozen=True)
class EntryStanding:
    """One entry of a league."""

    name: str  # its name
    rating: EloRating  # by all matches against others
    against_others: Evaluation | None  # these matches; None where there are none
    against_itself: Evaluation | None  # of its first copy against its second one; None where there are none
    forfeits: int  # matches that it forfeited


def rank(names: Sequence[str], matches: Sequence[LeagueMatch]) -> list[EntryStanding]:
    """Return the standings of the entries, the best first; an entry's matches against itself do not count."""
    outcomes = [(*one.names, one.lead) for one in matches if one.names[0] != one.names[1]]
    standings = []
    for name, rating in zip(names, rate_together(names, outcomes), strict=True):
        others = [one for one in matches if name in one.names and one.names[0] != one.names[1]]
        itself = [one for one in matches if one.names == (name, name)]
        lost = sum(bool(one.forfeits[one.names.index(name)]) for one in others)
        lost += sum(any(one.forfeits) for one in itself)
        standings.append(
            EntryStanding(name, rating, evaluation_of(others, name), evaluation_of(itself, name), lost)
        )
    return sorted(standings, key=lambda one: -one.rating.rating)


Pairs = Mapping[tuple[str, str], Evaluation]


def pairs_of(standings: Sequence[EntryStanding], matches: Sequence[LeagueMatch]) -> Pairs:
    """Return the matches of every pair that has played, evaluated for the better entry, which is first."""
    found = {}
    for one, other in combinations([standing.name for standing in standings], 2):
        its = [match for match in matches if set(match.names) == {one, other}]
        if evaluation := evaluation_of(its, one):
            found[one, other] = evaluation
    return found


def describe_league(
    standings: Sequence[EntryStanding], pairs: Pairs, matches: Sequence[LeagueMatch], remarks: Sequence[str]
) -> list[str]:
    """Return the lines of the tables: standings, the best first, pairs, forfeits, remarks."""
    wide = max(len(one.name) for one in standings)
    lines = [f"{'':4}{'entry':{wide}}  rating   95 %           won drawn lost   goals     against itself"]
    for place, one in enumerate(standings, 1):
        low, high = one.rating.interval
        lines.append(
            f"{place:2}. {one.name:{wide}}  {one.rating.rating:6.0f}   {f'{low:.0f} to {high:.0f}':13}  "
            f"{_results_of(one.against_others)}   {_share_of(one.against_itself)}"
        )
    lines.append("rating: Elo, an average entry has 1000; a draw counts half of a win")
    if any(one.against_itself for one in standings):
        lines.append("against itself: win rate against an own copy, which chance alone moves off 50 %")
    lines += ["", f"{'pair':{2 * wide + 9}}  won drawn lost   goals     win rate of the first, 95 %"]
    for (first, second), found in pairs.items():
        differ = f", only {found.different} of {found.matches} matches differ"
        repeated = "" if found.different == found.matches else differ
        same = "  not told apart" if found.interval[0] <= 0.5 <= found.interval[1] else ""
        names = f"{first} against {second}"
        results = f"{_results_of(found)}   {_share_of(found)}"
        lines.append(f"{names:{2 * wide + 9}}  {results}{repeated}{same}")
    repeats = [_describe_repeats(one.name, matches) for one in standings]
    lines += ["", *filter(None, repeats)] if any(repeats) else []
    lines += _describe_forfeits(standings, matches)
    lines += [f"{remark} ({remarks.count(remark)} times)" for remark in dict.fromkeys(remarks)]
    return lines


def _results_of(found: Evaluation | None) -> str:
    if found is None:
        return f"{'-':>15}   {'-':^9}"
    won, drawn, lost = found.results
    goals = found.goals.sum(0).tolist()
    return f"{won:4} {drawn:5} {lost:4}   {f'{goals[0]} : {goals[1]}':9}"


def _share_of(found: Evaluation | None) -> str:
    if found is None:
        return "-"
    low, high = found.interval
    return f"{found.win_rate:.0%} ({low:.0%} to {high:.0%})"


def _describe_repeats(name: str, matches: Sequence[LeagueMatch]) -> str:
    """Return a sentence where matches of an entry against itself repeat, else an empty text."""
    its = [one for one in matches if one.names == (name, name) and not any(one.forfeits)]
    different = count_different(its)
    if different == len(its):
        return ""
    return (
        f"{name} repeats matches against itself: {different} of {len(its)} differ; intervals are too narrow"
    )


def _describe_forfeits(standings: Sequence[EntryStanding], matches: Sequence[LeagueMatch]) -> list[str]:
    lines = []
    for standing in standings:
        reasons = [
            (one, place) for one in matches for place in (0, 1)
            if one.names[place] == standing.name and one.forfeits[place]
        ]  # fmt: skip
        if reasons:
            first, place = reasons[0]
            lines += ["", f"{standing.name} forfeited {standing.forfeits} matches, the first because:"]
            lines += [f"    {line}" for line in first.forfeits[place].splitlines()]
    return lines


def summarise_league(
    standings: Sequence[EntryStanding], pairs: Pairs, matches: Sequence[LeagueMatch], remarks: Sequence[str]
) -> dict[str, Any]:
    """Return the league as other programs read it; see `describe_league` for the arguments."""
    return {
        "standings": [
            {
                "name": one.name, "rating": one.rating.rating, "deviation": one.rating.deviation,
                "interval": list(one.rating.interval), "forfeits": one.forfeits,
                "against_others": one.against_others and one.against_others.to_json(),
                "against_itself": one.against_itself and one.against_itself.to_json(),
            }
            for one in standings
        ],
        "pairs": [
            {"first": first, "second": second, "different": found.different, **found.to_json()}
            for (first, second), found in pairs.items()
        ],
        "forfeits": [
            {"match": [*one.names, number], "entry": one.names[place], "reason": one.forfeits[place]}
            for number, one in enumerate(matches) for place in (0, 1) if one.forfeits[place]
        ],
        "remarks": list(remarks),
    }  # fmt: skip
