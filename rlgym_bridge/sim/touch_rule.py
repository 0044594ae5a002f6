"""Tells which contacts of a car with the ball are new touches, wherever touches are counted."""

from typing import Any, Final

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
