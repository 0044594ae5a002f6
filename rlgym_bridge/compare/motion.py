"""Whether bodies move as their velocities say: else what was read is not what it is taken for."""

from typing import Final

import numpy as np

from rlgym_bridge.compare.timeline import Timeline, raw_timeline, steps_of
from rlgym_bridge.compare.tracks import BALL, POSITION, TRIAL, VELOCITY, body_values, shown
from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.recording.recording import Clock, Recording

_STEPS: Final = 10  # of a body, from which on its motion can be judged
_UNLIKE: Final = 0.2  # of a step: what a body may move otherwise than its velocity says, mostly
_NEARLY_ALL: Final = 0.9  # of the steps in which a body moves, without a velocity in any of them


def check_motion(recording: Recording, timeline: Timeline) -> None:
    """Make sure that bodies move about as their velocities say.

    No clock of a game is wrong by a fifth: then a column, a scale or a unit is another than was thought.

    Args:
        recording: The recording.
        timeline: Its times; only those of a replay count, whose frames say no ticks.

    Raises:
        ValueError: A body moves otherwise, or has no velocity.
    """
    frames = recording.clock is Clock.FRAMES
    times = (timeline if frames else raw_timeline(recording)).times
    for column in range(recording.state.layout.cars + 1):
        body = column if column < recording.state.layout.cars else BALL
        off, moved, still = [], 0, 0
        for stretch in recording.stretches():
            rows = np.flatnonzero(shown(recording, body)[stretch]) + stretch.start
            if len(rows) <= TRIAL:
                continue
            said, found = steps_of(recording, body, stretch, times[:, column] * TICK_SECONDS)
            off.append(np.linalg.norm(found - said, axis=1) / np.linalg.norm(said, axis=1))
            values = body_values(recording, body, rows)
            moves = np.diff(values[:, POSITION], axis=0).any(1)
            moved += int(moves.sum())
            still += int((moves & ~values[1:, VELOCITY].any(1)).sum())
        name = "the ball" if body == BALL else f"car {body}"
        if moved > _STEPS and still > _NEARLY_ALL * moved:
            raise ValueError(
                f"{recording.source}: {name} moves and its velocity is 0, expected velocities in uu/s: the "
                f"simulation begins with them; does the map name their columns?"
            )
        together = np.concatenate([*off, np.empty(0)])
        if len(together) > _STEPS and np.median(together) > _UNLIKE:
            raise ValueError(
                f"{recording.source}: {name} moves otherwise than its velocity says, by "
                f"{100 * np.median(together):.0f} % in most steps, expected {100 * _UNLIKE:.0f} % at most; "
                f"is a column, a scale or a unit of time, position or velocity another than the map says?"
            )
