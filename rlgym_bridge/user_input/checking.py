"""Checks of settings against msgspec types, with errors that say what came and what was expected."""

import re
from collections.abc import Callable, Mapping
from reprlib import repr as shorten
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import Meta, inspect

VAST: Final = 10**15
"""Bounds from here on keep out slips and hostile files; errors name them only to values beyond them."""

_COUNTS: Final = ("no", "one", "two", "three", "four")


def expecting(text: str) -> Meta:
    """Return a note for `Annotated`: what errors say was expected, in place of the type's own words."""
    return Meta(extra={"expected": text})


def one_of(*words: str) -> Meta:
    """Return a note for `Annotated[str, ...]`: the words that a text may be."""
    alternatives = "|".join(map(re.escape, words))
    return Meta(pattern=rf"\A(?:{alternatives})\Z", extra={"expected": "one of " + ", ".join(words)})


def check_values(
    values: Mapping[str, Any],
    kind: type,
    error: Callable[[str, str], Exception],
    show: Callable[[Any], str] = shorten,
) -> dict[str, Any]:
    """Return values, as TOML or JSON gives them, as the annotations of a class describe them.

    For the first one that does not fit raise what `error` makes of its key and the problem; `show` makes the
    text of a value.
    """
    types = get_type_hints(kind, include_extras=True)
    checked = {}
    for name, value in values.items():
        try:
            checked[name] = msgspec.convert(value, types[name])
        except (msgspec.ValidationError, OverflowError) as failure:
            came = f"is {show(value)}"
            inner = re.search(r"`\$\.(\w+)`", str(failure))  # the path of what is wrong within
            if inner is not None and isinstance(value, Mapping) and inner[1] in value:
                came = f"has {inner[1]} {show(value[inner[1]])}"
            raise error(name, f"{came}, expected {describe_type(types[name], value)}") from None
    return checked


def describe_type(kind: Any, value: Any = None) -> str:
    """Return in words what a type takes; a vast limit is named only to a value beyond it."""
    return _describe(inspect.type_info(kind), value)


def _describe(info: Any, value: Any) -> str:
    match info:
        case inspect.Metadata(extra={"expected": str(text)}):
            return text
        case inspect.Metadata(type=inner):
            return _describe(inner, value)
        case inspect.IntType() | inspect.FloatType():
            return ("a whole number" if isinstance(info, inspect.IntType) else "a number") + _limits(
                info, value
            )
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "a text"
        case inspect.VarTupleType(item_type=inner, max_length=most):
            at_most = "" if most is None else f", {most} of them at most"
            return "a list of " + _plural(inner, value) + at_most
        case inspect.TupleType(item_types=inner):
            return f"{_COUNTS[len(inner)]} {_plural(inner[0], value)}"
    return str(info)


def _plural(info: inspect.Type, value: Any) -> str:
    if isinstance(info, inspect.IntType | inspect.FloatType):
        return ("whole numbers" if isinstance(info, inspect.IntType) else "numbers") + _limits(info, value)
    return "texts" if isinstance(info, inspect.StrType) else f"values, each {_describe(info, None)}"


def _limits(info: inspect.IntType | inspect.FloatType, value: Any) -> str:
    low, high = info.ge, info.le
    given = value if isinstance(value, list | tuple) else [value]
    numbers = [number for number in given if isinstance(number, int | float)]
    multiple = "" if info.multiple_of is None else f", a multiple of {info.multiple_of}"
    if high is not None and high < VAST:
        return f" from {_digits(low)} to {_digits(high)}{multiple}"
    if high is not None and any(number > high for number in numbers):
        return f" of {high:,} at most"
    if low is not None and low > -VAST:
        return f", {low:g} or more"
    return f", {-high:g} or more" if high is not None and any(number < -high for number in numbers) else ""


def _digits(limit: int | float | None) -> str:
    """Return all digits of a whole limit, and few of another."""
    return f"{limit:,}" if isinstance(limit, int) and abs(limit) >= 1_000_000 else f"{limit:g}"
