"""Rate a run's checkpoints by their matches against anchors, whose ratings never change.

checkpoints -> matches against anchors, and against themselves -> Elo, with its noise -> words and JSON
"""

import json
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from rlgym_bridge.policy.files import CHECKPOINTS, MANIFEST_FILE, all_checkpoints
from rlgym_bridge.policy.load_player import BUILT_IN, CHASER, RANDOM
from rlgym_bridge.server import ConfigError
from rlgym_bridge.training.contests.kept_matches import (
    KeptMatches,
    MatchKey,
    ServedResult,
    SimulatedJob,
    cut_keys,
    evaluation_of,
    seen_by_first,
)
from rlgym_bridge.training.contests.served_match import Entrant, read_entrants, split_selection
from rlgym_bridge.training.elo import FIRST_RATING, EloRating, rate_by_scores
from rlgym_bridge.training.evaluate import Evaluation
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.text_files import parse_json, read_text

BOOK: Final = "rated.json"
_DIGITS: Final = 12  # of a checksum, by which players are told apart


@dataclass(frozen=True)
class Anchor:
    """A fixed opponent."""

    player: str  # see `player_of`
    name: str  # in tables
    given: str  # what it is played from: a policy folder, or `chaser`, with its selection
    rating: float  # on Elo's scale; it stays as it was when the anchor was first named
    deviation: float  # its standard deviation


@dataclass
class RatingBook:
    """The anchors and the checkpoints of a folder of ratings, kept as JSON."""

    anchors: list[Anchor]  # in the order in which they were named first
    checkpoints: dict[str, str]  # `player_of` each checkpoint that is rated, by its number

    @classmethod
    def read(cls, path: Path) -> "RatingBook":
        """Read a book; an empty one where there is none; raises ConfigError where the file is none."""
        if not path.exists():
            return cls([], {})
        try:
            book = msgspec.convert(parse_json(read_text(path)), cls)
            if odd := next((name for name in book.checkpoints if not name.isdecimal()), None):
                raise ValueError(f"it has a checkpoint {odd!r}, expected the number of its steps")
            return book
        except ValueError as error:
            raise ConfigError(f"{path} cannot be read: {error}; remove it, or take another --out") from error

    def write(self, path: Path) -> None:
        """Put the book in place at once."""
        write_durably(path.parent, {path.name: f"{json.dumps(asdict(self), indent=1)}\n".encode()})

    def fixed(self) -> dict[str, EloRating]:
        """Return the ratings of the anchors by `player_of`."""
        return {one.player: EloRating(one.rating, one.deviation) for one in self.anchors}

    def choose_checkpoints(self, run: Path, most: int, team_size: int) -> dict[str, Entrant]:
        """Add the run's newer checkpoints, and return those of the book that are still there, by number.

        Of more than `most` newer ones, so many are added, evenly spread, the newest among them. Raises
        ConfigError where the run has no checkpoint, or one has other weights than when it was rated.
        """
        there = all_checkpoints(run)
        if not there:
            raise ConfigError(
                f"{run / CHECKPOINTS} has no checkpoints, expected the folder of a training run"
            )
        last = max(map(int, self.checkpoints), default=-1)
        newer = spread_evenly([one for one in there if int(one.name) > last], most)
        chosen = [one for one in there if one in newer or one.name in self.checkpoints]
        entrants = read_entrants([str(one) for one in chosen], team_size)
        found = {one.name: entrant for one, entrant in zip(chosen, entrants, strict=True)}
        for name, entrant in found.items():
            if self.checkpoints.setdefault(name, player_of(entrant)) != player_of(entrant):
                raise ConfigError(
                    f"{entrant.path} has other weights than when it was rated: the run was begun anew. "
                    "Remove the folder of ratings, or take another --out"
                )
        return found


def spread_evenly(checkpoints: Sequence[Path], most: int) -> list[Path]:
    """Return some checkpoints from the first to the last; of one the last."""
    if len(checkpoints) <= most:
        return list(checkpoints)
    if most == 1:
        return [checkpoints[-1]]
    return [checkpoints[round(i * (len(checkpoints) - 1) / (most - 1))] for i in range(most)]


def player_of(entrant: Entrant) -> str:
    """Return what a player's results are kept under: a checksum of its weights, wherever they lie."""
    selection = f":{entrant.selection}" if entrant.selection else ""
    return f"{entrant.content[:_DIGITS] or entrant.path}{selection}"


def read_anchors(given: Sequence[str], book: RatingBook, team_size: int) -> list[Entrant]:
    """Return the anchors that a command names, in the order given; of none those of the book, or Chaser.

    Each is a policy folder, or in `BUILT_IN`; `:sample` or `:argmax` behind a folder chooses how it plays.
    Raises ConfigError where one is nothing that can be played, no policy, a training run, or has changed.
    """
    entrants = read_entrants(given or [one.given for one in book.anchors] or [CHASER], team_size)
    known: Mapping[str, str] = {one.given: one.player for one in book.anchors}
    for named in given:
        folder = split_selection(named)[0]
        if folder not in BUILT_IN and not (Path(folder) / MANIFEST_FILE).is_file():
            raise ConfigError(
                f"--anchors has {named!r}, expected policy folders, {', '.join(BUILT_IN[:-1])} or "
                f"{BUILT_IN[-1]}: an anchor stays as it is. To use a checkpoint of a run, copy its folder "
                "and name the copy"
            )
    for entrant in entrants:
        if known.get(given_as(entrant), player_of(entrant)) != player_of(entrant):
            raise ConfigError(
                f"the anchor {entrant.path} has other weights than when it was rated, expected a folder that "
                "stays as it is"
            )
    return list({player_of(one): one for one in entrants}.values())


def given_as(entrant: Entrant) -> str:
    """Return what an anchor can be named by from any folder."""
    return f"{entrant.path}:{entrant.selection}" if entrant.selection else entrant.path


Pair = tuple[Entrant, Entrant]


def pairs_of(book: RatingBook, checkpoints: Iterable[Entrant], anchors: Sequence[Entrant]) -> Iterator[Pair]:
    """Yield who plays: a new anchor those before it, a checkpoint all anchors and itself.

    Raises ConfigError where none of the anchors has a rating, but others have.
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
    pair: Pair, count: int, modules: Sequence[str], *, seed: int, **how: Any
) -> Iterator[SimulatedJob]:
    """Yield the jobs of the matches of a pair, `count`, half of them from each side; see `play_matches`.

    `modules` are those that policy folders may name, besides those of their runs.
    """
    first, second = (player_of(one) for one in pair)
    keys = [(first, second, number) for number in range(count)]
    for its, swapped, own_seed in cut_keys(keys, seed):
        blue, orange = pair[::-1] if swapped else pair
        arguments = how | {
            "seed": own_seed, "selection": (blue.selection, orange.selection),
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


_LEVEL = 1.0  # points; copies of 400 matches lead each other by 17
_VAGUE: Final = 100.0  # points that a rating may be off (95 %) from which on it tells little
_ONE_SIDED: Final = 0.95  # win rate beyond which an anchor tells little


@dataclass(frozen=True)
class RatedCheckpoint:
    """A checkpoint with its rating."""

    name: str  # its agent steps
    elo: EloRating  # by all matches against anchors
    pairs: Mapping[str, Evaluation]  # these matches by `Anchor.player`
    noise: EloRating | None  # points by which its first copy leads its second one, if they have played


def _evaluate_kept(one: str, other: str, results: Mapping[MatchKey, ServedResult]) -> Evaluation | None:
    """Return the kept matches of two players; None where there are none."""
    matches = [seen_by_first(key, result) for key, result in results.items() if key[:2] == (one, other)]
    return evaluation_of(matches, one)


def rate_player(
    player: str, fixed: Mapping[str, EloRating], results: Mapping[MatchKey, ServedResult]
) -> tuple[EloRating | None, dict[str, Evaluation]]:
    """Rate a player, if it has played, by its matches against others, whose ratings are fixed.

    Return the matches by opponent, too. All are named by `player_of`.
    """
    found = {other: _evaluate_kept(player, other, results) for other in fixed}
    pairs = {other: pair for other, pair in found.items() if pair is not None}
    scores = [(fixed[other].rating, pair.win_rate, pair.different) for other, pair in pairs.items()]
    return (rate_by_scores(scores) if scores else None), pairs


def rate_checkpoints(book: RatingBook, results: Mapping[MatchKey, ServedResult]) -> list[RatedCheckpoint]:
    """Return the ratings of all checkpoints that have played, the oldest first; those that are gone, too."""
    rated = []
    for name, player in sorted(book.checkpoints.items(), key=lambda item: int(item[0])):
        elo, pairs = rate_player(player, book.fixed(), results)
        itself = _evaluate_kept(player, player, results)
        noise = None if itself is None else rate_by_scores([(0.0, itself.win_rate, itself.different)])
        if elo is not None:
            rated.append(RatedCheckpoint(name, elo, pairs, noise))
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
        rates = [f"{one.pairs[its.player].win_rate:.0%}" if its.player in one.pairs else "-"
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
        rates = [pair.win_rate for pair in newest.pairs.values()]
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
    played, different = sum(pair.matches for pair in pairs), sum(pair.different for pair in pairs)
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
                    {"anchor": names[player], "different": pair.different, **pair.to_json()}
                    for player, pair in one.pairs.items()
                ],
                "against_itself": None if one.noise is None else {
                    "lead": one.noise.rating, "interval": list(one.noise.interval)
                },
            }
            for one in rated
        ],
        "noise": mean_noise(rated),
    }  # fmt: skip
