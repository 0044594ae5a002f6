"""Keep what a run is rated by: anchors, whose ratings never change, and the checkpoints that are rated.

{"anchors": [{"player": "chaser", "name": "Chaser", "rating": 1000.0, ...}], "checkpoints": {"100": "0a1b2c"}}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec

from rlgym_bridge.policy.files import CHECKPOINTS, MANIFEST_FILE, all_checkpoints
from rlgym_bridge.policy.load_player import BUILT_IN, CHASER
from rlgym_bridge.server import ConfigError
from rlgym_bridge.training.contests.elo import EloRating
from rlgym_bridge.training.contests.entrant import Entrant, read_entrants, split_selection
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.text_files import parse_json, read_text

BOOK: Final = "rated.json"
_DIGITS: Final = 12  # of a checksum, by which players are told apart


@dataclass(frozen=True)
class Anchor:
    """A fixed opponent.

    Attributes:
        player: See `player_of`.
        name: In tables.
        given: What it is played from: a policy folder, or `chaser`, with its selection.
        rating, deviation: On Elo's scale. They stay as they were when it was first named.
    """

    player: str
    name: str
    given: str
    rating: float
    deviation: float


@dataclass
class RatingBook:
    """The anchors and the checkpoints of a folder of ratings.

    Attributes:
        anchors: In the order in which they were named first.
        checkpoints: `player_of` each checkpoint that is rated, by its number.
    """

    anchors: list[Anchor]
    checkpoints: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> "RatingBook":
        """Read a book; an empty one where there is none.

        Raises:
            ConfigError: The file is none.
        """
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

        Args:
            run: Folder of the run.
            most: How many are added; evenly spread where there are more, the newest among them.
            team_size: Cars a team.

        Raises:
            ConfigError: The run has no checkpoint, or one has other weights than when it was rated.
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
    """Return the anchors that a command names, in the order given.

    Args:
        given: Policy folders, or names in `BUILT_IN`; `:sample` or `:argmax` behind a folder chooses how it
            plays. Where none is named, those of the book, or Chaser.
        book: Of the run.
        team_size: Cars a team.

    Raises:
        ConfigError: One is nothing that can be played, no policy, a training run, or has changed.
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
