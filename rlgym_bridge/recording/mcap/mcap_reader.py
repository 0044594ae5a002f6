"""Read the messages of an MCAP file, as far as it is whole."""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Header, McapRecord, Metadata
from mcap.records import Message as McapMessage
from mcap.stream_reader import breakup_chunk

from rlgym_bridge.recording.mcap.channels import ABOUT, POLICY, PROFILE
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.user_input.text_files import parse_json

MAGIC: Final = b"\x89MCAP0\r\n"
_FRAME: Final = struct.Struct("<BQ")  # kind and length of a record, before its content
_READERS: Final[dict[int, Callable[[ReadDataStream], McapRecord]]] = {
    Opcode.HEADER: Header.read, Opcode.CHANNEL: Channel.read, Opcode.METADATA: Metadata.read,
}  # fmt: skip
_DAMAGED: Final = (McapError, zstandard.ZstdError, struct.error, ValueError, MemoryError)


class Message(NamedTuple):
    """One message.

    Attributes:
        frame: The game's.
        time: When it came or was sent, in ns since 1970.
        content: Its bytes.
    """

    frame: int
    time: int
    content: bytes


@dataclass
class Contents:
    """All of a file.

    Attributes:
        about: What the recorder said of the match.
        policies: The policy.json of each agent id.
        topics: Messages by topic, in the order in which they were written.
        notes: What could not be read: sentences for people.
    """

    about: dict[str, Any] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    topics: dict[str, list[Message]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def check_regular(path: Path) -> None:
    """Check that a path is no folder, and no pipe whose opening may wait for ever.

    Raises:
        RecordingError: It is one.
    """
    if path.is_dir():
        raise RecordingError(f"{path} is a folder, expected a recording in it: give its name")
    check_no_pipe(path)


def check_no_pipe(path: Path) -> None:
    """Check that a file is no named pipe: opening one may wait for ever.

    Raises:
        RecordingError: It is one.
    """
    # A pipe of the shell (/dev/fd/63) has a writer.
    if path.is_fifo() and not path.is_relative_to("/dev"):
        raise RecordingError(f"{path} is a named pipe, expected a file")


def read_records(path: Path, notes: list[str]) -> Iterator[tuple[str, Message] | Metadata]:
    """Yield a file's messages with their topics, and its metadata; what is damaged is left out.

    Args:
        path: The file.
        notes: Is told what is left out, and where it cannot be read on.

    Raises:
        OSError, RecordingError: See `read_contents`.
    """
    check_regular(path)
    size = path.stat().st_size
    if not size:
        raise RecordingError(f"{path} is empty, expected a recording (MCAP)")
    names: dict[int, str] = {}
    waiting: list[McapMessage] = []  # their topics stood in what is damaged, and stand again at the end
    damage: list[str] = []
    with path.open("rb") as file:
        if (magic := file.read(len(MAGIC))) != MAGIC:
            raise RecordingError(f"{path} begins with {magic!r}, expected {MAGIC!r}: it is no MCAP file")
        for record in _records(file, size, damage, notes):
            if isinstance(record, Header) and record.profile != PROFILE:
                raise RecordingError(
                    f"{path} has the MCAP profile {record.profile!r}, expected {PROFILE!r}: another "
                    "program recorded it"
                )
            if isinstance(record, Channel):
                names[record.id] = record.topic
            elif isinstance(record, Metadata):
                yield record
            elif isinstance(record, McapMessage) and record.channel_id in names:
                yield names[record.channel_id], _message(record)
            elif isinstance(record, McapMessage):
                waiting.append(record)
    named = [one for one in waiting if one.channel_id in names]
    yield from ((names[one.channel_id], _message(one)) for one in named)
    if damage:
        unnamed = len(waiting) - len(named)
        also = f", and {unnamed:,} messages that need them" if unnamed else ""
        notes.append(
            f"parts of {path.name} that are damaged and left out: {len(damage)}{also} (the first {damage[0]})"
        )


def _message(record: McapMessage) -> Message:
    return Message(record.sequence, record.publish_time, record.data)


def _records(file: BinaryIO, size: int, damage: list[str], notes: list[str]) -> Iterator[McapRecord]:
    """Yield the records of the kinds that matter, from behind the magic bytes on.

    Args:
        file: It.
        size: Its bytes.
        damage: Is told which records cannot be read.
        notes: Is told where it cannot be read on.
    """
    try:
        for opcode, content in _framed(file, size):
            try:
                records = _parsed(opcode, content)
            except _DAMAGED as error:
                damage.append(f"before byte {file.tell():,}: {type(error).__name__}: {error}")
            else:
                yield from records
    except _BrokenOff as error:
        notes.append(
            f"{Path(file.name).name} can be read up to byte {file.tell():,} of {size:,} alone ({error}): was "
            "its recorder killed, or the file cut or damaged?"
        )


class _BrokenOff(Exception):
    """The start of the next record cannot be found, or the end is missing."""


def _framed(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of each record, damaged or not.

    Raises:
        _BrokenOff: See there.
    """
    opcode = 0
    while opcode != Opcode.FOOTER:
        if len(head := file.read(_FRAME.size)) < _FRAME.size:
            raise _BrokenOff("the end is missing")
        opcode, length = _FRAME.unpack(head)
        if opcode not in list(Opcode) or length > size - file.tell():
            raise _BrokenOff(f"a record of kind {opcode} and {length:,} bytes")
        yield opcode, file.read(length)
    if (end := file.read(len(MAGIC))) != MAGIC:
        raise _BrokenOff(f"it ends with {end!r}, expected {MAGIC!r}")


def _parsed(opcode: int, content: bytes) -> Sequence[McapRecord]:
    """Return what a record holds; nothing where its kind does not matter.

    Raises:
        One of _DAMAGED: It cannot be read.
    """
    stream = ReadDataStream(BytesIO(content))
    if opcode == Opcode.CHUNK:
        return breakup_chunk(Chunk.read(stream), validate_crc=True)
    return [_READERS[opcode](stream)] if opcode in _READERS else []


def read_contents(path: Path) -> Contents:
    """Read a file from beginning to end; of one that ends early, or is damaged, what is whole.

    Raises:
        OSError: It cannot be opened.
        RecordingError: It is empty, no MCAP file, not one of ours, or without a message that is whole.
    """
    found = Contents()
    for one in read_records(path, found.notes):
        if isinstance(one, Metadata):
            _take(one, found)
        else:
            topic, message = one
            found.topics.setdefault(topic, []).append(message)
    if not found.topics:
        why = f": {found.notes[0]}" if found.notes else ""
        raise RecordingError(f"{path} holds no message of a match{why}")
    return found


def _take(record: Metadata, found: Contents) -> None:
    if record.name == ABOUT:
        for name, text in record.metadata.items():
            try:
                found.about[name] = parse_json(text)
            except ValueError as error:
                found.notes.append(f"what the recorder said of the match cannot be read: {name}: {error}")
    elif record.name.startswith(POLICY):
        found.policies[record.name.removeprefix(POLICY)] = record.metadata.get("policy.json", "")
