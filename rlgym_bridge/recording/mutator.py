"""Begin episodes in states of recorded matches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge.components.mutator_base import BatchMutator
from rlgym_bridge.game import GOAL_THRESHOLD_Y
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import TimeBase, in_play
from rlgym_bridge.recording.replays.replay_states import states_of_replay
from rlgym_bridge.state import CAR_FIELDS, MatchState
from rlgym_bridge.user_input.arguments import check_list, check_whole, show_value

_MODE: Final = "Soccar"
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

    States in play are taken in which nobody is demolished and the ball is in the field. A replay lacks timers
    of jumps and of pads: its cars in the air have their dodge, and pads are all there.

    Args:
        files: Recordings of ours (`match --record`) and replays (`.replay`), all of the same team sizes and
            of soccar; those of replays are the most frequent ones.
        every: Ticks from one state that is kept to the next.
        seed: Of the generator that RLGym's form draws from.

    Attributes:
        states: The states that are drawn from.

    Raises:
        OSError, RecordingError: A file cannot be read.
        ValueError: `files` is no list, or `every` no whole number; team sizes differ, or no state is left; a
            match is of another mode, or a replay's cars are not where their velocities take them.
        ImportError: What replays need is not installed.
    """

    def __init__(self, files: Sequence[str | Path], every: int = 12, seed: int | None = None) -> None:
        super().__init__(seed)
        check_list("files", files, 'recordings, such as ["match.mcap"]')
        if not all(isinstance(file, str | Path) for file in files):
            raise ValueError(f"files is {show_value(files)}, expected names of recordings")
        check_whole("every", every, 1, unit="ticks")
        if not files:
            raise ValueError("got 0 files, expected one recording or more")
        found = [_states_of(Path(file), every) for file in files]
        for file, states in zip(files, found, strict=True):
            if not states.matches:
                raise ValueError(f"{file}: no state of play to begin in, expected some")
        sizes = {(one.layout.blue, one.layout.orange) for one in found}
        if len(sizes) > 1:
            each = (
                f"{file} {one.layout.blue}v{one.layout.orange}"
                for file, one in zip(files, found, strict=True)
            )
            raise ValueError(f"recordings have team sizes {', '.join(each)}, expected the same in all")
        rows = np.concatenate([one.buffer for one in found])
        ((blue, orange),) = sizes
        self.states = MatchState(blue, orange, len(rows), rows)

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches; raise ValueError where they have other team sizes than the recordings."""
        own, asked = self.states.layout, state.layout
        if own is not asked:
            raise ValueError(
                f"the recordings have {own.blue} blue and {own.orange} orange cars, and the match "
                f"{asked.blue} and {asked.orange}; expected the same (team_sizes)"
            )
        drawn = rng.integers(self.states.matches, size=state.matches)
        for name in _DRAWN:
            getattr(state, name)[:] = getattr(self.states, name)[drawn]


def _states_of(file: Path, every: int) -> MatchState:
    recording = open_recording(file)
    if recording.mode != _MODE or recording.mutators:
        odd = recording.mode if recording.mode != _MODE else f"{_MODE} with {', '.join(recording.mutators)}"
        raise ValueError(
            f"{file} is a match of {odd}, expected {_MODE} without mutators that change the physics, as in "
            "training"
        )
    if recording.clock is TimeBase.FRAMES:
        return states_of_replay(recording, every)
    state = recording.state
    fits = in_play(state) & (state.ball_known > 0) & (np.abs(state.ball_position[:, 1]) < GOAL_THRESHOLD_Y)
    fits &= (state.car_is_demoed < 1).all(1)
    for name in _DRAWN:
        fits &= np.isfinite(getattr(state, name)).reshape(state.matches, -1).all(1)
    return state.select(np.flatnonzero(fits)[::every])
