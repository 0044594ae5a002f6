"""Choose and rate the matches of a run's checkpoints against fixed opponents.

checkpoints -> matches against anchors, and against themselves -> Elo, with its noise
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rlgym_bridge.server import ConfigError
from rlgym_bridge.training.contests.elo import EloRating
from rlgym_bridge.training.contests.entrant import Entrant
from rlgym_bridge.training.contests.kept_matches import KeptMatches
from rlgym_bridge.training.contests.rated_checkpoints import rate_player
from rlgym_bridge.training.contests.rating_book import Anchor, RatingBook, given_as, player_of
from rlgym_bridge.training.contests.simulated_jobs import SimulatedJob, cut_keys

FIRST_RATING: Final = 1000.0
"""Elo points of the first anchor."""

Pair = tuple[Entrant, Entrant]


def pairs_of(book: RatingBook, checkpoints: Iterable[Entrant], anchors: Sequence[Entrant]) -> Iterator[Pair]:
    """Yield who plays: a new anchor those before it, a checkpoint all anchors and itself.

    Raises:
        ConfigError: None of the anchors has a rating, but others have.
    """
    fixed = book.fixed()
    earlier = [one for one in anchors if player_of(one) in fixed]
    if fixed and not earlier:
        rated = ", ".join(one.given for one in book.anchors)
        raise ConfigError(
            f"--anchors names none of those that have a rating ({rated}), expected one of them beside new "
            "ones, which are rated by matches against it"
        )
    for anchor in anchors:
        if player_of(anchor) not in fixed:
            yield from ((anchor, other) for other in earlier)
            earlier.append(anchor)
    for checkpoint in checkpoints:
        others = {player_of(one): one for one in (*anchors, checkpoint)}
        yield from ((checkpoint, other) for other in others.values())


def jobs_of(
    pair: Pair,
    count: int,
    modules: Sequence[str],
    *,
    seconds: float,
    seed: int,
    team_size: int,
    simulator: str,
) -> Iterator[SimulatedJob]:
    """Yield the jobs of the matches of a pair.

    Args:
        pair: Who plays.
        count: How many matches, half of them from each side.
        modules: Modules that policy folders may name, besides those of their runs.
        seconds: Game time of a match.
        seed: Of everything.
        team_size: Cars a team.
        simulator: What plays, one of `simulator.SIMULATORS`.
    """
    first, second = (player_of(one) for one in pair)
    keys = [(first, second, number) for number in range(count)]
    for its, swapped, own_seed in cut_keys(keys, seed):
        blue, orange = pair[::-1] if swapped else pair
        arguments = {
            "seconds": seconds, "seed": own_seed, "team_size": team_size, "simulator": simulator,
            "selection": (blue.selection, orange.selection),
            "allow_modules": [*modules, *blue.allow_modules, *orange.allow_modules],
        }  # fmt: skip
        yield SimulatedJob(its, (blue.path, orange.path), arguments)


def fix_anchors(book: RatingBook, anchors: Sequence[Entrant], kept: KeptMatches) -> None:
    """Give anchors that are new their ratings, each by its matches against those before it."""
    for entrant in anchors:
        player, fixed = player_of(entrant), book.fixed()
        if player in fixed:
            continue
        elo, _ = rate_player(player, fixed, kept.results)
        rated = elo or EloRating(FIRST_RATING, 0.0)
        book.anchors.append(Anchor(player, entrant.name, given_as(entrant), rated.rating, rated.deviation))


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("ratings")
