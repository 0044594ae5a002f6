"""Say what a recording leaves open: its clock, spins, boost, rules, and controls that it lacks."""

from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.phrases import listed
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import BALL, knows_spin
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.game_rules import parse_rules

_BOOST: Final = CONTROL_NAMES.index("boost")


def note_recording(scene: TimedRecording) -> list[str]:
    """Return sentences on what a recording does not tell.

    Args:
        scene: The recording, with its fitted time.
    """
    recording = scene.recording
    notes = [f"{recording.source}: {note}" for note in recording.notes]
    if recording.rules and not knows_rules(recording.rules):
        notes.append(
            f"{recording.source} says that it was played by rules that are unknown here "
            f"({recording.rules[:60]!r}): it was tested which ones it shows"
        )
    cars = [body for body in scene.bodies if body != BALL]
    if scene.timeline.clock.wavers:
        notes.append(
            f"the clock of {recording.source} wavers from row to row: what moves fast tells the time"
        )
    if is_spinless(scene):
        notes.append(f"{recording.source} does not tell how the ball spins: bounces may differ")
    if cars and not scene.driven:
        notes.append(f"{recording.source} has no inputs: only its ball is compared")
    elif cars:
        burning = recording.state.car_controls[:, cars, _BOOST].any()
        if burning and not recording.state.car_boost_amount[:, cars].any():
            notes.append(f"{recording.source} does not tell how much boost there is: taken as enough")
    if recording.inputs is not Inputs.NONE:
        lacking: dict[str, list[int]] = {}
        for car in cars:
            names = _not_recorded(recording, car)
            if names and len(names) < recording.inputs_recorded.shape[1]:
                lacking.setdefault(listed(names), []).append(car)
        for absent, of in lacking.items():
            who = f"car{'' if len(of) == 1 else 's'} {listed([str(car) for car in of])}"
            notes.append(f"{recording.source} does not record {absent} of {who}: taken as 0")
    return notes


def knows_rules(rules: str) -> bool:
    """Tell whether rules that a recording names are known here."""
    try:
        parse_rules(rules)
    except ValueError:
        return False
    return True


def is_spinless(scene: TimedRecording) -> bool:
    """Tell whether nothing says how the ball spins: neither its spin nor its orientation."""
    if BALL not in scene.bodies or knows_spin(scene.recording, BALL):
        return False
    shown = scene.recording.ball_shown
    state = scene.recording.state
    if not np.ptp(state.ball_position[shown], axis=0).any():
        return False  # at rest it does not spin
    return not np.ptp(state.ball_rotation[shown], axis=0).any()


def _not_recorded(recording: Recording, car: int) -> list[str]:
    told = zip(CONTROL_NAMES, recording.inputs_recorded[car], strict=True)
    return [name for name, there in told if not there]
