"""Rate a run's checkpoints by their matches against anchors, and describe them in words and as JSON."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlgym_bridge.policy.load_player import RANDOM
from rlgym_bridge.training.contests.elo import EloRating, rate_by_scores
from rlgym_bridge.training.contests.kept_matches import MatchKey
from rlgym_bridge.training.contests.rating_book import Anchor, RatingBook
from rlgym_bridge.training.contests.served_match import ServedResult
from rlgym_bridge.training.contests.standings import count_different, evaluation_of, seen_by_first
from rlgym_bridge.training.evaluate import Evaluation

_LEVEL = 1.0  # points; copies of 400 matches lead each other by 17
_VAGUE: Final = 100.0  # points that a rating may be off (95 %) from which on it tells little
_ONE_SIDED: Final = 0.95  # win rate beyond which an anchor tells little


@dataclass(frozen=True)
class PlayedPair:
    """The matches of one player against another.

    Attributes:
        evaluation: Of the first player.
        different: Matches that are no repetition of another one.
    """

    evaluation: Evaluation
    different: int

    def rate(self, opponent: float) -> EloRating:
        """Return the rating of the first by these matches alone, from that of the second."""
        return rate_by_scores([(opponent, self.evaluation.win_rate, self.different)])


@dataclass(frozen=True)
class RatedCheckpoint:
    """A checkpoint with its rating.

    Attributes:
        name: Its agent steps.
        elo: By all matches against anchors.
        pairs: These matches by `Anchor.player`.
        noise: Points by which its first copy leads its second one; None where they have not played.
    """

    name: str
    elo: EloRating
    pairs: Mapping[str, PlayedPair]
    noise: EloRating | None


def played_pair(one: str, other: str, results: Mapping[MatchKey, ServedResult]) -> PlayedPair | None:
    """Return the kept matches of two players; None where there are none."""
    matches = [seen_by_first(key, result) for key, result in results.items() if key[:2] == (one, other)]
    evaluation = evaluation_of(matches, one)
    return None if evaluation is None else PlayedPair(evaluation, count_different(matches))


def rate_player(
    player: str, fixed: Mapping[str, EloRating], results: Mapping[MatchKey, ServedResult]
) -> tuple[EloRating | None, dict[str, PlayedPair]]:
    """Rate a player by its matches against others whose ratings are fixed.

    Args:
        player: As `player_of` names it.
        fixed: Ratings of the others, by `player_of`.
        results: All kept matches.

    Returns:
        Its rating, None where it has not played; the matches by opponent.
    """
    found = {other: played_pair(player, other, results) for other in fixed}
    pairs = {other: pair for other, pair in found.items() if pair is not None}
    scores = [
        (fixed[other].rating, pair.evaluation.win_rate, pair.different) for other, pair in pairs.items()
    ]
    return (rate_by_scores(scores) if scores else None), pairs


def rate_checkpoints(book: RatingBook, results: Mapping[MatchKey, ServedResult]) -> list[RatedCheckpoint]:
    """Return the ratings of all checkpoints that have played, the oldest first; those that are gone, too."""
    rated = []
    for name, player in sorted(book.checkpoints.items(), key=lambda item: int(item[0])):
        elo, pairs = rate_player(player, book.fixed(), results)
        itself = played_pair(player, player, results)
        if elo is not None:
            rated.append(RatedCheckpoint(name, elo, pairs, None if itself is None else itself.rate(0.0)))
    return rated


def mean_noise(rated: Sequence[RatedCheckpoint]) -> float | None:
    """Return by how many points copies of a version lead each other, as a root mean square; None of none."""
    leads = [one.noise.rating for one in rated if one.noise is not None]
    return math.sqrt(sum(lead * lead for lead in leads) / len(leads)) if leads else None


def describe_ratings(rated: Sequence[RatedCheckpoint], anchors: Sequence[Anchor]) -> list[str]:
    """Return the lines of the table."""
    heads = [f"{one.name[:16]:>16}" for one in anchors]
    lines = [f"{'checkpoint':>14}   Elo  95 %            against itself        {''.join(heads)}"]
    for one in rated:
        noise = f"{'-':22}" if one.noise is None else f"{_points(one.noise, '+'):22}"
        rates = [f"{one.pairs[its.player].evaluation.win_rate:.0%}" if its.player in one.pairs else "-"
                 for its in anchors]  # fmt: skip
        low, high = one.elo.interval
        lines.append(
            f"{one.name:>14} {one.elo.rating:5.0f}  {f'{low:.0f} to {high:.0f}':14}  {noise}"
            f"{''.join(f'{rate:>16}' for rate in rates)}"
        )
    fixed = ", ".join(
        f"{one.name} {_points(EloRating(one.rating, one.deviation)) if one.deviation else round(one.rating)}"
        for one in anchors
    )
    lines.append(f"anchors, whose ratings stay: {fixed}; their columns are win rates, a draw is half a win")
    noise_points = mean_noise(rated)
    if noise_points is not None and noise_points < _LEVEL:
        lines.append(
            "noise: copies of a version ended level, which does not say how much is chance: play more "
            "matches (--matches), or longer ones (--seconds)"
        )
    elif noise_points is not None:
        lines.append(
            f"noise: copies of a version lead each other by {noise_points:.0f} points (root mean square): "
            "less than twice that may be chance"
        )
    return lines + _caveats(rated, anchors)


def _points(elo: EloRating, sign: str = "") -> str:
    low, high = elo.interval
    return f"{round(elo.rating):{sign}} ({low:.0f} to {high:.0f})"


def _caveats(rated: Sequence[RatedCheckpoint], anchors: Sequence[Anchor]) -> list[str]:
    """Return what keeps ratings from saying much: one-sided anchors, too few matches, repeated matches."""
    lines = []
    if rated:
        newest = rated[-1]
        rates = [pair.evaluation.win_rate for pair in newest.pairs.values()]
        for beyond, word in ((min(rates) > _ONE_SIDED, "weak"), (max(rates) < 1 - _ONE_SIDED, "strong")):
            if beyond:
                names = " ".join(shlex.quote(one.given) for one in anchors)
                nearer = "a copy of a checkpoint"
                if word == "strong" and all(one.given != RANDOM for one in anchors):
                    nearer = f"cars that press buttons at random (--anchors {names} {RANDOM})"
                lines.append(
                    f"all anchors are too {word} for {newest.name}: name one nearer to it beside them, such "
                    f"as {nearer}"
                )
        lines += _uncertainty(newest, one_sided=bool(lines))
    pairs = [pair for one in rated for pair in one.pairs.values()]
    played, different = sum(pair.evaluation.matches for pair in pairs), sum(pair.different for pair in pairs)
    if different < played:
        lines.append(f"{different:,} of {played:,} matches against anchors differ, and only as many count")
    return lines


def _uncertainty(one: RatedCheckpoint, one_sided: bool) -> list[str]:
    """Say that a rating is by too few matches, and how many would do; nothing where it is not."""
    reach = one.elo.interval[1] - one.elo.rating
    if reach <= _VAGUE:
        return []
    said = f"the rating of {one.name} may be off by {reach:.0f} points, so it tells little"
    if one_sided:
        return [f"{said}; more matches against these anchors hardly help"]
    played = sum(pair.different for pair in one.pairs.values()) / len(one.pairs)
    enough = math.ceil(max(played, 1) * (reach / _VAGUE) ** 2 / 10) * 10
    return [
        f"{said}: about {enough:,} matches with each anchor (--matches {enough}) bring that to {_VAGUE:.0f}"
    ]


def summarise_ratings(rated: Sequence[RatedCheckpoint], anchors: Sequence[Anchor]) -> dict[str, Any]:
    """Return the ratings as other programs read them."""
    names = {one.player: one.name for one in anchors}
    return {
        "anchors": [
            {"name": one.name, "player": one.player, "rating": one.rating, "deviation": one.deviation}
            for one in anchors
        ],
        "checkpoints": [
            {
                "name": one.name, "rating": one.elo.rating, "deviation": one.elo.deviation,
                "interval": list(one.elo.interval),
                "against": [
                    {"anchor": names[player], **_numbers_of(pair)} for player, pair in one.pairs.items()
                ],
                "against_itself": None if one.noise is None else {
                    "lead": one.noise.rating, "interval": list(one.noise.interval)
                },
            }
            for one in rated
        ],
        "noise": mean_noise(rated),
    }  # fmt: skip


def _numbers_of(pair: PlayedPair) -> dict[str, Any]:
    won, drawn, lost = pair.evaluation.results
    return {
        "matches": pair.evaluation.matches, "different": pair.different, "won": won, "drawn": drawn,
        "lost": lost, "win_rate": pair.evaluation.win_rate,
    }  # fmt: skip
