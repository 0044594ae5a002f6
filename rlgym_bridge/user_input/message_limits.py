"""Limits of RLBot messages, checked before they are decoded.

A flatbuffer may name one of its parts many times: 65 kB of them decode to gigabytes.
"""

import struct
from collections.abc import Mapping
from typing import Final

SHORT_BYTES: Final = 2048
"""A message of a server of this size is not checked: 4v4 takes less, and its parts cannot be many."""

_MOST_PARTS: Final = 2000  # tables, and entries of lists; a match of 4v4 has a hundred
_MOST_BODIES: Final = 256  # of a state that is set, which takes 0.7 ms then; a match has 64 cars at most
_MOST_TEXT: Final = 1 << 18  # bytes of all texts and points, four times the longest message
_POINT_BYTES: Final = 12

_TEXT: Final = "text"
_POINTS: Final = "points"
_Part = str | list["_Part"] | dict[int, "_Part"] | tuple[tuple[int, "_Part"], ...]
"""A field: a text, a list of one kind, or a table by the places of its fields that can be long.

Pairs are a union: parts by their kind, whose number stands in the field before; other kinds have none.
"""

_ENVIRONMENT: Final[_Part] = [{0: _TEXT, 1: _TEXT}]
_BOT: Final[_Part] = {0: _TEXT, 1: _TEXT, 2: _TEXT, 4: _TEXT, 6: _ENVIRONMENT}
_SCRIPT: Final[_Part] = {0: _TEXT, 1: _TEXT, 2: _TEXT, 4: _TEXT, 5: _ENVIRONMENT}
_MATCH: Final[_Part] = {1: _TEXT, 4: _TEXT, 5: [{1: ((2, _BOT),)}], 6: [_SCRIPT]}
_STATE: Final[_Part] = {0: [{}], 1: [{}]}
_PLAYER: Final[_Part] = {10: _TEXT, 14: [_TEXT]}
_DRAWN: Final[_Part] = {1: ((1, {}), (2, {0: _POINTS}), (3, {0: _TEXT}), (4, {0: _TEXT}), (5, {}), (6, {}))}

TO_SERVER: Final[Mapping[int, _Part]] = {3: _MATCH, 5: _STATE, 6: {0: [_DRAWN]}}
"""Messages to a server whose parts can be many, by the numbers of their kinds: a match, a state, drawings."""

FROM_SERVER: Final[Mapping[int, _Part]] = {
    2: {0: [_PLAYER], 2: [{}]}, 3: {0: [{}], 1: [{}]}, 4: _MATCH,
}  # fmt: skip
"""Messages of a server: a packet, the field, the match."""


def kind_of(message: bytes) -> int:
    """Return the number of a message's kind, 0 if it has none; raises ValueError for no message."""
    try:
        root = struct.unpack_from("<I", message)[0]
        at = _field(message, root, 0)
        return message[at] if at else 0
    except (struct.error, IndexError):
        raise ValueError("its parts lie outside of it") from None


def group_of(message: bytes) -> tuple[int, int]:
    """Return id and number of drawings of a `flat.RenderGroup`; raises ValueError if it is none."""
    try:
        group = _target(message, _field(message, struct.unpack_from("<I", message)[0], 1))
        at, drawings = _field(message, group, 1), _field(message, group, 0)
        return (
            struct.unpack_from("<i", message, at)[0] if at else 0,
            _length(message, _target(message, drawings)) if drawings else 0,
        )
    except struct.error:
        raise ValueError("its parts lie outside of it") from None


def check_message(message: bytes, kinds: Mapping[int, _Part]) -> None:
    """Raise ValueError if a message of these kinds decodes to far more than it should, or is none."""
    part = kinds.get(kind_of(message))
    if part is None:
        return
    try:
        root = struct.unpack_from("<I", message)[0]
        at = _field(message, root, 1)
        if at:
            most = _MOST_BODIES if part is _STATE else _MOST_PARTS
            _Counter(message, most).count(_target(message, at), part)
    except struct.error:
        raise ValueError("its parts lie outside of it") from None


def check_from_server(message: bytes) -> None:
    """Check a message of a server, unless it is short; raises ValueError as `check_message`."""
    if len(message) > SHORT_BYTES:
        check_message(message, FROM_SERVER)


class _Counter:
    """Counts the parts of a message as a decoder makes them: one that is named twice counts twice."""

    def __init__(self, message: bytes, most: int) -> None:
        self._message, self._most = message, most
        self._parts = self._text = 0

    def count(self, at: int, part: _Part) -> None:
        """Count what lies at a place."""
        message = self._message
        self._parts += 1
        if part == _TEXT:
            self._text += _length(message, at)
        elif part == _POINTS:
            self._text += _POINT_BYTES * _length(message, at)
        elif isinstance(part, list):
            self._check(_length(message, at))
            for entry in range(_length(message, at)):
                self.count(_target(message, at + 4 + 4 * entry), part[0])
        elif isinstance(part, dict):
            for slot, inner in part.items():
                if not (field := _field(message, at, slot)):
                    continue
                if isinstance(inner, tuple):
                    before = _field(message, at, slot - 1)
                    kind = message[before] if 0 < before < len(message) else 0
                    inner = next((one for number, one in inner if number == kind), "")
                if inner != "":
                    self.count(_target(message, field), inner)
        self._check()

    def _check(self, more: int = 0) -> None:
        if self._parts + more > self._most:
            raise ValueError(f"it has more than {self._most:,} parts")
        if self._text > _MOST_TEXT:
            raise ValueError(f"it has texts of more than {_MOST_TEXT:,} bytes")


def _length(message: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", message, at)[0])


def _target(message: bytes, at: int) -> int:
    return at + _length(message, at)


def _field(message: bytes, table: int, slot: int) -> int:
    """Return where a field of a table lies; 0 where it is left out."""
    fields = table - struct.unpack_from("<i", message, table)[0]
    if fields < 0:
        raise struct.error
    place = 4 + 2 * slot
    if place >= struct.unpack_from("<H", message, fields)[0]:
        return 0
    offset = struct.unpack_from("<H", message, fields + place)[0]
    return table + offset if offset else 0
