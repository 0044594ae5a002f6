"""Begin episodes in states of recorded matches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge.components.mutator_base import BatchMutator
from rlgym_bridge.game import GOAL_THRESHOLD_Y, PLAYING_PHASES
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.state import CAR_FIELDS, MatchState

_OWN: Final = ("player_id", "team", "hitbox", "known", "controls", "ball_touches", "bump_victim")
"""Fields of a car that are a match's own: an episode begins with its own cars and nothing pressed."""

_DRAWN: Final = (
    "ball_position",
    "ball_rotation",
    "ball_linear_velocity",
    "ball_angular_velocity",
    "pad_timer",
    *(f"car_{one.name}" for one in CAR_FIELDS if one.name not in _OWN),
)
"""Fields of the state that are taken from a recording."""


class RecordedStateMutator(BatchMutator):
    """Begins episodes in states of recorded matches, each as likely as any other.

    States in play are taken in which nobody is demolished and the ball is in the field.

    Args:
        files: Recordings of ours (`match --record`), all of the same team sizes.
        every: Ticks from one state that is kept to the next.
        seed: Of the generator that RLGym's form draws from.

    Attributes:
        states: The states that are drawn from.

    Raises:
        OSError, RecordingError: A file cannot be read.
        ValueError: `files` is no list, or `every` no whole number; team sizes differ, or no state is left.
    """

    def __init__(self, files: Sequence[str | Path], every: int = 12, seed: int | None = None) -> None:
        super().__init__(seed)
        if isinstance(files, str | Path):
            raise ValueError(f"files is {files!r}, expected a list of recordings: [{files!r}]")
        if not isinstance(every, int | np.integer) or every < 1:
            raise ValueError(f"every is {every!r}, expected a whole number of ticks, 1 or more")
        if not files:
            raise ValueError("got 0 files, expected one recording or more")
        found = [_usable(read_match(file).state, every) for file in files]
        sizes = {(one.layout.blue, one.layout.orange) for one in found}
        if len(sizes) > 1:
            raise ValueError(f"recordings have team sizes {sorted(sizes)}, expected the same in all")
        rows = np.concatenate([one.buffer for one in found])
        if not len(rows):
            raise ValueError(f"{', '.join(map(str, files))}: no state of play to begin in, expected some")
        ((blue, orange),) = sizes
        self.states = MatchState(blue, orange, len(rows), rows)

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches of `state`.

        Raises:
            ValueError: The matches have other team sizes than the recordings.
        """
        own, asked = self.states.layout, state.layout
        if own is not asked:
            raise ValueError(
                f"the recordings have {own.blue} blue and {own.orange} orange cars, and the match "
                f"{asked.blue} and {asked.orange}; expected the same (team_sizes)"
            )
        drawn = rng.integers(self.states.matches, size=state.matches)
        for name in _DRAWN:
            getattr(state, name)[:] = getattr(self.states, name)[drawn]


def _usable(state: MatchState, every: int) -> MatchState:
    playing = np.isin(state.phase, [int(phase) for phase in PLAYING_PHASES])
    fits = playing & (state.ball_known > 0) & (np.abs(state.ball_position[:, 1]) < GOAL_THRESHOLD_Y)
    fits &= (state.car_is_demoed < 1).all(1)
    for name in _DRAWN:
        fits &= np.isfinite(getattr(state, name)).reshape(state.matches, -1).all(1)
    rows = np.flatnonzero(fits)[::every]
    return MatchState(state.layout.blue, state.layout.orange, len(rows), state.buffer[rows])
