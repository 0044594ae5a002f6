"""Simulate a recording anew from each of its seconds on, to be drawn beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.drift import WINDOWS
from rlgym_bridge.compare.findings.shown_rules import AUTO, fit_rules
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.playable import check_playable
from rlgym_bridge.compare.simulate.rollout import RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, POSITION, ROTATION, Track
from rlgym_bridge.compare.simulate.window_errors import between
from rlgym_bridge.compare.simulate.windows import lead_ticks, starts
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording, TimeBase
from rlgym_bridge.sim.game_rules import parse_rules

_LAG_WINDOWS: Final = WINDOWS // 2  # as `comparison.compare` fits it


@dataclass
class Ghosts:
    """Simulated bodies beside recorded ones: cars in the order of the state, the ball last.

    Attributes:
        position: `(rows, cars + 1, 3)` uu.
        rotation: `(rows, cars + 1, 3, 3)`, columns forward, right, up.
        distance: `(rows, cars + 1)` uu from the recorded body.
        there: `(rows, cars + 1)` bool, whether the row has a ghost; the rest is 0 where it has none.
        lag: Ticks by which the recorded inputs act late, as fitted.
    """

    position: np.ndarray
    rotation: np.ndarray
    distance: np.ndarray
    there: np.ndarray
    lag: int


def ghosts(
    recording: Recording, window: float = TICKS_PER_SECOND, rules: str | Sequence[str] = AUTO
) -> Ghosts:
    """Put RocketSim in the recorded state again and again, and let it go with the recorded inputs.

    Without inputs there are ghosts of the ball alone, which no car hits. A replay shows bodies of different
    moments, so each is simulated by itself there.

    Args:
        recording: The recording.
        window: Ticks after which it is put there again.
        rules: As for `compare_recordings`.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
        ValueError: RocketSim does not play the recorded game.
    """
    check_playable(recording)
    rows, cars = len(recording.tick), recording.state.layout.cars
    scene = TimedRecording(recording, fit_timeline(recording))
    lag, _ = fit_rules(scene, _LAG_WINDOWS, None if rules == AUTO else parse_rules(rules))
    found = Ghosts(
        np.zeros((rows, cars + 1, 3)), np.zeros((rows, cars + 1, 3, 3)), np.zeros((rows, cars + 1)),
        np.zeros((rows, cars + 1), bool), lag.ticks,
    )  # fmt: skip
    moving = [body for body in scene.bodies if body == BALL or scene.driven]
    together = scene.driven and recording.clock is not TimeBase.FRAMES
    for bodies in [moving] if together and moving else [[body] for body in moving]:
        stage = RolloutArena(recording, bodies, rules=scene.rules)
        for track in scene.tracks(bodies):
            _follow(found, scene, stage, track, window)
    return found


def _follow(found: Ghosts, scene: TimedRecording, stage: RolloutArena, track: Track, window: float) -> None:
    """Fill in the ghosts along a track; each is shown up to the moment at which the next one starts."""
    drives = [scene.drive(body) for body in track.bodies]
    begins = starts(track, window).tolist()
    for start, end in pairwise([*begins, len(track.times) - 1]):
        ticks = int(np.ceil(track.times[end] - track.times[start]))
        if ticks < 1:
            continue
        lead = max(lead_ticks(track, start, place) for place in range(len(track.bodies)))
        path = stage.roll(track, start, ticks, lead, drives).values
        moments = range(start if start == begins[0] else start + 1, end + 1)
        for place, body in enumerate(track.bodies):
            rows = track.rows[moments]
            seen = np.stack(
                [between(path[:, place], track.times[one] - track.times[start]) for one in moments]
            )
            real = track.values[moments, place]
            found.position[rows, body] = seen[:, POSITION]
            found.rotation[rows, body] = seen[:, ROTATION].reshape(-1, 3, 3)
            found.distance[rows, body] = np.linalg.norm(seen[:, POSITION] - real[:, POSITION], axis=1)
            found.there[rows, body] = True
