"""Read the messages of an MCAP file, as far as it is whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Channel, Header, McapRecord, Metadata

from rlgym_bridge.recording.mcap import mcap_chunks
from rlgym_bridge.recording.mcap.channels import ABOUT, POLICY, PROFILE, UNREPEATABLE
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.user_input.text_files import check_size, parse_json

MAGIC: Final = b"\x89MCAP0\r\n"
MOST_FILE_BYTES: Final = 1 << 33  # longest recording that is read: twice what a recorder keeps in its parts

_MOST_RECORD_BYTES: Final = 1 << 26
_MOST_ABOUT: Final = 1 << 18  # characters; they may take 300 times that of memory
_SEARCHED: Final = 1 << 12  # bytes that are looked at first for a chunk behind damage
_MOST_SEARCHED: Final = 1 << 20  # bytes that are looked at together
_READERS: Final[dict[int, Callable[[ReadDataStream], McapRecord]]] = {
    Opcode.HEADER: Header.read, Opcode.CHANNEL: Channel.read, Opcode.METADATA: Metadata.read,
}  # fmt: skip


_Numbered = tuple[int, int, int, bytes]  # a message behind the number of its channel
_new: Final = tuple.__new__  # `Message._make` takes three times as long


class Message(NamedTuple):
    """One message."""

    frame: int  # the game's
    time: int  # when it came or was sent, in ns since 1970
    content: bytes  # its bytes


@dataclass
class Contents:
    """All of a file."""

    about: dict[str, Any] = field(default_factory=dict)  # what the recorder said of the match
    policies: dict[str, str] = field(default_factory=dict)  # the policy.json of each agent id
    # messages by topic, in the order in which they were written
    topics: dict[str, list[Message]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what could not be read: sentences for people
    about_characters: int = 0  # characters of what the recorder said


def read_records(path: Path, notes: list[str]) -> Iterator[tuple[str, Message] | Metadata]:
    """Yield a file's messages with their topics, and its metadata; `notes` get what is left out.

    Raises OSError, RecordingError as `read_contents`.
    """
    try:
        size = check_size(path, MOST_FILE_BYTES, "a recording")
    except ValueError as error:
        raise RecordingError(str(error)) from None
    if not size:
        raise RecordingError(f"{path} is empty, expected a recording (MCAP)")
    names: dict[int, str] = {}
    waiting: list[_Numbered] = []  # their topics stood in what is damaged, and stand again at the end
    reading = mcap_chunks.Reading(path, size)
    with path.open("rb") as file:
        if (magic := file.read(len(MAGIC))) != MAGIC:
            raise RecordingError(f"{path} begins with {magic!r}, expected {MAGIC!r}: it is no MCAP file")
        for record in _records(file, reading, notes):
            if isinstance(record, tuple):  # a message, as most are
                if (name := names.get(record[0])) is None:
                    waiting.append(record)
                else:
                    yield name, _new(Message, record[1:])
            elif isinstance(record, Header) and record.profile != PROFILE:
                raise RecordingError(
                    f"{path} has the MCAP profile {record.profile!r}, expected {PROFILE!r}: another "
                    "program recorded it"
                )
            elif isinstance(record, Channel):
                names[record.id] = record.topic
            elif isinstance(record, Metadata):
                yield record
    named = [one for one in waiting if one[0] in names]
    yield from ((names[one[0]], Message._make(one[1:])) for one in named)
    if reading.damaged:
        unnamed = len(waiting) - len(named)
        also = f", and {unnamed:,} messages that need them" if unnamed else ""
        notes.append(
            f"parts of {path.name} that are damaged and left out: {reading.damaged:,}{also} (the first "
            f"{reading.first_damage})"
        )


def _records(
    file: BinaryIO, reading: mcap_chunks.Reading, notes: list[str]
) -> Iterator[McapRecord | _Numbered]:
    """Yield the records that matter; `reading` counts those that cannot be read, `notes` get an early end."""
    try:
        for opcode, content in _framed(file, reading):
            where = f"before byte {file.tell():,}"
            try:
                if opcode == Opcode.CHUNK:
                    data = mcap_chunks.unpack_chunk(content)
                    reading.spend(len(data))
                    yield from mcap_chunks.chunk_records(data, reading, where)
                elif opcode in _READERS:
                    yield _READERS[opcode](ReadDataStream(BytesIO(content)))
            except RecordingError:  # which is a ValueError
                raise
            except mcap_chunks.DAMAGED as error:
                reading.leave_out(f"{where}: {type(error).__name__}: {error}")
    except _BrokenOff as error:
        notes.append(
            f"{Path(file.name).name} can be read up to byte {file.tell():,} of {reading.size:,} alone "
            f"({error}): was its recorder killed, or the file cut or damaged?"
        )


class _BrokenOff(Exception):
    """The start of the next record cannot be found, or the end is missing."""


def _framed(file: BinaryIO, reading: mcap_chunks.Reading) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of each record; behind a wrong length go on at the next chunk."""
    opcode = 0
    while opcode != Opcode.FOOTER:
        start = file.tell()
        if len(head := file.read(mcap_chunks.FRAME.size)) < mcap_chunks.FRAME.size:
            raise _BrokenOff("the end is missing")
        opcode, length = mcap_chunks.FRAME.unpack(head)
        content = _content(file, opcode, length, reading.size - file.tell())
        if content is not None:
            yield opcode, content
            continue
        found = _find_chunk(file, start + 1)
        if found is None:
            file.seek(start + mcap_chunks.FRAME.size)
            raise _BrokenOff(f"a record of kind {opcode} and {length:,} bytes")
        reading.leave_out(
            f"before byte {found:,}: a record of kind {opcode} and {length:,} bytes that begins at {start:,}"
        )
        opcode = 0
        file.seek(found)
    if (end := file.read(len(MAGIC))) != MAGIC:
        raise _BrokenOff(f"it ends with {end!r}, expected {MAGIC!r}")


def _content(file: BinaryIO, opcode: int, length: int, left: int) -> bytes | None:
    """Return a record's content; None if its length is wrong. `left` are the file's bytes from here on."""
    if opcode == Opcode.CHUNK:  # which has two lengths; where they differ, that of its data
        start = file.tell()
        own = mcap_chunks.own_length(file.read(mcap_chunks.CHUNK_HEAD_BYTES))
        file.seek(start)
        length = length if own is None else own
        return file.read(length) if length <= min(left, _MOST_RECORD_BYTES) and own is not None else None
    if opcode not in list(Opcode) or length > min(left, _MOST_RECORD_BYTES):
        return None
    content = bytearray()
    for piece in _pieces(file, length):
        if mcap_chunks.chunk_start(bytes(content[-mcap_chunks.CHUNK_HEAD_BYTES :]) + piece) is not None:
            return None  # it runs into the next chunk
        content += piece
    return bytes(content)


def _pieces(file: BinaryIO, length: int | None = None) -> Iterator[bytes]:
    """Yield what follows in a file in pieces, small ones first, of some bytes or to the end.

    A hostile file has a chunk every few bytes: not much is read for nothing.
    """
    left, most = length, _SEARCHED
    while piece := file.read(most if left is None else min(most, left)):
        yield piece
        left = None if left is None else left - len(piece)
        most = min(4 * most, _MOST_SEARCHED)


def _find_chunk(file: BinaryIO, since: int) -> int | None:
    """Return where the next chunk of a file begins; None where there is none."""
    file.seek(since)
    kept = b""
    for piece in _pieces(file):
        data = kept + piece
        found = mcap_chunks.chunk_start(data)
        if found is not None:
            return file.tell() - len(data) + found
        kept = data[-mcap_chunks.CHUNK_HEAD_BYTES :]
    return None


def read_contents(path: Path) -> Contents:
    """Read a file from beginning to end; of one that ends early, or is damaged, what is whole.

    Raises OSError if it cannot be opened; RecordingError if it is empty, no MCAP file, not one of ours, or
    without a message that is whole.
    """
    found = Contents()
    for one in read_records(path, found.notes):
        if isinstance(one, Metadata):
            _take(one, found)
        else:
            found.topics.setdefault(one[0], []).append(one[1])
    if not found.topics:
        why = f": {found.notes[0]}" if found.notes else ""
        raise RecordingError(f"{path} holds no message of a match{why}")
    return found


def _take(record: Metadata, found: Contents) -> None:
    if record.name in (ABOUT, UNREPEATABLE):
        found.about_characters += sum(map(len, record.metadata.values()))
        if found.about_characters > _MOST_ABOUT:
            found.notes.append(f"what the recorder said has more than {_MOST_ABOUT:,} characters: left out")
            return
        for name, text in record.metadata.items():
            try:
                found.about[name] = parse_json(text)
            except ValueError as error:
                found.notes.append(f"what the recorder said of the match cannot be read: {name}: {error}")
    elif record.name.startswith(POLICY):
        found.policies[record.name.removeprefix(POLICY)] = record.metadata.get("policy.json", "")
