"""Suggest the key that a user meant who misspelt one, and check names that a user chose."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

_MOST_SHOWN: Final = 200  # letters of a name in a message
_ALIKE: Final = 0.6  # similarity from 0 to 1 below which no name is suggested


def nearest_key(name: str, known: Iterable[str], least: float = 0.0) -> str | None:
    """Return the known key that is spelt most like a name.

    Args:
        name: The unknown key.
        known: The keys there are.
        least: Similarity from 0 to 1 below which none is meant.
    """
    return next(iter(get_close_matches(str(name), [*known], 1, least)), None)


def check_names(option: str, names: Iterable[str], known: Collection[str]) -> None:
    """Check that an option names what there is.

    Args:
        option: Its name, for the error: "--parts".
        names: What the user gave.
        known: The names there are.

    Raises:
        ValueError: A name is unknown; the message has the nearest one.
    """
    for name in names:
        if name not in known:
            near = nearest_key(name, known, _ALIKE)
            hint = f"did you mean {near}? " if near else ""
            raise ValueError(
                f"{option} has {str(name)[:_MOST_SHOWN]!r}, {hint}expected some of {', '.join(known)}"
            )
