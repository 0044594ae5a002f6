"""Suggest the key that a user meant who misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest_key(name: str, known: Iterable[str], least: float = 0.0) -> str | None:
    """Return the known key that is spelt most like a name.

    Args:
        name: The unknown key.
        known: The keys there are.
        least: Similarity from 0 to 1 below which none is meant.
    """
    return next(iter(get_close_matches(str(name), [*known], 1, least)), None)
