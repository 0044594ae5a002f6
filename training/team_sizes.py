"""Read the setting `team_sizes`, and divide matches among several sizes."""

from collections.abc import Sequence
from typing import Any, Final

from rlgym_bridge.game import MOST_TEAM_SIZE
from rlgym_bridge.user_input.arguments import show_value

EXPECTED: Final = (
    f"two whole numbers from 0 to {MOST_TEAM_SIZE}, cars of blue and of orange; or several sizes: "
    "[[1, 1], [2, 2]], or [[1, 1, 0.7], [2, 2, 0.3]] with their shares of the matches"
)
_SUM_REACH: Final = 1e-6  # of shares that make 1 together

SizeShare = tuple[int, int, float]
"""Cars of blue and of orange, and their share of the matches."""


def parse_team_sizes(value: Any) -> tuple[int, int] | tuple[SizeShare, ...]:
    """Return team sizes from a value as TOML gives it.

    Returns:
        Cars of blue and orange; or two or more sizes with their shares, which are equal where none is given.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, list | tuple):
        raise ValueError(f"team_sizes is {show_value(value)}, expected {EXPECTED}")
    if not any(isinstance(size, list | tuple) for size in value):
        return _pair(value, value)
    entries = [size if isinstance(size, list | tuple) else [size] for size in value]
    lengths = {len(entry) for entry in entries}
    if lengths not in ({2}, {3}):
        raise ValueError(f"team_sizes is {show_value(as_lists(value))}, expected {EXPECTED}")
    sizes = [_pair(entry[:2], value) for entry in entries]
    for size in sizes:
        if sizes.count(size) > 1:
            raise ValueError(f"team_sizes is {show_value(as_lists(value))}, expected {list(size)} in it once")
    shares = [entry[2] for entry in entries] if lengths == {3} else [1 / len(sizes)] * len(sizes)
    if not all(type(share) in (int, float) and 0 < share <= 1 for share in shares):
        raise ValueError(f"team_sizes is {show_value(as_lists(value))}, expected shares above 0, 1 together")
    if abs(sum(shares) - 1) > _SUM_REACH:
        raise ValueError(
            f"team_sizes is {show_value(as_lists(value))}, whose shares are {sum(shares):g} together, "
            "expected 1"
        )
    if len(sizes) == 1:
        return sizes[0]
    return tuple((*size, float(share)) for size, share in zip(sizes, shares, strict=True))


def count_matches(shares: Sequence[float], matches: int) -> list[int]:
    """Divide matches by shares that make 1 together: whole numbers, the largest rests rounded up.

    Args:
        shares: Of each part.
        matches: How many there are.
    """
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


def _pair(size: Sequence[Any], value: Any) -> tuple[int, int]:
    if len(size) != 2 or not all(type(cars) is int and 0 <= cars <= MOST_TEAM_SIZE for cars in size):
        raise ValueError(f"team_sizes is {show_value(as_lists(value))}, expected {EXPECTED}")
    if not sum(size):
        raise ValueError(
            f"team_sizes is {show_value(as_lists(value))}, expected one car at least in each size"
        )
    return size[0], size[1]
