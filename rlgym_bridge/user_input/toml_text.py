"""TOML with comments for people: values are written by tomli_w, which has no comments."""

from collections.abc import Mapping
from typing import Any

import tomli_w


def toml_line(key: str, value: Any, comment: str = "", width: int = 0) -> str:
    """Return one line of TOML, `key = value`, tables and lists in it included.

    Args:
        key: Quoted where it has to be.
        value: What TOML can hold.
        comment: Stands after it, where there is one.
        width: Characters before the comment, at least.
    """
    name = tomli_w.dumps({key: 0}).rpartition(" = ")[0]
    line = f"{name} = {toml_value(value)}"
    return f"{line:{width}} # {comment}" if comment else line


def toml_value(value: Any) -> str:
    """Return a value as TOML on one line, digits of whole numbers in threes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(toml_line(name, item) for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if type(value) is int:
        return f"{value:_}"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").removesuffix("\n")
