"""Read files that users and clients name, and write TOML with comments.

Whatever is in a file that is read, only OSError and ValueError are raised.
"""

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import tomli_w

MOST_CHARACTERS: Final = 4 << 20
"""Longest file that is read; files of settings have a thousandth of this."""

_MOST_LEVELS: Final = 100  # of tables in tables: below Python's limit, also for showing a value in a message
_DEEP_NAME: Final = re.compile(
    rf"(?<![\w.-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MOST_LEVELS}}}"
)
"""A dotted name of more levels; tomllib takes a minute for one of 40,000."""

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MOST_BITS: Final = 64  # of a whole number, as TOML has it: Python refuses to show one of 15,000


def read_text(path: Path, most: int = MOST_CHARACTERS) -> str:
    """Read a file of UTF-8 text, with or without a mark in front as Windows' editors put it.

    Raises OSError if it cannot be opened, or is not there; ValueError if it is a folder or a device, has more
    than `most` characters, or is no UTF-8 text.
    """
    try:
        if odd := _odd_kind(path):
            raise ValueError(f"it is {odd}, expected a file")
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(most + 1)
        if len(text) > most:
            raise ValueError(f"it has more than {most:,} characters")
    except UnicodeDecodeError:
        raise ValueError(f"{path} cannot be read: it is no UTF-8 text, save it in that encoding") from None
    except ValueError as error:  # a NUL in the path is one, too
        raise ValueError(f"{path} cannot be read: {error}") from None
    return text


def _odd_kind(path: Path) -> str | None:
    """Return in words the kind of a path that must not be opened; None for a file, or where nothing is."""
    # A pipe of the shell (/dev/stdin, /dev/fd/63) is read; opening any other may wait for ever.
    plain = Path(os.path.normpath(path))
    piped = plain == Path("/dev/stdin") or plain.parent == Path("/dev/fd")
    if not path.exists() or path.is_file() or (path.is_fifo() and piped):
        return None
    if path.is_fifo():
        return "a named pipe"
    return "a folder" if path.is_dir() else "no regular file"


def check_file(path: Path, what: str) -> None:
    """Raise ValueError if a path is a folder, a device or a named pipe, not `what` ("a recording")."""
    odd = _odd_kind(path)
    if odd == "a folder":
        raise ValueError(f"{path} is a folder, expected {what} in it: give its name")
    if odd:
        raise ValueError(f"{path} is {odd}, expected {what}")


def check_size(path: Path, most: int, what: str) -> int:
    """Return a file's size in bytes; raises ValueError as `check_file`, or for more than `most`."""
    check_file(path, what)
    size = path.stat().st_size
    if size > most:
        raise ValueError(
            f"{path} has {size:,} bytes, expected {what} of {most:,} at most: is it the right file?"
        )
    return size


def read_bytes(path: Path, most: int, what: str) -> bytes:
    """Return a file's content; raises ValueError as `check_size`, and reads no more than `most`."""
    check_size(path, most, what)
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:  # a pipe, or it grew meanwhile
        raise ValueError(f"{path} has more than {most:,} bytes, expected {what} of that at most")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raises OSError or ValueError, with its path, as `read_text` and `parse_toml`."""
    text = read_text(path)
    try:
        return parse_toml(text)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as TOML: {error}") from None


def explain_unreadable(error: OSError | ValueError) -> str:
    """Return what an error of `read_text` and its kin says, without the number of the operating system."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}, expected a file that can be read"
    return str(error)


def escape_controls(text: str) -> str:
    """Return a text that changes no terminal: control characters but tabs and ends of lines are spelt out.

    Names in files of strangers may hold sequences that move the cursor, set colours or turn lines around.
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def parse_toml(text: str) -> dict[str, Any]:
    """Return what TOML says.

    Raises ValueError if it is no TOML (the message has line and column), is nested more than 100 levels deep,
    has a whole number of more than 64 bits, or is longer than `MOST_CHARACTERS`.
    """
    if _DEEP_NAME.search(text):
        raise ValueError(f"it is nested more than {_MOST_LEVELS} levels deep")
    return _parse_checked(tomllib.loads, text)  # type: ignore[no-any-return]


def parse_json(
    text: str, parse_constant: Callable[[str], Any] | None = None, unique_keys: bool = False
) -> Any:
    """Return what JSON says; `parse_constant` is called with `NaN`, `Infinity` and `-Infinity`.

    Raises ValueError if it is no JSON, nested more than 100 levels deep, has a whole number of more than 64
    bits, with `unique_keys` a key twice, or is longer than `MOST_CHARACTERS`.
    """
    pairs = _unique if unique_keys else None
    return _parse_checked(
        lambda given: json.loads(given, parse_constant=parse_constant, object_pairs_hook=pairs), text
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"an object has the key {twice!r} twice, expected it once")
    return found


def _parse_checked(parse: Callable[[str], Any], text: str) -> Any:
    if len(text) > MOST_CHARACTERS:  # it may take 50 times its size of memory
        raise ValueError(f"it has more than {MOST_CHARACTERS:,} characters")
    try:
        found = parse(text)
    except RecursionError:
        raise ValueError(f"it is nested more than {_MOST_LEVELS} levels deep") from None
    level = [found]
    for _ in range(_MOST_LEVELS):
        for value in level:
            if type(value) is int and value.bit_length() > _MOST_BITS:
                raise ValueError(f"it has a whole number of {value.bit_length()} bits, expected {_MOST_BITS}")
        tables = [value for value in level if isinstance(value, dict | list)]
        level = [inner for one in tables for inner in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return found
    raise ValueError(f"it is nested more than {_MOST_LEVELS} levels deep")


def toml_line(key: str, value: Any, comment: str = "", width: int = 0) -> str:
    """Return one line of TOML, `key = value`, tables and lists in it included.

    The key is quoted where it has to be, and a comment stands behind at least `width` characters.
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
