"""Check the settings that are tables; `[my]` among them is the user's own."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.components.beginnings import parse_beginnings
from rlgym_bridge.physics import parse_physics
from rlgym_bridge.sim.state_noise import parse_noise
from rlgym_bridge.training.team_sizes import parse_team_sizes
from rlgym_bridge.user_input.arguments import shorten_text, show_value

DEFAULTS: Final = Path(__file__).with_name("config.toml")
"""The file of all settings with their defaults."""


def check_physics(table: object) -> dict[str, Any]:
    """Return the table [physics] with all that its constants leave out.

    Raises:
        ValueError: A constant is not as it should be.
    """
    return {name: one._asdict() for name, one in parse_physics(table).items()}


def check_own(table: Mapping[str, Any]) -> None:
    """Make sure that a policy folder can record the table [my].

    Raises:
        ValueError: A value is one that JSON cannot hold.
    """
    for name, value in table.items():
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, bool | int | str) or _is_finite(item) for item in items):
            raise ValueError(
                f"{shorten_text(name)} in [my] is {shorten_text(repr(value))}, expected a finite number, a "
                "text, true or false, or a list of these"
            )


def parse_rivals(table: object) -> dict[str, float]:
    """Return shares of matches by rivals; a rival with a share of 0 is none.

    Raises:
        ValueError: It is no table; a rival has no name, or a share is no number of 0 to 1.
    """
    if not isinstance(table, Mapping):
        raise ValueError(
            f"rivals is {show_value(table)}, expected a table [rivals] with a share of the matches for each: "
            "chaser = 0.1"
        )
    for name, share in table.items():
        if not name or "\0" in name:
            raise ValueError(
                f"{show_value(name)} in [rivals] is no name, expected chaser, charger or a folder"
            )
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise ValueError(
                f"{shorten_text(name)} in [rivals] is {show_value(share)}, expected a share of the matches, "
                "0 to 1"
            )
    return {name: float(share) for name, share in table.items() if share}


def _is_finite(value: Any) -> bool:
    """Tell whether a value is a number that JSON can hold."""
    return isinstance(value, float) and math.isfinite(value)


PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "physics": check_physics, "obs_noise": parse_noise, "beginnings": parse_beginnings,
    "team_sizes": parse_team_sizes, "rivals": parse_rivals,
}  # fmt: skip
"""Readers of the settings that are more than a number, a text or a list of them."""
