"""Makes packs of field tests, and says all that is in one."""

import json
import os
import sys
import zipfile
from pathlib import Path

from mcap.records import Metadata
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.recording.mcap.mcap_reader import read_records
from tests.support.processes import run_to_end

ROOT = Path(__file__).parents[2]
_SECONDS = 600.0  # a whole test takes a quarter of a minute of an idle core


def make_pack(folder: Path, *words: str, **environment: str) -> Path:
    """Make a pack with the command, as a user runs it."""
    search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    pack = folder / "pack.zip"
    done = run_to_end(
        [sys.executable, "-m", "rlgym_bridge.cli", "field-test", "--out", str(pack), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search, **environment},
        seconds=_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return pack


def read_report(pack: Path, status: int = 0) -> dict:
    """Read a pack with the command, and return its report."""
    file = pack.with_suffix(".json")
    assert main(["field-test", "--read", str(pack), "--json", str(file)]) == status
    return json.loads(file.read_text())


def all_contents(pack: Path, folder: Path) -> tuple[bytes, str]:
    """Return everything that a pack holds, recordings unpacked: as bytes, and its texts."""
    parts, texts = [], []
    with zipfile.ZipFile(pack) as archive:
        for member in archive.infolist():
            content = archive.read(member)
            parts += [content, repr(member).encode(), member.comment, member.extra]
            if not member.filename.endswith(".mcap"):
                texts.append(content.decode())
                continue
            file = folder / f"seen-{member.filename}"
            file.write_bytes(content)
            for entry in read_records(file, []):
                if isinstance(entry, Metadata):
                    texts.append(f"{entry.name} {entry.metadata}")
                    continue
                topic, (_, time, message) = entry
                assert time < 1e13, "a date"
                parts.append(message)
                texts += _texts_of(topic, message)
    return b"\n".join([*parts, *(text.encode() for text in texts)]), "\n".join(dict.fromkeys(texts))


def _texts_of(topic: str, content: bytes) -> list[str]:
    if not topic.endswith(("packets", "match_configuration", "field_info")):
        return [topic]
    message = flat.CorePacket.unpack(content).message
    if isinstance(message, flat.GamePacket):
        return [topic, *(player.name for player in message.players)]
    return [topic, repr(message)]
