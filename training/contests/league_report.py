"""Describe a league in words and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlgym_bridge.training.contests.standings import EntryStanding, LeagueMatch, count_different
from rlgym_bridge.training.evaluate import Evaluation

Pairs = Mapping[tuple[str, str], tuple[Evaluation, int]]


def describe_league(
    standings: Sequence[EntryStanding], pairs: Pairs, matches: Sequence[LeagueMatch], remarks: Sequence[str]
) -> list[str]:
    """Return the lines of the tables: standings, pairs, forfeits.

    Args:
        standings: The best first.
        pairs: As `pairs_of` returns them.
        matches: All of them.
        remarks: What went wrong without a forfeit.
    """
    wide = max(len(one.name) for one in standings)
    lines = [f"{'':4}{'entry':{wide}}  rating   95 %           won drawn lost   goals     against itself"]
    for place, one in enumerate(standings, 1):
        low, high = one.rating.interval
        lines.append(
            f"{place:2}. {one.name:{wide}}  {one.rating.mean:6.1f}   {low:5.1f} to {high:4.1f}  "
            f"{_results_of(one.against_others)}   {_share_of(one.against_itself)}"
        )
    lines.append("rating: openskill, everybody starts at 25; a draw counts half of a win")
    if any(one.against_itself for one in standings):
        lines.append("against itself: win rate against an own copy, which chance alone moves off 50 %")
    lines += ["", f"{'pair':{2 * wide + 9}}  won drawn lost   goals     win rate of the first, 95 %"]
    for (first, second), (found, different) in pairs.items():
        repeated = (
            "" if different == found.matches else f", only {different} of {found.matches} matches differ"
        )
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
                "name": one.name,
                "rating": one.rating.mean,
                "deviation": one.rating.deviation,
                "interval": list(one.rating.interval),
                "against_others": _numbers_of(one.against_others),
                "against_itself": _numbers_of(one.against_itself),
                "forfeits": one.forfeits,
            }
            for one in standings
        ],
        "pairs": [
            {"first": first, "second": second, "different": different, **(_numbers_of(found) or {})}
            for (first, second), (found, different) in pairs.items()
        ],
        "forfeits": [
            {"match": [*one.names, number], "entry": one.names[place], "reason": one.forfeits[place]}
            for number, one in enumerate(matches) for place in (0, 1) if one.forfeits[place]
        ],
        "remarks": list(remarks),
    }  # fmt: skip


def _numbers_of(found: Evaluation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    won, drawn, lost = found.results
    return {
        "matches": found.matches, "won": won, "drawn": drawn, "lost": lost,
        "goals": found.goals.sum(0).tolist(), "win_rate": found.win_rate, "interval": list(found.interval),
    }  # fmt: skip
