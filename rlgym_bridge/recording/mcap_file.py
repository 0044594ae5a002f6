"""What an MCAP file holds, message by message, as far as it can be read."""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import zstandard
from mcap.exceptions import McapError
from mcap.records import Channel, Header, Metadata
from mcap.records import Message as McapMessage
from mcap.stream_reader import StreamReader

from rlgym_bridge.recording.channels import ABOUT, POLICY, PROFILE
from rlgym_bridge.recording.writer import RecordingError

MAGIC: Final = b"\x89MCAP0\r\n"


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


def read_records(path: Path, notes: list[str]) -> Iterator[tuple[str, Message] | Metadata]:
    """Yield a file's messages with their topics, and its metadata; one that is damaged, up to there.

    Args:
        path: The file.
        notes: Is told where it cannot be read on.

    Raises:
        OSError, RecordingError: See `read_contents`.
    """
    size = path.stat().st_size
    if not size:
        raise RecordingError(f"{path} is empty, expected a recording (MCAP)")
    names: dict[int, str] = {}
    with path.open("rb") as file:
        if (magic := file.read(len(MAGIC))) != MAGIC:
            raise RecordingError(f"{path} begins with {magic!r}, expected {MAGIC!r}: it is no MCAP file")
        file.seek(0)
        try:
            # A damaged length must not ask for all the memory there is.
            for record in StreamReader(file, validate_crcs=True, record_size_limit=1 << 30).records:
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
                    message = Message(record.sequence, record.publish_time, record.data)
                    yield names[record.channel_id], message
        except (McapError, zstandard.ZstdError, struct.error, ValueError, MemoryError) as error:
            notes.append(
                f"{path.name} can be read up to byte {file.tell():,} of {size:,} alone "
                f"({type(error).__name__}: {error}): was its recorder killed, or the file cut or damaged?"
            )


def read_contents(path: Path) -> Contents:
    """Read a file from beginning to end; one that ends early, or is damaged, up to there.

    Raises:
        OSError: It cannot be opened.
        RecordingError: It is empty, no MCAP file, not one of ours, or damaged before the first message.
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
        found.about = {name: json.loads(text) for name, text in record.metadata.items()}
    elif record.name.startswith(POLICY):
        found.policies[record.name.removeprefix(POLICY)] = record.metadata.get("policy.json", "")
