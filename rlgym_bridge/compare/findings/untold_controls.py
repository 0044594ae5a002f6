"""Name the columns of controls that a map could mix up unseen: never used, or always equal to others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import BALL, TRIAL
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import TimeBase


@dataclass(frozen=True)
class UntoldControls:
    """The controls of a car that a table's map could mix up without any effect.

    Attributes:
        source: Name of the recording.
        car: The car.
        unused: Controls that are 0 in every row.
        equal: Groups of other controls that have the same number in every row.
    """

    source: str
    car: int
    unused: tuple[str, ...]
    equal: tuple[tuple[str, ...], ...]


def find_untold(scene: TimedRecording) -> list[UntoldControls]:
    """Return which controls of each car of a table look alike; matches and replays need no map.

    Args:
        scene: The recording.
    """
    recording = scene.recording
    if isinstance(recording, MatchRecording) or recording.clock is TimeBase.FRAMES or not scene.driven:
        return []
    every = []
    for car in scene.bodies:
        if car == BALL or all(len(track.times) <= TRIAL for track in scene.tracks((car,))):
            continue  # what is held in trials is named by the map
        recorded = np.flatnonzero(recording.inputs_recorded[car]).tolist()
        controls = recording.state.car_controls[:, car]
        used = [column for column in recorded if controls[:, column].any()]
        unused = [CONTROL_NAMES[column] for column in recorded if column not in used]
        equal = _equal(controls, used)
        every.append(UntoldControls(recording.source, car, tuple(unused), tuple(equal)))
    return every


def _equal(controls: np.ndarray, used: Sequence[int]) -> list[tuple[str, ...]]:
    """Return groups of controls, `(rows, 8)`, whose columns are the same."""
    groups: dict[bytes, list[str]] = {}
    for column in used:
        groups.setdefault(controls[:, column].tobytes(), []).append(CONTROL_NAMES[column])
    return [tuple(names) for names in groups.values() if len(names) > 1]
