"""Merge the server's recording of a match and those of its agents into one file."""

import glob
import heapq
import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

from mcap.records import Metadata
from mcap.writer import Writer

from rlgym_bridge.recording.mcap import channels
from rlgym_bridge.recording.mcap.mcap_reader import Message, read_records
from rlgym_bridge.recording.mcap.mcap_writer import CHUNK_BYTES, RecordingError, parts_of
from rlgym_bridge.user_input.durable_files import sync_folder

Entry = tuple[str, Message] | Metadata


def bot_file(path: Path, number: int) -> Path:
    """Return the file that a bot writes while the server writes `path`."""
    return path.with_suffix(f".{number}.part.mcap")


def bot_files(path: Path) -> list[Path]:
    """Return the files that bots wrote while the server wrote `path`: their first parts."""
    form = re.compile(re.escape(path.stem) + r"\.\d+\.part(-\d+)?\.mcap")
    return sorted(
        one for one in path.parent.glob(glob.escape(path.stem) + ".*.part*") if form.fullmatch(one.name)
    )


def unfinished(path: Path) -> Path:
    """Return the file that becomes `path` when all is in it."""
    return path.with_name(path.name + ".part")


def left_over(path: Path) -> list[Path]:
    """Return what lies beside a recording of a match that did not come to be merged."""
    bots = [part for one in bot_files(path) for part in (one, *parts_of(one))]
    return [one for one in (*parts_of(path), *bots, unfinished(path)) if one.is_file()]


def merge(path: Path, agents: Sequence[Path]) -> list[str]:
    """Put the agents' recordings into the server's, ordered by frame, and remove those that were read whole.

    Where the server's has the packets, an agent's are reduced to when they came. Files in which a recording
    went on (`parts_of`) are taken, too. Without the server's file it is made of the agents' alone; an agent's
    that is missing or cannot be read is left out. Return what could not be read, in sentences. Raises OSError
    if the new file cannot be written; the old ones stay.
    """
    notes: list[str] = []
    server, *others = ([part for part in (one, *parts_of(one)) if part.is_file()] for one in (path, *agents))
    recordings = [one for one in (server, *others) if one]
    if not recordings:  # the match never began
        return notes
    target = unfinished(path)
    file = target.open("xb")
    try:
        with file:
            _write(file, recordings, bool(server), notes)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # a full disk, or Ctrl-C
        target.unlink()
        raise
    target.replace(path)
    sync_folder(path.parent)  # before the only copies of what it holds go
    for source in chain.from_iterable(recordings):
        if source != path and not any(source.name in note for note in notes):
            source.unlink()
    return notes


def _write(
    file: IO[bytes], recordings: Sequence[Sequence[Path]], has_packets: bool, notes: list[str]
) -> None:
    writer = Writer(file, CHUNK_BYTES)
    writer.start(channels.PROFILE)
    numbers: dict[str, int] = {}
    told: set[str | bytes] = set()
    owners: dict[str, int] = {}  # by agent id: bots of one kind have the same
    every = [_entries(sources, number, notes) for number, sources in enumerate(recordings)]
    for _, number, entry in heapq.merge(*every, key=lambda one: one[0]):
        if isinstance(entry, Metadata):
            name = entry.name
            if name.startswith(channels.POLICY):
                name = channels.POLICY + _own(name.removeprefix(channels.POLICY), number, owners)
            if name not in told and (number == 0 or name != channels.ABOUT):
                told.add(name)
                writer.add_metadata(name, entry.metadata)
            continue
        topic, (frame, time, content) = entry
        if topic.startswith(channels.AGENTS):
            agent, _, what = topic.removeprefix(channels.AGENTS).rpartition("/")
            topic = channels.agent_topic(_own(agent, number, owners), what)
        if topic in (channels.FIELD_INFO, channels.MATCH_CONFIGURATION):
            if content in told or (number and topic in numbers):
                continue  # every part of a recording begins with it
            told.add(content)
        if has_packets and number:
            if not topic.startswith(channels.AGENTS):
                continue  # drawn from the server's packets already
            if topic.endswith(channels.PACKETS):
                topic, content = topic.removesuffix(channels.PACKETS) + "/arrivals", b""
        if topic not in numbers:
            numbers[topic] = writer.register_channel(topic, channels.ENCODINGS[topic.rpartition("/")[2]], 0)
        writer.add_message(numbers[topic], channels.log_time(frame), content, time, frame)
    writer.finish()  # type: ignore[no-untyped-call]


def _own(agent: str, number: int, owners: dict[str, int]) -> str:
    """Return the agent id under which a recording's agent stands, another one where it is taken."""
    return agent if owners.setdefault(agent, number) == number else f"{agent} ({number})"


def _entries(sources: Sequence[Path], number: int, notes: list[str]) -> Iterator[tuple[int, int, Entry]]:
    frame = -1  # metadata stand where they were
    for source in sources:
        try:
            for entry in read_records(source, notes):
                if not isinstance(entry, Metadata):
                    frame = entry[1].frame
                yield frame, number, entry
        except (OSError, RecordingError) as error:
            notes.append(str(error))
