"""Check the values of single settings: team sizes, layers, tables; `[my]` among them is the user's own."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from rlgym_bridge.components.ball_ahead import check_seconds
from rlgym_bridge.components.initial_states import parse_initial_states
from rlgym_bridge.game import MOST_TEAM_SIZE
from rlgym_bridge.physics import parse_physics
from rlgym_bridge.policy.files import MOST_WEIGHTS_BYTES
from rlgym_bridge.sim.state_noise import parse_noise
from rlgym_bridge.user_input.arguments import shorten_text, show_value

_EXPECTED: Final = (
    f"two whole numbers from 0 to {MOST_TEAM_SIZE}, cars of blue and of orange; or several sizes: "
    "[[1, 1], [2, 2]], or [[1, 1, 0.7], [2, 2, 0.3]] with their shares of the matches"
)
_SUM_REACH: Final = 1e-6  # of shares that make 1 together
SizeShare = tuple[int, int, float]  # cars of blue and of orange, and their share of the matches


def parse_team_sizes(value: Any) -> tuple[int, int] | tuple[SizeShare, ...]:
    """Return team sizes as TOML gives them, several with a share each; raises ValueError for others."""
    given = f"team_sizes is {show_value(as_lists(value))}"
    if not isinstance(value, list | tuple):
        raise ValueError(f"{given}, expected {_EXPECTED}")
    if not any(isinstance(size, list | tuple) for size in value):
        return _pair(value, given)
    entries = [size if isinstance(size, list | tuple) else [size] for size in value]
    lengths = {len(entry) for entry in entries}
    if lengths not in ({2}, {3}):
        raise ValueError(f"{given}, expected {_EXPECTED}")
    sizes = [_pair(entry[:2], given) for entry in entries]
    for size in sizes:
        if sizes.count(size) > 1:
            raise ValueError(f"{given}, expected {list(size)} in it once")
    shares = [entry[2] for entry in entries] if lengths == {3} else [1 / len(sizes)] * len(sizes)
    if not all(type(share) in (int, float) and 0 < share <= 1 for share in shares):
        raise ValueError(f"{given}, expected shares above 0, 1 together")
    if abs(sum(shares) - 1) > _SUM_REACH:
        raise ValueError(f"{given}, whose shares are {sum(shares):g} together, expected 1")
    if len(sizes) == 1:
        return sizes[0]
    return tuple((*size, float(share)) for size, share in zip(sizes, shares, strict=True))


def count_matches(shares: Sequence[float], matches: int) -> list[int]:
    """Divide matches by shares that make 1 together: whole numbers, the largest rests rounded up."""
    counts = [int(share * matches) for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda part: counts[part] - shares[part] * matches)
    for part in by_rest[: matches - sum(counts)]:
        counts[part] += 1
    return counts


def as_lists(value: Any) -> Any:
    """Return a value of settings as TOML has it: lists in place of tuples."""
    return [as_lists(item) for item in value] if isinstance(value, list | tuple) else value


def name_sizes(sizes: Sequence[tuple[int, int]]) -> str:
    """Return team sizes in words: 1v1, 2v2 and 3v3."""
    names = [f"{blue}v{orange}" for blue, orange in sizes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _pair(size: Sequence[Any], given: str) -> tuple[int, int]:
    if len(size) != 2 or not all(type(cars) is int and 0 <= cars <= MOST_TEAM_SIZE for cars in size):
        raise ValueError(f"{given}, expected {_EXPECTED}")
    if not sum(size):
        raise ValueError(f"{given}, expected one car at least in each size")
    return size[0], size[1]


DEFAULTS: Final = Path(__file__).with_name("config.toml")  # the file of all settings with their defaults


def check_physics(table: object) -> dict[str, Any]:
    """Return the table [physics] with all that it leaves out; raises ValueError for a wrong constant."""
    return {name: one._asdict() for name, one in parse_physics(table).items()}


def check_own(table: Mapping[str, Any]) -> None:
    """Raise ValueError where the table [my] has a value that JSON cannot hold."""
    for name, value in table.items():
        items = value if isinstance(value, list) else [value]
        if not all(
            isinstance(item, bool | int | str) or (isinstance(item, float) and math.isfinite(item))
            for item in items
        ):
            raise ValueError(
                f"{shorten_text(name)} in [my] is {shorten_text(repr(value))}, expected a finite number, a "
                "text, true or false, or a list of these"
            )


def parse_opponents(table: object) -> dict[str, float]:
    """Return shares of matches by opponents; an opponent with a share of 0 is none.

    Raises ValueError where it is no table; an opponent has no name, or a share is no number of 0 to 1.
    """
    if not isinstance(table, Mapping):
        raise ValueError(
            f"opponents is {show_value(table)}, expected a table of shares of the matches: chaser = 0.1"
        )
    for name, share in table.items():
        if not name or "\0" in name:
            raise ValueError(
                f"{show_value(name)} in [opponents] is no name, expected chaser, charger or a folder"
            )
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise ValueError(
                f"{shorten_text(name)} in [opponents] is {show_value(share)}, expected a share of the "
                "matches, 0 to 1"
            )
    return {name: float(share) for name, share in table.items() if share}


def parse_ball_ahead(seconds: Any) -> tuple[float, ...]:
    """Return times ahead, none of an empty list; raises ValueError for no rising seconds."""
    return check_seconds("ball_ahead", seconds) if seconds not in ([], ()) else ()


PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "physics": check_physics, "obs_noise": parse_noise, "initial_states": parse_initial_states,
    "team_sizes": parse_team_sizes, "opponents": parse_opponents, "ball_ahead": parse_ball_ahead,
}  # fmt: skip
"""Readers of the settings that are more than a number, a text or a list of them."""


MOST_WIDTH: Final = 65_536
MOST_LAYERS: Final = 32

Layers = Annotated[tuple[Annotated[int, Meta(ge=1, le=MOST_WIDTH)], ...], Meta(max_length=MOST_LAYERS)]
"""Widths of hidden layers."""

_MOST_WEIGHTS: Final = MOST_WEIGHTS_BYTES // 4


def check_layers(name: str, layers: Sequence[int]) -> None:
    """Raise ValueError, which says `name`, where hidden layers have too many weights for a policy folder."""
    weights = sum(inputs * outputs for inputs, outputs in pairwise(layers))
    if weights > _MOST_WEIGHTS:
        raise ValueError(
            f"{name} is {show_value(list(layers))}, with {weights:,} weights between them, expected "
            f"{_MOST_WEIGHTS:,} at most"
        )
