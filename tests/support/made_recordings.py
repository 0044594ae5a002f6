"""Recordings written by hand, with or without checksums and compression, for tests that spoil them."""

import struct
from collections.abc import Sequence
from io import BytesIO
from typing import Final

from mcap.writer import CompressionType, Writer

from rlgym_bridge.recording.mcap.channels import ENCODINGS, INPUT, INPUTS, PACKETS, PROFILE, log_time

_FRAME: Final = struct.Struct("<BQ")
CHUNK: Final = 6


def recording_bytes(
    contents: Sequence[bytes],
    compression: CompressionType = CompressionType.ZSTD,
    chunk_bytes: int = 1 << 12,
    checksums: bool = True,
) -> bytes:
    """Return the bytes of a recording.

    Args:
        contents: Of the packets, one a frame; after each of them an input follows.
        compression: Of the chunks.
        chunk_bytes: From which a new chunk begins.
        checksums: Whether chunks have them.
    """
    stream = BytesIO()
    writer = Writer(stream, chunk_bytes, compression, enable_crcs=checksums)
    writer.start(PROFILE)
    channels = {name: writer.register_channel(name, ENCODINGS[name[1:]], 0) for name in (PACKETS, INPUTS)}
    taken = INPUT.pack(0, *range(8))
    for frame, content in enumerate(contents):
        for topic, data in ((PACKETS, content), (INPUTS, taken)):
            writer.add_message(channels[topic], log_time(frame), data, frame, frame)
    writer.finish()  # type: ignore[no-untyped-call]
    return stream.getvalue()


def records_of(data: bytes) -> list[tuple[int, int, int]]:
    """Return kind, place and length of each record of a recording that is whole."""
    found, at = [], 8
    while at + _FRAME.size <= len(data):
        opcode, length = _FRAME.unpack_from(data, at)
        found.append((opcode, at, length))
        at += _FRAME.size + length
        if opcode == 2:
            break
    return found
