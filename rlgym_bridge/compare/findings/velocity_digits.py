"""Read off the digits of recorded velocities whether the game cut them, and off positions if it rounded.

The game ends every component of a velocity in a tenth of its step, 0.01 uu/s or 0.0001 rad/s. A recording
that keeps fewer digits than that shows nothing of it.
"""

from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.compare.simulate.tracks import BALL, shown
from rlgym_bridge.recording.recording import Recording

_STEPS: Final = ((100.0, 1000.0), (10000.0, 10.0))
"""Steps in a unit, and what is too large to have kept the digit: six are printed, float32 has seven."""

_TENTH, _NEAR = 0.1, 0.03  # of a step: where a cut component ends, and how near counts
CHANCE: Final = 0.1
"""Share of components that end so by chance: 0.06 of random ones, 0.1 of those printed to a tenth."""

_LEAST_STEPS: Final = 2.0  # a component that is smaller is at rest
_ROUNDED: Final = 0.9  # share on the grid from which on the digits were rounded off


class Digits(NamedTuple):
    """The digits of the numbers of a recording.

    Attributes:
        velocities: Different components of velocities that could show the cut.
        cut: How many of them end in a tenth of a step.
        coarse: Whether velocities were stored in whole steps, so that nothing of the cut is left.
        positions: Different coordinates.
        rounded: How many of them are whole hundredths of a uu.
    """

    velocities: int
    cut: int
    coarse: bool
    positions: int
    rounded: int


def read_digits(recording: Recording) -> Digits:
    """Count the digits of all bodies; each value counts once, however often it occurs."""
    state = recording.state
    velocities, positions = [], []
    for body in (*range(state.layout.cars), BALL):
        rows = shown(recording, body)
        prefix, own = ("ball_", ()) if body == BALL else ("car_", (body,))
        parts = (
            getattr(state, prefix + name)[(rows, *own)] for name in ("linear_velocity", "angular_velocity")
        )
        velocities += [_beyond(part, steps, most) for part, (steps, most) in zip(parts, _STEPS, strict=True)]
        positions.append(_beyond(getattr(state, prefix + "position")[(rows, *own)], *_STEPS[0]))
    left, places = np.concatenate(velocities), np.concatenate(positions)
    coarse = bool(len(left)) and float(_on_grid(left).mean()) > _ROUNDED
    return Digits(
        len(left),
        int((np.abs(left - _TENTH) < _NEAR).sum()),
        coarse,
        len(places),
        int(_on_grid(places).sum()),
    )


def _beyond(values: np.ndarray, steps: float, most: float) -> np.ndarray:
    """Return what of each component is left beyond its whole steps, `(different components,)`."""
    sizes = np.unique(np.abs(values.astype(float)))
    return np.asarray(sizes[(sizes > _LEAST_STEPS / steps) & (sizes < most)] * steps % 1)


def _on_grid(left: np.ndarray) -> np.ndarray:
    return np.asarray((left < _NEAR) | (left > 1 - _NEAR))
