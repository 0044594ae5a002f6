"""The records of an MCAP chunk, unpacked within limits and found again behind a damaged one."""

import re
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk

from rlgym_bridge.recording.mcap.channels import log_time
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError

MOST_CHUNK_BYTES: Final = 1 << 25
"""Longest chunk that is read, unpacked; a recorder of ours writes 0.26 MB, other programs up to 4 MB."""

FRAME: Final = struct.Struct("<BQ")  # kind and length of a record, before its content

DAMAGED: Final = (McapError, zstandard.ZstdError, RuntimeError, struct.error, ValueError, MemoryError)
"""Errors of reading what is damaged; lz4 raises RuntimeError."""

RECORD_BYTES: Final = 200  # memory that a message takes beside its content

_MOST_UNPACKED: Final = 100  # times the file's size; a recorded 1v1 has 4.7, one of cars that stand still 11
_SLACK: Final = 1 << 27  # bytes unpacked that any file may have
_HEAD: Final = struct.Struct("<BQHIQQ")  # of a message: FRAME, channel, sequence, log time, publish time
_PERHAPS_MESSAGE: Final = re.compile(rb"\x05(?=...\0{5})", re.DOTALL)  # its kind, and a length below 16 MiB
_MOST_TRIES: Final = 20_000  # places in a chunk at which a message is looked for behind damage
_BEFORE: Final = 8 + 8 + 8 + 4  # bytes of a chunk before the name of its compression
_LENGTH: Final = struct.Struct("<Q")
_MOST_NAME: Final = 16  # bytes of the compression's name
_PERHAPS_CHUNK: Final = re.compile(rb"\x06(?=.{5}\0{3})", re.DOTALL)  # its kind, and a length below 1 TB

CHUNK_HEAD_BYTES: Final = FRAME.size + _BEFORE + 4 + _MOST_NAME + _LENGTH.size
"""Bytes by which the record of a chunk is known, at most."""


class Reading:
    """The bytes that a file of some size may unpack to, and how many parts of it are damaged."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.damaged, self.first_damage = 0, ""
        self._left = _MOST_UNPACKED * size + _SLACK

    def leave_out(self, text: str) -> None:
        """Count a damaged part, which a sentence describes."""
        self.damaged, self.first_damage = self.damaged + 1, self.first_damage or text

    def spend(self, amount: int) -> None:
        """Count bytes that were unpacked; raises RecordingError if they are too many for the file."""
        self._left -= amount
        if self._left < 0:
            raise RecordingError(
                f"{self.path} has {self.size:,} bytes and unpacks to more than {_MOST_UNPACKED} times that "
                f"and {_SLACK:,} bytes, expected less: no match is recorded so, leave this file alone"
            )


def chunk_start(data: bytes) -> int | None:
    """Return where a chunk's record begins in some bytes, known by its lengths; None where none does."""
    for found in _PERHAPS_CHUNK.finditer(data):
        start = found.start() + FRAME.size
        if start <= len(data):
            length = FRAME.unpack_from(data, found.start())[1]
            if length == own_length(data[start : start + CHUNK_HEAD_BYTES]):
                return found.start()
    return None


def own_length(head: bytes) -> int | None:
    """Return the length of a chunk's record by the lengths in its first `CHUNK_HEAD_BYTES`, or None."""
    name = int.from_bytes(head[_BEFORE : _BEFORE + 4], "little")
    at = _BEFORE + 4 + name
    if name > _MOST_NAME or at + _LENGTH.size > len(head):
        return None
    return int(at + _LENGTH.size + _LENGTH.unpack_from(head, at)[0])


def unpack_chunk(content: bytes) -> bytes:
    """Return the records of a chunk, given the content of its own record.

    Raises ValueError if they would be more than `MOST_CHUNK_BYTES`, or have another checksum; one of DAMAGED
    if they cannot be unpacked.
    """
    chunk = Chunk.read(ReadDataStream(BytesIO(content)))
    data = _unpacked(chunk)
    if len(data) > MOST_CHUNK_BYTES:
        raise ValueError(f"a chunk unpacks to more than {MOST_CHUNK_BYTES:,} bytes")
    if chunk.uncompressed_crc and (crc := zlib.crc32(data)) != chunk.uncompressed_crc:
        raise ValueError(f"a chunk has the checksum {crc:08x}, expected {chunk.uncompressed_crc:08x}")
    return data


def _unpacked(chunk: Chunk) -> bytes:
    """Return a chunk's bytes, or the first of them beyond the limit."""
    most = MOST_CHUNK_BYTES + 1
    if chunk.compression == "zstd":
        # A frame's own word of its size goes before `max_output_size`.
        if zstandard.frame_content_size(chunk.data) > MOST_CHUNK_BYTES:
            return bytes(most)
        return zstandard.ZstdDecompressor().decompress(chunk.data, max_output_size=MOST_CHUNK_BYTES)
    if chunk.compression == "lz4":
        unpacked: bytes = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=most)
        return unpacked
    if chunk.compression:
        raise ValueError(f"a chunk is compressed by {chunk.compression!r}, expected zstd or lz4")
    return chunk.data


def chunk_records(
    data: bytes, reading: Reading, where: str
) -> Iterator[Channel | tuple[int, int, int, bytes]]:
    """Yield the channels of a chunk, and its messages: channel, sequence, publish time and content.

    Behind a record whose length cannot be, go on at the next message whose time fits its frame, as in
    recordings of ours. `reading` counts the records, and what is left out, once at most.
    """
    at, told, size, message = 0, False, len(data), int(Opcode.MESSAGE)
    while at < size:
        reading.spend(RECORD_BYTES)
        if (start := at + _HEAD.size) <= size:
            opcode, length, channel, sequence, _, published = _HEAD.unpack_from(data, at)
            end = at + FRAME.size + length
            if opcode == message and start <= end <= size:
                yield channel, sequence, published, data[start:end]
                at = end
                continue
        found, behind = _other_record(data, at)
        if found is not None:
            yield found
        if behind is None:
            if not told:
                reading.leave_out(f"{where}: a record in a chunk, from its byte {at:,} on, is cut or damaged")
            told, behind = True, _next_message(data, at + 1)
        at = behind


def _other_record(data: bytes, at: int) -> tuple[Channel | None, int | None]:
    """Return the channel at a place, and where the channel or schema there ends; None where neither is."""
    start = at + FRAME.size
    opcode, length = FRAME.unpack_from(data, at) if start <= len(data) else (0, 0)
    end = start + length
    if end > len(data) or opcode not in (Opcode.CHANNEL, Opcode.SCHEMA):
        return None, None
    if opcode == Opcode.SCHEMA:
        return None, end
    try:
        return Channel.read(ReadDataStream(BytesIO(data[start:end]))), end
    except DAMAGED:
        return None, None


def _next_message(data: bytes, since: int) -> int:
    """Return where the next message begins that is whole and whose time fits its frame; else the end."""
    for tries, found in enumerate(_PERHAPS_MESSAGE.finditer(data, since)):
        at = found.start()
        if at + _HEAD.size <= len(data):
            _, length, _, sequence, logged, _ = _HEAD.unpack_from(data, at)
            end = at + FRAME.size + length
            if at + _HEAD.size <= end <= len(data) and logged == log_time(sequence):
                return at
        if tries > _MOST_TRIES:
            break
    return len(data)
