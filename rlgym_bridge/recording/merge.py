"""The server's recording of a match and those of its agents become one file."""

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcap.records import Metadata
from mcap.writer import Writer

from rlgym_bridge.recording.channels import (
    ABOUT,
    AGENTS,
    ENCODINGS,
    FIELD_INFO,
    MATCH_CONFIGURATION,
    PACKETS,
    PROFILE,
    log_time,
)
from rlgym_bridge.recording.mcap_file import Message, read_records
from rlgym_bridge.recording.writer import CHUNK_BYTES, RecordingError

Entry = tuple[str, Message] | Metadata


def merge(path: Path, parts: Sequence[Path]) -> list[str]:
    """Put the agents' recordings into the server's, ordered by frame, and remove those that were read whole.

    Where the server's has the packets, an agent's are reduced to when they came.

    Args:
        path: The server's; made of the agents' alone where it is not there.
        parts: The agents'; those that are missing or cannot be read are left out.

    Returns:
        What could not be read: sentences for people.

    Raises:
        OSError: The new file cannot be written; the old ones stay.
    """
    notes: list[str] = []
    has_packets = path.is_file()
    sources = [one for one in ([path] if has_packets else []) + list(parts) if one.is_file()]
    if not sources:  # the match never began
        return notes
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("wb") as file:
        writer = Writer(file, CHUNK_BYTES)
        writer.start(PROFILE)
        channels: dict[str, int] = {}
        told: set[str] = set()
        every = [_entries(source, number, notes) for number, source in enumerate(sources)]
        for _, number, entry in heapq.merge(*every, key=lambda one: one[0]):
            if isinstance(entry, Metadata):
                if entry.name not in told and (number == 0 or entry.name != ABOUT):
                    told.add(entry.name)
                    writer.add_metadata(entry.name, entry.metadata)
                continue
            topic, (frame, time, content) = entry
            if topic in (FIELD_INFO, MATCH_CONFIGURATION) and number and topic in channels:
                continue
            if has_packets and number:
                if not topic.startswith(AGENTS):
                    continue  # drawn from the server's packets already
                if topic.endswith(PACKETS):
                    topic, content = topic.removesuffix(PACKETS) + "/arrivals", b""
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, ENCODINGS[topic.rpartition("/")[2]], 0)
            writer.add_message(channels[topic], log_time(frame), content, time, frame)
        writer.finish()  # type: ignore[no-untyped-call]
    unfinished.replace(path)
    for source in sources:
        if source != path and not any(source.name in note for note in notes):
            source.unlink()
    return notes


def _entries(source: Path, number: int, notes: list[str]) -> Iterator[tuple[int, int, Entry]]:
    """Yield frame, number of the file, and entry."""
    frame = -1  # metadata stand where they were
    try:
        for entry in read_records(source, notes):
            if not isinstance(entry, Metadata):
                frame = entry[1].frame
            yield frame, number, entry
    except (OSError, RecordingError) as error:
        notes.append(str(error))
