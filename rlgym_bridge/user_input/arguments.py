"""Checks of arguments and names that users give, with errors that say what was expected."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Final

from rlgym_bridge.user_input.text_files import escape_controls

_MOST_SHOWN = 200


def shorten_text(text: str, most: int = _MOST_SHOWN) -> str:
    """Return a text of a user for a message: on one line, harmless to a terminal, cut where it is long."""
    shown = escape_controls(text[: most + 1]).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(text) <= most else shown[:most] + "..."


def show_value(value: object) -> str:
    """Return a value as a message shows it, cut where it is long."""
    return shorten_text(repr(value))


def count_of(number: float, thing: str) -> str:
    """Return a number of things in words, without decimals: `1 collector`, `2,000 ticks`."""
    return f"{number:,.0f} {thing}{'' if round(number) == 1 else 's'}"


def check_whole(name: str, value: object, least: int = 0, most: int | None = None, unit: str = "") -> None:
    """Raise ValueError unless it is a whole number, Python's or numpy's, within limits."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not _is_within(value, least, most):
        of = f" of {unit}" if unit else ""
        raise ValueError(f"{name} is {show_value(value)}, expected a whole number{of}, {_range(least, most)}")


def check_number(
    name: str, value: object, least: float = 0.0, most: float | None = None, unit: str = ""
) -> None:
    """Raise ValueError unless it is a real number within limits; without `most` infinity is."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    after = f" {unit}" if unit else ""
    if not real or not _is_within(value, least, most):
        expected = f"{unit or 'a number'}, {least:g} or more" if most is None else _range(least, most) + after
        raise ValueError(f"{name} is {show_value(value)}, expected {expected}")


def check_seed(value: object) -> None:
    """Raise `ValueError` for a seed that is neither a whole number nor None."""
    if value is not None:
        check_whole("seed", value)


def check_list(name: str, value: object, what: str) -> None:
    """Raise ValueError unless it is a list of `what`, a tuple or another collection in order."""
    if not isinstance(value, Collection) or isinstance(value, str | bytes | dict | set):
        raise ValueError(f"{name} is {show_value(value)}, expected a list of {what}")


def _is_within(value: Any, least: float, most: float | None) -> bool:
    return bool(value >= least and (most is None or value <= most))


def _range(least: float, most: float | None) -> str:
    return f"{least:g} or more" if most is None else f"{least:g} to {most:g}"


_ALIKE: Final = 0.6  # similarity from 0 to 1 below which no name is suggested


def nearest_key(name: str, known: Iterable[str], least: float = 0.0) -> str | None:
    """Return the known key that is spelt most like a name; None where all are less alike than `least`."""
    return next(iter(get_close_matches(str(name), [*known], 1, least)), None)


def check_names(option: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError, which has option and nearest name, if an option names what is not known."""
    for name in names:
        if name not in known:
            near = nearest_key(name, known, _ALIKE)
            hint = f"did you mean {near}? " if near else ""
            raise ValueError(
                f"{option} has {str(name)[:_MOST_SHOWN]!r}, {hint}expected some of {', '.join(known)}"
            )
