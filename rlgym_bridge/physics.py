"""Read and write constants of the physics, corrected by recordings or as ranges to train over.

They stand in a TOML file, as multiples of RocketSim's own; `rlgym-bridge compare --fit` writes such files:

    [physics]
    gravity = 1.01
    ball_drag = {value = 1.02, low = 1.00, high = 1.03}

Matches are played with the values; training draws each episode's from low to high.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from rlgym_bridge.user_input.arguments import nearest_key, shorten_text, show_value
from rlgym_bridge.user_input.checking import check_values, expecting
from rlgym_bridge.user_input.text_files import read_toml, toml_line

CONSTANTS: Final = {
    "gravity": 650.0,  # uu/s^2, downwards
    "ball_drag": 0.03,  # share of its velocity that the ball loses in a second
    "ball_world_restitution": 0.6,  # share of the speed that a bounce leaves
    "boost_accel_ground": 991.667,  # uu/s^2
    "boost_accel_air": 1058.333,  # uu/s^2
    "jump_immediate_force": 291.667,  # uu/s at the press of the button
    "jump_accel": 1458.333,  # uu/s^2 while it is held
}
"""Constants that can be changed: names of RocketSim's `MutatorConfig`, with its values [RocketSim 2.2.1]."""

_LEAST, _MOST = 0.01, 100.0  # of a multiple; beyond them nothing that can be played
_Multiple = Annotated[
    float, Meta(ge=_LEAST, le=_MOST), expecting(f"a multiple of RocketSim's own, {_LEAST:g} to {_MOST:g}")
]


class Spread(NamedTuple):
    """A constant as a multiple of RocketSim's own: the best guess, and the range to train over."""

    value: _Multiple
    low: _Multiple
    high: _Multiple


def read_physics(path: str | Path) -> dict[str, Spread]:
    """Read the table [physics] of a TOML file; raises OSError, or ValueError with the file's name."""
    table = read_toml(Path(path))
    try:
        if "physics" not in table:
            raise ValueError("has no table [physics], expected one as `compare --fit` writes it")
        return parse_physics(table["physics"])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_physics(table: object) -> dict[str, Spread]:
    """Return constants from a table as TOML gives it; raises ValueError for a wrong one."""
    if not isinstance(table, Mapping):
        raise ValueError(f"physics is {show_value(table)}, expected a table [physics]")
    found = {}
    for name, given in table.items():
        if name not in CONSTANTS:
            near, known = nearest_key(name, CONSTANTS), ", ".join(CONSTANTS)
            raise ValueError(
                f"{shorten_text(str(name))} in [physics] is no constant; the nearest is {near} (all: {known})"
            )
        found[name] = _spread(name, given)
    return found


def _spread(name: str, given: object) -> Spread:
    parts: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"value": given}
    if unknown := set(parts).difference(Spread._fields):
        raise ValueError(
            f"{name} in [physics] has {shorten_text(', '.join(sorted(unknown)))}, expected value, low, high"
        )
    if "value" not in parts:
        raise ValueError(f"{name} in [physics] has no value, expected value, and low and high for a range")
    checked = check_values(
        parts, Spread, lambda part, problem: ValueError(f"{part} of {name} in [physics] {problem}")
    )
    value = checked["value"]
    one = Spread(value, checked.get("low", value), checked.get("high", value))
    if not one.low <= one.value <= one.high:
        raise ValueError(
            f"{name} in [physics] has value {one.value:g}, low {one.low:g}, high {one.high:g}, expected low, "
            "value and high in order"
        )
    return one


def physics_as_toml(constants: Mapping[str, Spread]) -> str:
    """Return the table [physics], each constant with what it comes to in RocketSim's units."""
    lines = ["[physics]"]
    for name, one in constants.items():
        parts = {part: float(f"{number:.6g}") for part, number in one._asdict().items()}
        low, value, high = (f"{CONSTANTS[name] * part:.6g}" for part in (one.low, one.value, one.high))
        lines.append(
            toml_line(name, parts, f"{value} ({low} to {high}), RocketSim's own {CONSTANTS[name]:g}")
        )
    return "\n".join(lines) + "\n"
