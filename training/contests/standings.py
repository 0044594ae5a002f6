"""Make standings of a league's results: ratings, pairs, and the noise of entries against themselves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rlgym_bridge.training.contests.kept_matches import MatchKey
from rlgym_bridge.training.contests.openskill_rating import Rating, rate_outcomes
from rlgym_bridge.training.contests.served_match import ServedResult
from rlgym_bridge.training.evaluate import Evaluation


@dataclass(frozen=True)
class EntryStanding:
    """One entry of a league.

    Attributes:
        name: Its name.
        rating: By all matches against others.
        against_others: These matches; None where there are none.
        against_itself: Of its first copy against its second one; None where there are none.
        forfeits: Matches that it forfeited.
    """

    name: str
    rating: Rating
    against_others: Evaluation | None
    against_itself: Evaluation | None
    forfeits: int


@dataclass(frozen=True)
class LeagueMatch:
    """A match as seen by the entry that is named first.

    Attributes:
        names: The two entries.
        goals, touches: Of the first and of the second.
        lead: Above 0 where the first won, below 0 where it lost; a forfeit counts, goals do not then.
        ticks: Of the match.
        course: See `ServedResult`.
        forfeits: Why the first and why the second forfeit; empty for one that does not.
    """

    names: tuple[str, str]
    goals: tuple[int, int]
    touches: tuple[int, int]
    lead: int
    ticks: int
    course: float
    forfeits: tuple[str, str]


def is_swapped(number: int) -> bool:
    """Tell whether the entry that is named first plays orange in a match of this number."""
    return number % 2 == 1


def seen_by_first(key: MatchKey, result: ServedResult) -> LeagueMatch:
    """Return a match from the view of the entry that its key names first."""
    goals, touches, forfeits = result.goals, result.touches, result.forfeits
    if is_swapped(key[2]):
        goals, touches, forfeits = goals[::-1], touches[::-1], forfeits[::-1]
    lead = goals[0] - goals[1]
    if any(forfeits):
        lead = bool(forfeits[1]) - bool(forfeits[0])
    return LeagueMatch((key[0], key[1]), goals, touches, lead, result.ticks, result.course, forfeits)


def evaluation_of(matches: Sequence[LeagueMatch], first: str) -> Evaluation | None:
    """Return matches as an evaluation of one of the two entries; None where there are none.

    A forfeit counts as one goal for the other.
    """
    if not matches:
        return None
    leads = np.array([one.lead if one.names[0] == first else -one.lead for one in matches], np.int64)
    goals = np.array(
        [one.goals if one.names[0] == first else one.goals[::-1] for one in matches], np.int64
    ).reshape(-1, 2)
    forfeited = np.array([any(one.forfeits) for one in matches])
    goals[forfeited] = np.stack([leads > 0, leads < 0], 1)[forfeited]
    touches = np.array([one.touches if one.names[0] == first else one.touches[::-1] for one in matches])
    return Evaluation(goals, touches, np.array([one.ticks / 120 / 60 for one in matches]))


def count_different(matches: Iterable[LeagueMatch]) -> int:
    """Count matches that are no repetition of another one."""
    return len({(one.goals, one.touches, one.ticks, one.course) for one in matches})


def rank(names: Sequence[str], matches: Sequence[LeagueMatch], seed: int) -> list[EntryStanding]:
    """Return the standings, the best first.

    Args:
        names: The entries.
        matches: All of them; those of an entry against itself do not count for ratings.
        seed: Of the order in which results are counted.
    """
    outcomes = [(*one.names, one.lead) for one in matches if one.names[0] != one.names[1]]
    standings = []
    for rating in rate_outcomes(names, outcomes, seed):
        name = rating.name
        others = [one for one in matches if name in one.names and one.names[0] != one.names[1]]
        itself = [one for one in matches if one.names == (name, name)]
        lost = sum(bool(one.forfeits[one.names.index(name)]) for one in others)
        lost += sum(any(one.forfeits) for one in itself)
        standings.append(
            EntryStanding(name, rating, evaluation_of(others, name), evaluation_of(itself, name), lost)
        )
    return sorted(standings, key=lambda one: -one.rating.mean)


def pairs_of(
    standings: Sequence[EntryStanding], matches: Sequence[LeagueMatch]
) -> dict[tuple[str, str], tuple[Evaluation, int]]:
    """Return the matches of every pair that has played, the better entry first.

    Returns:
        For each pair the evaluation of the first, and how many of the matches are different.
    """
    found = {}
    for one, other in combinations([standing.name for standing in standings], 2):
        its = [match for match in matches if set(match.names) == {one, other}]
        evaluation = evaluation_of(its, one)
        if evaluation is not None:
            found[one, other] = evaluation, count_different(its)
    return found
