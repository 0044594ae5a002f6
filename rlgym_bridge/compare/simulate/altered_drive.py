"""Change the inputs of a car before they drive the simulation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlgym_bridge.compare.simulate.tracks import Drive


@dataclass(frozen=True)
class Alteration:
    """A change of the control rows that drive one car.

    Attributes:
        change: Takes and returns control rows, `(ticks, 8)` float64; None where only the time changes.
        lags: Ticks by which single controls, named by their column, act later than the others.
    """

    change: Callable[[np.ndarray], np.ndarray] | None = None
    lags: Mapping[int, float] = field(default_factory=dict)


class AlteredDrive(Drive):
    """The inputs of one car with alterations, the first of which acts on what was recorded.

    Args:
        drive: The inputs as recorded; they stay as they are.
        alterations: In the order in which they act.
    """

    def __init__(self, drive: Drive, alterations: Sequence[Alteration]) -> None:
        self.rows = drive.rows
        self._drive, self._alterations = drive, list(alterations)

    def during(self, row: int, ends: np.ndarray) -> np.ndarray:
        """Return the altered controls of ticks, `(n, 8)`, as `Drive.during`."""
        return self._until(len(self._alterations), row, ends)

    def _until(self, count: int, row: int, ends: np.ndarray) -> np.ndarray:
        """Return the controls after so many alterations."""
        if count == 0:
            return self._drive.during(row, ends)
        controls = self._until(count - 1, row, ends)
        alteration = self._alterations[count - 1]
        for control, ticks in alteration.lags.items():
            controls[:, control] = self._until(count - 1, row, ends - ticks)[:, control]
        return controls if alteration.change is None else alteration.change(controls)

    def held(self, control: int, value: float, since: float | None = None) -> Drive:
        """Return the altered inputs with a control held at a value, as `Drive.held`."""
        held = self._drive.held(control, value, since)

        def keep(rows: np.ndarray) -> np.ndarray:
            kept = rows.copy()
            kept[:, control] = value
            return kept

        if since is None:
            return AlteredDrive(held, [*self._alterations, Alteration(keep)])
        return AlteredDrive(held, self._alterations)
