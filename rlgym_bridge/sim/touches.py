"""Tell which contacts of a car with the ball are new touches, wherever touches are counted."""

from typing import Any, Final

import numpy as np

from rlgym_bridge.game import TICKS_PER_SECOND

TOUCH_GAP_SECONDS: Final = 0.25
"""Contacts that follow each other sooner are one touch [our choice: a ball that is carried or pushed bounces
on the car]."""

TOUCH_GAP_TICKS: Final = round(TOUCH_GAP_SECONDS * TICKS_PER_SECOND)


def is_new_touch(since: Any) -> Any:
    """Return whether a contact of a car with the ball is a new touch.

    Args:
        since: Ticks since the same car's contact before, whether that one was a new touch or not; a number or
            an array of them.

    Returns:
        bool, or an array of the same shape.
    """
    return since >= TOUCH_GAP_TICKS


class TouchCounter:
    """A counter that tells new touches from those that go on, see `is_new_touch`.

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
