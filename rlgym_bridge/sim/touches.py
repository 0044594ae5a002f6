"""Counts touches in many matches at once."""

from typing import Any

import numpy as np

from rlgym_bridge.sim.touch_rule import TOUCH_GAP_TICKS, is_new_touch


class TouchCounter:
    """Tells new touches from those that go on, see `is_new_touch`.

    Args:
        matches, cars: Shape of what is counted.
    """

    def __init__(self, matches: int, cars: int) -> None:
        self._since = np.full((matches, cars), TOUCH_GAP_TICKS)

    def new(self, contacts: np.ndarray, ticks: int) -> np.ndarray:
        """Return which cars began a touch in the latest step.

        Args:
            contacts: `(matches, cars)` bool, those that touched the ball in it.
            ticks: Of the step.

        Returns:
            `(matches, cars)` bool.
        """
        self._since += ticks
        begun: np.ndarray = contacts & is_new_touch(self._since)
        self._since[contacts] = 0
        return begun

    def forget(self, matches: Any) -> None:
        """Begin anew in some matches."""
        self._since[matches] = TOUCH_GAP_TICKS
