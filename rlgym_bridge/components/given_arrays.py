"""Check the arrays that components give, and say what came in their place."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.state import MatchState


def is_number_array(given: object) -> TypeGuard[np.ndarray]:
    """Tell whether something is an array of real numbers or of bools."""
    return isinstance(given, np.ndarray) and given.dtype.kind in "fiub"


def describe_array(given: object) -> str:
    """Describe in words what came in place of an array: its shape and dtype, or its type."""
    if isinstance(given, np.ndarray):
        return f"an array {given.shape} of {given.dtype}"
    return "None" if given is None else f"a {type(given).__name__}"


def check_observations(builder: Any, given: Any, state: MatchState, cars: Sequence[int]) -> np.ndarray:
    """Check what the `build_batch` of an observation builder returned.

    Args:
        builder: The builder.
        given: What it returned.
        state: The state that it was given.
        cars: Observing cars, by their place in the state.

    Returns:
        The same, `(matches, cars, size)`.

    Raises:
        ValueError: It is no array of that shape, or has a number that is not finite.
    """
    name = type(builder).__name__
    if not is_number_array(given) or given.ndim != 3 or given.shape[:2] != (state.matches, len(cars)):
        raise ValueError(
            f"{name} gave {describe_array(given)}, expected an array ({state.matches}, {len(cars)}, size) of "
            f"numbers: matches, cars and numbers of an observation{locate_method(builder, 'build_batch')}"
        )
    # A sum of squares is finite if every number is; one call, where isfinite().all() takes two.
    if not np.isfinite(np.vdot(given, given)) and not np.isfinite(given).all():
        match, car, number = (int(i) for i in np.argwhere(~np.isfinite(given))[0])
        which = f"number {number}{_name_of(builder, state, cars[car], number)}"
        raise ValueError(
            f"{name} gave {given[match, car, number]} as {which} for {state.agents[cars[car]]} in match "
            f"{match}, expected a finite number{locate_method(builder, 'build_batch')}"
        )
    return given


def _name_of(builder: Any, state: MatchState, car: int, number: int) -> str:
    """Return the name of an observation's number in brackets; "" where the builder tells none."""
    try:
        return f" ({builder.names(state.layout.blue, state.layout.orange, car)[number]})"
    except Exception:  # names are a user's own, and another error is being explained
        return ""
