"""Tell which contacts of a car with the ball are new touches, wherever touches are counted."""

from typing import Any, Final

import numpy as np

from rlgym_bridge.game import TICKS_PER_SECOND

TOUCH_GAP_SECONDS: Final = 0.25
"""Contacts that follow each other sooner are one touch [our choice: a ball that is carried or pushed bounces
on the car]."""

TOUCH_GAP_TICKS: Final = round(TOUCH_GAP_SECONDS * TICKS_PER_SECOND)


def is_new_touch(since: Any) -> Any:
    """Return whether a contact of a car with the ball is a new touch: bool, or an array of them.

    `since` are the ticks since the same car's contact before, whether that one was a new touch or not.
    """
    return since >= TOUCH_GAP_TICKS


class TouchCounter:
    """A counter for `(matches, cars)` that tells new touches from those that go on, see `is_new_touch`."""

    def __init__(self, matches: int, cars: int) -> None:
        self._since = np.full((matches, cars), TOUCH_GAP_TICKS)

    def new(self, contacts: np.ndarray, ticks: int) -> np.ndarray:
        """Return which cars began a touch in the latest step, `(matches, cars)` bool as `contacts`."""
        self._since += ticks
        begun: np.ndarray = contacts & is_new_touch(self._since)
        self._since[contacts] = 0
        return begun

    def forget(self, matches: Any) -> None:
        """Begin anew in some matches."""
        self._since[matches] = TOUCH_GAP_TICKS
