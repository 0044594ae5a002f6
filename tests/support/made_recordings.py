"""Recordings written by hand, with or without checksums and compression, for tests that spoil them."""

import struct
from collections.abc import Sequence
from io import BytesIO
from typing import Final

import numpy as np
from mcap.writer import CompressionType, Writer
from rlbot import flat

from rlgym_bridge.recording.mcap.channels import (
    ABOUT,
    COMMS,
    DRAWINGS,
    ENCODINGS,
    FIELD_INFO,
    INPUT,
    INPUTS,
    MATCH_CONFIGURATION,
    PACKETS,
    PROFILE,
    STATE,
    UNREPEATABLE,
    Decision,
    log_time,
)
from rlgym_bridge.server.game.packer import field_info

_FRAME: Final = struct.Struct("<BQ")
CHUNK: Final = 6


def recording_bytes(
    contents: Sequence[bytes],
    compression: CompressionType = CompressionType.ZSTD,
    chunk_bytes: int = 1 << 12,
    checksums: bool = True,
) -> bytes:
    """Return the bytes of a recording of packets, one a frame, each of which an input follows."""
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


def of_every_topic(packets: Sequence[bytes], drawing: bytes) -> bytes:
    """Return the bytes of a recording without checksums that has each kind of message, and metadata."""
    stream = BytesIO()
    writer = Writer(stream, 1 << 12, CompressionType.NONE, enable_crcs=False)
    writer.start(PROFILE)
    writer.add_metadata(ABOUT, {"seed": "1", "pace": '"lockstep"'})
    writer.add_metadata(UNREPEATABLE, {"unrepeatable": "[]"})
    ones = np.ones(1, np.float32)
    decision = Decision(1, np.zeros(1, np.int32), np.ones((1, 3)), np.ones((1, 2)), ones, ones, ones)
    contents = {
        FIELD_INFO: flat.CorePacket(field_info()).pack(),
        MATCH_CONFIGURATION: flat.CorePacket(flat.MatchConfiguration()).pack(), DRAWINGS: drawing,
        COMMS: flat.CorePacket(flat.MatchComm(0, 0, False, "gg", b"plan")).pack(),
        INPUTS: INPUT.pack(0, *range(8)), STATE: b"{}", "/agents/a/b/arrivals": b"",
        "/agents/a/b/inputs": INPUT.pack(0, *range(8)), "/agents/a/b/decisions": decision.to_bytes(),
    }  # fmt: skip
    for topic, content in (*contents.items(), *((PACKETS, one) for one in packets)):
        encoding = ENCODINGS[topic.rpartition("/")[2]]
        frame = packets.index(content) + 1 if topic == PACKETS else 1
        writer.add_message(
            writer.register_channel(topic, encoding, 0), log_time(frame), content, frame, frame
        )
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
