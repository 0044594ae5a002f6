"""Check the settings of a `VectorEnv` before anything is made of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlgym_bridge.game import HITBOX_NAMES, MOST_TEAM_SIZE
from rlgym_bridge.physics import Spread


def check_settings(
    matches: int, team_sizes: tuple[int, int], tick_skip: int, action_delay: int | tuple[int, int],
    delay_noise: float, own_delays: np.ndarray | None, hitbox: int | Sequence[int],
    constants: Mapping[str, Spread] | None, seed: int,
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, ...]]:  # fmt: skip
    """Check the settings of the same names that `VectorEnv` was given; `own_delays` is `(matches, cars)`.

    Returns:
        Cars of blue and orange, the least and most ticks of action delay, and the hitboxes.

    Raises:
        ValueError: A setting is out of range; the message says what it is and what was expected.
    """
    for name, number, least in (("matches", matches, 1), ("tick_skip", tick_skip, 1), ("seed", seed, 0)):
        check_whole(name, number, least)
    if not _is_pair(team_sizes) or not 1 <= max(team_sizes) <= MOST_TEAM_SIZE:
        raise ValueError(
            f"team_sizes is {team_sizes!r}, expected (blue, orange), 0 to 4 cars each and one at least"
        )
    delays: Any = (action_delay, action_delay) if _is_whole(action_delay) else action_delay
    if not _is_pair(delays) or delays[0] > delays[1]:
        raise ValueError(
            f"action_delay is {action_delay!r}, expected ticks, 0 or more; or least and most of them"
        )
    boxes: Any = tuple(hitbox) if isinstance(hitbox, list | tuple) else (hitbox,)
    if not boxes or not all(_is_whole(box) and box < len(HITBOX_NAMES) for box in boxes):
        numbers = ", ".join(f"{number} {name}" for number, name in enumerate(HITBOX_NAMES))
        raise ValueError(f"hitbox is {hitbox!r}, expected the number of one, or a list of them: {numbers}")
    spreads = list(constants.values()) if isinstance(constants, Mapping) else [constants]
    if constants is not None and not all(isinstance(spread, Spread) for spread in spreads):
        raise ValueError(
            f"constants is {constants}, expected rlgym_bridge.physics.Spread by name, as parse_physics "
            "makes them"
        )
    expected = (matches, sum(team_sizes))
    if own_delays is not None and (
        not isinstance(own_delays, np.ndarray)
        or own_delays.shape != expected
        or own_delays.dtype.kind not in "iu"
        or own_delays.min() < -1
    ):
        raise ValueError(
            f"own_delays is {own_delays}, expected an array {expected} of whole ticks, 0 or more, or -1"
        )
    if not isinstance(delay_noise, int | float | np.number) or not 0 <= delay_noise < np.inf:
        raise ValueError(f"delay_noise is {delay_noise!r}, expected ticks, 0 or more")
    return (team_sizes[0], team_sizes[1]), (delays[0], delays[1]), boxes  # a file gives lists


def _is_whole(value: object, least: int = 0) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def check_whole(name: str, value: object, least: int = 0) -> None:
    """Check that a setting is a whole number.

    Raises:
        ValueError: It is none, or below `least`.
    """
    if not _is_whole(value, least):
        raise ValueError(f"{name} is {value!r}, expected a whole number, {least} or more")


def _is_pair(value: object) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(_is_whole, value))
