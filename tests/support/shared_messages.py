"""Flatbuffers that name one part many times, as no packer of RLBot writes them."""

import struct
from dataclasses import dataclass, field


@dataclass(eq=False)
class Words:
    """A text."""

    text: str


@dataclass(eq=False)
class Many:
    """A list that names one part again and again."""

    part: "Words | Many | Fields"
    count: int


@dataclass(eq=False)
class Fields:
    """A table: a number or a part for each of its places."""

    fields: "dict[int, int | Words | Many | Fields]" = field(default_factory=dict)


Part = Words | Many | Fields


def _order(root: Part) -> list[Part]:
    """Return all parts, each behind all that name it."""
    found: list[Part] = []

    def visit(part: Part) -> None:
        if any(part is known for known in found):
            return
        inner = [part.part] if isinstance(part, Many) else list(getattr(part, "fields", {}).values())
        for one in inner:
            if not isinstance(one, int):
                visit(one)
        found.append(part)

    visit(root)
    return found[::-1]


def packed(root: Fields) -> bytes:
    """Return the bytes of a flatbuffer."""
    places: dict[int, int] = {}
    end = 4
    for part in _order(root):
        slots = max(part.fields, default=-1) + 1 if isinstance(part, Fields) else 0
        head = -(-(4 + 2 * slots) // 4) * 4 if isinstance(part, Fields) else 0
        places[id(part)] = end + head
        size = len(part.text.encode()) + 1 if isinstance(part, Words) else 4 * (
            part.count if isinstance(part, Many) else len(part.fields)
        )  # fmt: skip
        end += head + 4 + -(-size // 4) * 4
    data = bytearray(end)
    struct.pack_into("<I", data, 0, places[id(root)])
    for part in _order(root):
        at = places[id(part)]
        if isinstance(part, Words):
            text = part.text.encode()
            struct.pack_into(f"<I{len(text)}s", data, at, len(text), text)
        elif isinstance(part, Many):
            target = places[id(part.part)]
            offsets = (target - (at + 4 + 4 * entry) for entry in range(part.count))
            struct.pack_into(f"<I{part.count}I", data, at, part.count, *offsets)
        else:
            _write_table(data, at, part, places)
    return bytes(data)


def _write_table(data: bytearray, at: int, table: Fields, places: dict[int, int]) -> None:
    slots = max(table.fields, default=-1) + 1
    start = at - -(-(4 + 2 * slots) // 4) * 4
    struct.pack_into("<HH", data, start, 4 + 2 * slots, 4 + 4 * len(table.fields))
    struct.pack_into("<i", data, at, at - start)
    for number, (slot, value) in enumerate(table.fields.items()):
        place = at + 4 + 4 * number
        struct.pack_into("<H", data, start + 4 + 2 * slot, place - at)
        number_or_offset = value if isinstance(value, int) else places[id(value)] - place
        struct.pack_into("<I", data, place, number_or_offset)


def match_bomb(kind: int, count: int) -> bytes:
    """Return a message with a match whose scripts are one, `count` times, with as many variables.

    Args:
        kind: Number of a match among the messages of its direction: 3 to a server, 4 from one.
        count: How many.
    """
    word = Words("x")
    variables = Many(Fields({0: Words("n" * count), 1: word}), count)
    script = Fields({0: word, 1: word, 2: word, 4: word, 5: variables})
    match = Fields({1: word, 4: word, 5: Many(Fields(), 0), 6: Many(script, count)})
    return packed(Fields({0: kind, 1: match}))
