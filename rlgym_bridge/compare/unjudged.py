"""Say what a recording leaves open, what could not be judged, and which data would tell."""

from typing import Final

import numpy as np

from rlgym_bridge.compare.comparison_result import Fit
from rlgym_bridge.compare.detection import Judged
from rlgym_bridge.compare.gaps import listed
from rlgym_bridge.compare.timed_recording import TimedRecording
from rlgym_bridge.compare.tracks import BALL, TRIAL, knows_spin
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording, TimeBase
from rlgym_bridge.user_input.arguments import count_of

_BOOST: Final = CONTROL_NAMES.index("boost")
_WIDE: Final = 10.0  # uu: a bound after half a second by which a situation shows next to nothing
_HALF_SECOND: Final = 3  # index of 60 ticks in `HORIZONS`


def note_recording(scene: TimedRecording) -> list[str]:
    """Return sentences on what a recording does not hold.

    Args:
        scene: The recording, with its fitted time.
    """
    recording = scene.recording
    notes = [f"{recording.source}: {note}" for note in recording.notes]
    cars = [body for body in scene.bodies if body != BALL]
    if scene.timeline.clock.wavers:
        notes.append(f"the clock of {recording.source} wavers from row to row: fast bodies tell the time")
    if is_spinless(scene):
        notes.append(f"{recording.source} does not hold how the ball spins: bounces may differ")
    if scene.driven:
        burning = recording.state.car_controls[:, cars, _BOOST].any()
        if burning and not recording.state.car_boost_amount[:, cars].any():
            notes.append(f"{recording.source} does not hold how much boost there is: taken as enough")
    notes += [_mixed_up(scene, car) for car in cars]
    return [note for note in notes if note]


def unjudged(scene: TimedRecording, fit: Fit, judged: Judged) -> list[str]:
    """Return sentences on what could not be judged in a recording, and which data would tell.

    Args:
        scene: The recording.
        fit: Its fitted time.
        judged: Its windows.
    """
    source, found, recording = fit.source, [], scene.recording
    cars = [body for body in scene.bodies if body != BALL]
    if cars and not scene.driven:
        found.append(f"cars of {source}: it has no inputs; a recording of inputs and states would tell")
    elif cars and recording.clock is TimeBase.FRAMES:
        found.append(
            f"cars of {source}: a replay's inputs come with its frames, some ticks off, and lack pitch, "
            "yaw and roll; a recording of the inputs of every tick would tell"
        )
    elif fit.lacking:
        share = np.mean([scene.unknown_inputs(car).mean() for car in cars])
        found.append(
            f"cars of {source} in {100 * share:.0f} % of the rows: {listed(list(fit.lacking))} could act "
            "there and are not recorded; a recording of all eight controls would tell"
        )
    if fit.driven and not fit.lag.curve and fit.delay is None:
        found.append(
            f"how late inputs act in {source}: {count_of(fit.lag.windows, 'window')} could tell, 6 are "
            "needed; none is assumed. More changes of inputs would tell"
        )
    wide = []
    for name in dict.fromkeys(judged.names.ravel().tolist()):
        here = judged.names == name
        horizons = np.full(judged.names.shape, -1)
        for number, window in enumerate(judged.windows):
            horizons[number, : len(window.horizons)] = np.array(window.horizons)[:, None]
        at = here & (horizons == _HALF_SECOND)
        if name and at.sum() and np.median(judged.bounds[at][:, 0]) > _WIDE:
            wide.append(f"{name} ({np.median(judged.bounds[at][:, 0]):.0f} uu)")
    if wide:
        found.append(
            f"small gaps in {source} after half a second: its digits, noise and inputs leave open "
            f"{listed(wide)}; states and inputs of every tick would show more"
        )
    return found


def is_spinless(scene: TimedRecording) -> bool:
    """Tell whether nothing says how the ball spins: neither its spin nor its orientation."""
    if BALL not in scene.bodies or knows_spin(scene.recording, BALL):
        return False
    shown = scene.recording.ball_shown
    state = scene.recording.state
    if not np.ptp(state.ball_position[shown], axis=0).any():
        return False  # at rest it does not spin
    return not np.ptp(state.ball_rotation[shown], axis=0).any()


def _mixed_up(scene: TimedRecording, car: int) -> str:
    """Return which columns of a table's controls a map could mix up unseen: never used, or always equal."""
    recording = scene.recording
    if isinstance(recording, MatchRecording) or recording.clock is TimeBase.FRAMES or not scene.driven:
        return ""
    if all(len(track.times) <= TRIAL for track in scene.tracks((car,))):
        return ""  # what is held in trials is named by the map
    groups = _groups(recording, car)
    if not groups:
        return ""
    return (
        f"if the map of {recording.source} mixed up {' or '.join(groups)} of car {car}, nothing would show it"
    )


def _groups(recording: Recording, car: int) -> list[str]:
    columns = np.flatnonzero(recording.inputs_recorded[car]).tolist()
    controls = recording.state.car_controls[:, car]
    equal: dict[bytes, list[str]] = {}
    for column in columns:
        equal.setdefault(controls[:, column].tobytes(), []).append(CONTROL_NAMES[column])
    zero = np.zeros(len(controls), controls.dtype).tobytes()
    return [
        f"{listed(names)} ({'0' if values == zero else 'equal'} in every row)"
        for values, names in equal.items()
        if len(names) > 1
    ]
