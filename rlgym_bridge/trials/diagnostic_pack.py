"""Write a field test as one zip file, and read such files of others without trusting them.

Nothing of a pack is unpickled or run; members are read by fixed names, and others are not looked at.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from rlgym_bridge.trials.findings import Amount, Count, Name, ProbeReport, Sentence, Sentences, Words
from rlgym_bridge.trials.input_latency import TimingReport
from rlgym_bridge.trials.scripted_scenes import MOST_SCENES, PlayedScene, ScriptedScene
from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.text_files import MOST_CHARACTERS, parse_json, read_bytes

FORMAT: Final = 1  # number of the pack's format; packs of other formats are refused


class PartOutcome(Struct, frozen=True):
    """The outcome of one part of a field test."""

    name: Name
    state: Literal["done", "failed", "stopped", "not begun"]  # "stopped" is by Ctrl-C
    seconds: Amount = 0.0  # wall time that it took
    note: Sentence = ""  # why it is not done; empty where it is


class AboutPack(Struct, frozen=True):
    """The description of a pack."""

    format: int
    made: Name  # day on which it was made, in UTC
    server: Literal["rlbot", "sim"]  # sim: this project's server, in whatever place
    versions: Words  # of packages and Python, and the operating system's name
    settings: Annotated[dict[Name, Sentence | Amount | None], Meta(max_length=100)]
    parts: Annotated[list[PartOutcome], Meta(max_length=20)]


class MatchPart(Struct, frozen=True):
    """The result of the match: goals of blue and orange, ticks of play, and each bot's touches."""

    score: tuple[Count, Count]
    playing_ticks: Count
    ended_by: Name
    touches: Annotated[list[Count], Meta(max_length=8)]
    unanswered: Annotated[list[Count | None], Meta(max_length=8)]  # None: it does not say


class ScenesPart(Struct, frozen=True):
    """The scripted scenes: their definitions, and the frames at which they were played."""

    scenes: Annotated[list[ScriptedScene], Meta(max_length=MOST_SCENES)]
    played: Annotated[list[PlayedScene], Meta(max_length=MOST_SCENES)]
    notes: Sentences


PARTS: Final[dict[str, Any]] = {
    "probe": ProbeReport, "timing": TimingReport, "scenes": ScenesPart, "match": MatchPart,
}  # fmt: skip
"""Parts of a field test by name, in the order in which they are played, with the form of their results."""

RECORDED: Final = ("probe", "scenes", "match")  # parts with a recording


_MOST_PACK_BYTES: Final = 1 << 25  # longest pack that is read: ours have a few MB
_MOST_RECORDING: Final = 1 << 24  # bytes; it is packed itself, and may unpack to a hundred times that
_MOST_MEMBERS: Final = 64  # entries of the zip's directory
_ENTRY: Final = b"PK\x01\x02"  # begins each of them
_ABOUT: Final = "about.json"
_README: Final = "README.txt"
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # of every member: a local time would tell the time zone
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, msgspec.ValidationError, NotImplementedError, RuntimeError, EOFError,
    ValueError, OSError,
)  # fmt: skip
"""Errors over members that are broken, encrypted, of a newer kind, or hold something else."""

_TEXT: Final = """A field test of rlgym_bridge, made by `rlgym-bridge field-test`.
`rlgym-bridge field-test --read FILE` makes a report of it.
Please give this file to whoever gave you the project: it has no public address yet.

about.json    the day, the server, versions of packages, settings, and what became of each part
probe.json    how the server speaks where RLBot's documents are unclear, and the numbers behind that
timing.json   how many ticks late inputs act, and how packets come
scenes.json   the scripted scenes: states that were set, controls that were asked for, frames
match.json    the result of a short match between two bots of the project
*.mcap        packets that came and inputs that were sent in each part (MCAP)

Nothing in it is personal: no name of a user, a computer or a folder, no environment, no address. Players are
called "player 1" and so on, whoever they were, and times count from the beginning of each recording.
"""


@dataclass
class FieldPack:
    """A pack that was read."""

    about: AboutPack
    # results by the names of `PARTS`, those that are there
    parts: dict[str, Any] = field(default_factory=dict)
    recordings: dict[str, Path] = field(default_factory=dict)  # by the names of `RECORDED`
    notes: list[str] = field(default_factory=list)  # what could not be read, as sentences


def write_field_pack(
    path: Path, about: AboutPack, parts: Mapping[str, Any], recordings: Mapping[str, Path]
) -> None:
    """Write a pack; an existing file is replaced when the new one is whole.

    `parts` are results by the names of `PARTS`, `recordings` files by those of `RECORDED`, without names of
    people. An OSError says that it cannot be written.
    """
    unfinished = path.with_name(path.name + ".part")
    texts = {_README: _TEXT, _ABOUT: _as_text(about)}
    texts |= {f"{name}.json": _as_text(part) for name, part in parts.items()}
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(_member(name), text.encode(), zipfile.ZIP_DEFLATED)
            for name, file in recordings.items():
                archive.writestr(_member(f"{name}.mcap"), file.read_bytes(), zipfile.ZIP_DEFLATED)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _as_text(part: Any) -> str:
    return json.dumps(msgspec.to_builtins(part), indent=1) + "\n"


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _DATE)
    member.create_system = 3  # the same whatever system made it
    return member


@contextmanager
def open_field_pack(path: Path) -> Iterator[FieldPack]:
    """Read a pack; its recordings lie in a temporary folder until the context ends.

    What is missing or wrong in it is left out and named in `FieldPack.notes`. A ValueError says that it is no
    pack, or too large.
    """
    data = read_bytes(path, _MOST_PACK_BYTES, "a field test")
    if (entries := data.count(_ENTRY)) > _MOST_MEMBERS:
        raise ValueError(f"{path} has {entries:,} entries, expected {_MOST_MEMBERS} at most in a field test")
    expected = "expected a pack that `rlgym-bridge field-test` made"
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is no zip file ({error}), {expected}") from None
    with archive, TemporaryDirectory(prefix="rlgym-bridge-", ignore_cleanup_errors=True) as folder:
        try:
            pack = FieldPack(_read_about(archive))
        except ValueError as error:
            raise ValueError(f"{path}: {error}, {expected}") from None
        _read_parts(archive, pack)
        _unpack_recordings(archive, pack, Path(folder))
        yield pack


def _read_about(archive: zipfile.ZipFile) -> AboutPack:
    try:
        about: AboutPack = _json_of(archive, _ABOUT, AboutPack)
    except KeyError:
        raise ValueError(f"it has no {_ABOUT}") from None
    except _BROKEN as error:
        raise ValueError(f"{_ABOUT} cannot be read: {_said(error)}") from None
    if about.format != FORMAT:
        raise ValueError(f"it has the format {about.format}, and this version reads {FORMAT}")
    return about


def _read_parts(archive: zipfile.ZipFile, pack: FieldPack) -> None:
    for name, form in PARTS.items():
        try:
            pack.parts[name] = _json_of(archive, f"{name}.json", form)
        except KeyError:
            if any(part.name == name and part.state == "done" for part in pack.about.parts):
                pack.notes.append(f"{name}.json is missing, though that part is done")
        except _BROKEN as error:
            pack.notes.append(f"{name}.json is left out: {_said(error)}")


def _unpack_recordings(archive: zipfile.ZipFile, pack: FieldPack, folder: Path) -> None:
    for name in RECORDED:
        target = folder / f"{name}.mcap"
        try:
            target.write_bytes(_read_member(archive, target.name, _MOST_RECORDING))
            pack.recordings[name] = target
        except KeyError:
            pass
        except _BROKEN as error:
            pack.notes.append(f"{target.name} is left out: {_said(error)}")


def _json_of(archive: zipfile.ZipFile, name: str, form: Any) -> Any:
    text = _read_member(archive, name, MOST_CHARACTERS).decode()
    return msgspec.convert(parse_json(text, _refuse_constant), form)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it has the number {name}, which is none of JSON's")


def _read_member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Return what a member holds; no more than `most` bytes are unpacked, whatever its head says."""
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"it is packed by the method {member.compress_type} of zip, expected 0 or 8")
    with archive.open(member) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it unpacks to more than {most:,} bytes")
    return content


def _said(error: Exception) -> str:
    return shorten_text(str(error) or type(error).__name__)
