"""Find the windows in which simulator and recording differ most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.verdict import Situation
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import BALL
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import HORIZONS

_HORIZON: Final = 120  # ticks
_SHOWN: Final = 12


@dataclass(frozen=True)
class WorstWindow:
    """A window that is far off.

    Attributes:
        source: The recording.
        body: "ball", or the agent's name.
        row: Of the recording, where the window begins.
        tick: Of that row, as the recording has it.
        seconds: Of that row.
        situation: Of the window.
        error: uu off after a second.
        tolerances: The same, in tolerances of the situation.
    """

    source: str
    body: str
    row: int
    tick: int
    seconds: float
    situation: str
    error: float
    tolerances: float


def worst_windows(
    found: Errors, scenes: Sequence[TimedRecording], situations: Sequence[Situation]
) -> list[WorstWindow]:
    """Return the windows that are most tolerances off after a second, the worst first.

    Args:
        found: The errors of all windows.
        scenes: The recordings that they are of.
        situations: Their rows, which have the tolerances.
    """
    tolerances = {row.name: row.tolerance for row in situations if row.horizon_ticks == _HORIZON}
    column = HORIZONS.index(_HORIZON)
    names, errors = found.names[:, column], found.position[:, column]
    measured = np.flatnonzero(names != "")
    allowed = np.array([tolerances[str(names[one])] for one in measured])
    shares = errors[measured] / allowed if len(measured) else np.empty(0)
    rows = []
    for place in np.argsort(-shares)[:_SHOWN].tolist():
        one = int(measured[place])
        number, body, row = found.origins[one]
        recording = scenes[number].recording
        name = "ball" if body == BALL else recording.state.agents[body]
        rows.append(
            WorstWindow(
                recording.source, name, row, int(recording.tick[row]), float(recording.seconds[row]),
                str(names[one]), float(errors[one]), float(shares[place]),
            )
        )  # fmt: skip
    return rows
