"""Records of a runner's sample: the episode that each match is in, and the parts of it that were played."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass
class MatchEpisode:
    """The episode that a match is in.

    Attributes:
        id_: Of the episode.
        modules: Who plays each car.
        returns: `(cars,)` float64, rewards so far.
        steps: Played so far.
    """

    id_: str
    modules: Sequence[str]
    returns: np.ndarray
    steps: int = 0


class SamplePiece(NamedTuple):
    """A part of a sample: rows `start` to `stop` of one match, of one episode."""

    match: int
    episode: MatchEpisode
    first: int  # step of the episode that row `start` is
    start: int
    stop: int
    last: np.ndarray  # (cars, size), what is seen after the last row
    terminated: bool
    truncated: bool
