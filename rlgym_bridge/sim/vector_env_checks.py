"""Check the settings of a `VectorEnv` before anything is made of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.game import HITBOX_NAMES, MOST_TEAM_SIZE
from rlgym_bridge.physics import Spread
from rlgym_bridge.user_input.arguments import check_number, check_whole, show_value

_MOST_DELAY_NOISE: Final = 1e9  # ticks; keeps out infinity


def check_settings(
    matches: int, team_sizes: tuple[int, int], tick_skip: int | None, action_delay: int | tuple[int, int],
    delay_noise: float, own_delays: np.ndarray | None, hitbox: int | Sequence[int],
    constants: Mapping[str, Spread] | None, seed: int,
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, ...]]:  # fmt: skip
    """Check the settings of the same names that `VectorEnv` was given; `own_delays` is `(matches, cars)`.

    Returns:
        Cars of blue and orange, the least and most ticks of action delay, and the hitboxes.

    Raises:
        ValueError: A setting is out of range; the message says what it is and what was expected.
    """
    ticks = 1 if tick_skip is None else tick_skip
    for name, number, least in (("matches", matches, 1), ("tick_skip", ticks, 1), ("seed", seed, 0)):
        check_whole(name, number, least)
    if not _is_pair(team_sizes) or not 1 <= max(team_sizes) <= MOST_TEAM_SIZE:
        raise ValueError(
            f"team_sizes is {show_value(team_sizes)}, expected (blue, orange), 0 to 4 cars each and one "
            "at least"
        )
    delays: Any = (action_delay, action_delay) if _is_whole(action_delay) else action_delay
    if not _is_pair(delays) or delays[0] > delays[1]:
        raise ValueError(
            f"action_delay is {show_value(action_delay)}, expected ticks, 0 or more; or a pair of them, "
            "(least, most)"
        )
    boxes: Any = tuple(hitbox) if isinstance(hitbox, list | tuple) else (hitbox,)
    if not boxes or not all(_is_whole(box) and box < len(HITBOX_NAMES) for box in boxes):
        numbers = ", ".join(f"{number} {name}" for number, name in enumerate(HITBOX_NAMES))
        raise ValueError(
            f"hitbox is {show_value(hitbox)}, expected the number of one, or a list of them: {numbers}"
        )
    spreads = list(constants.values()) if isinstance(constants, Mapping) else [constants]
    if constants is not None and not all(isinstance(spread, Spread) for spread in spreads):
        raise ValueError(
            f"constants is {show_value(constants)}, expected rlgym_bridge.physics.Spread by name, as "
            "parse_physics "
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
            f"own_delays is {show_value(own_delays)}, expected an array {expected} of whole ticks, 0 or "
            "more, or -1"
        )
    check_number("delay_noise", delay_noise, most=_MOST_DELAY_NOISE, unit="ticks")
    return (team_sizes[0], team_sizes[1]), (delays[0], delays[1]), boxes  # a file gives lists


def _is_whole(value: object, least: int = 0) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def _is_pair(value: object) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(_is_whole, value))
