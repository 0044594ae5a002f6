"""Files that are, or unpack to, far more than a match are refused before they take memory or time."""

import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
import zstandard
from mcap.writer import CompressionType
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.policy.files import MOST_WEIGHTS_BYTES
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.importers import read_checkpoint
from rlgym_bridge.recording.mcap.channels import PACKETS, Decision, agent_topic
from rlgym_bridge.recording.mcap.mcap_reader import MAGIC, MOST_FILE_BYTES, read_contents
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.tables import cells
from tests.support.made_packets import packet, player
from tests.support.made_recordings import CHUNK, recording_bytes, records_of
from tests.support.policy_folders import save

_CHUNK_HEAD = struct.Struct("<BQQQQI")
_PACKET = bytes(1000)


def chunk(data: bytes, says: int | None = None) -> bytes:
    """Return the record of a chunk of zstd whose checksum is off."""
    name, head = b"\x04\0\0\0zstd", struct.calcsize("<QQQI")
    packed = zstandard.ZstdCompressor().compress(data)
    length = head + len(name) + 8 + len(packed)
    unpacked = len(data) if says is None else says
    return _CHUNK_HEAD.pack(CHUNK, length, 0, 0, unpacked, 0) + name + struct.pack("<Q", len(packed)) + packed


def with_chunks(*chunks: bytes) -> bytes:
    """Return a recording of ten packets with further chunks in front of its own."""
    data = recording_bytes([_PACKET] * 10)
    first = next(at for opcode, at, _ in records_of(data) if opcode == CHUNK)
    return data[:first] + b"".join(chunks) + data[first:]


def test_a_chunk_that_unpacks_to_64_mb_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "bomb.mcap"
    file.write_bytes(with_chunks(chunk(bytes(1 << 26), says=1000)))
    assert file.stat().st_size < 10_000
    found = read_contents(file)
    assert len(found.topics[PACKETS]) == 10
    (note,) = found.notes
    assert "ValueError: a chunk unpacks to more than 33,554,432 bytes" in note


_MESSAGE = struct.pack("<BQHIQQ", 5, 22 + (1 << 20), 1, 0, 0, 0) + bytes(1 << 20)
_CHANNEL = struct.pack("<BQHHI", 4, 16 + (1 << 20), 2, 0, 1 << 20) + bytes((1 << 20) + 8)
_NOTHING = struct.pack("<BQ", 3, 0)


@pytest.mark.parametrize(
    ("record", "count"),
    [(_MESSAGE, 30), (_CHANNEL, 30), (_NOTHING, 3_000_000)],
    ids=["messages", "channels", "nothing"],
)
def test_chunks_that_unpack_to_far_more_than_a_file_are_refused(
    record: bytes, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bomb.mcap"
    file.write_bytes(with_chunks(*[chunk(record * count)] * 6))
    assert file.stat().st_size < 100_000
    assert main(["inspect", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"bomb.mcap has {file.stat().st_size:,} bytes and unpacks to more than 100 times that" in said


@pytest.mark.skipif(not hasattr(psutil.Process, "io_counters"), reason="this system does not count reads")
@pytest.mark.parametrize("kind", [5, CHUNK])
def test_records_that_lie_about_their_length_are_read_once(kind: int, tmp_path: Path) -> None:
    lie = struct.pack("<BQ", kind, 400_000) + chunk(b"")
    file = tmp_path / "lies.mcap"
    file.write_bytes(with_chunks(lie * 2000))
    before = psutil.Process().io_counters().read_chars
    found = read_contents(file)
    assert psutil.Process().io_counters().read_chars - before < 500 * file.stat().st_size
    assert len(found.topics[PACKETS]) == 10


@pytest.mark.parametrize(
    ("name", "size", "read", "problem"),
    [
        ("a.replay", 1 << 30, open_recording, r"1,073,741,824 bytes, expected a replay of 16,777,216 at"),
        ("a.mcap", MOST_FILE_BYTES + 1, open_recording, r"expected a recording of 8,589,934,592 at most"),
        ("a.pt", MOST_WEIGHTS_BYTES + 1, read_checkpoint, r"expected a checkpoint of 536,870,912 at most"),
    ],
)
def test_a_file_that_is_too_large_is_refused_unread(
    name: str, size: int, read: Callable[[Path], object], problem: str, tmp_path: Path
) -> None:
    with (tmp_path / name).open("wb") as file:
        file.write(MAGIC if name.endswith(".mcap") else b"")
        file.truncate(size)
    with pytest.raises(ValueError, match=problem):
        read(tmp_path / name)


def test_weights_that_are_too_large_are_refused_unread(tmp_path: Path) -> None:
    save(tmp_path)
    os.truncate(tmp_path / "weights.safetensors", MOST_WEIGHTS_BYTES + 1)
    with pytest.raises(ValueError, match=r"weights.safetensors has 536,870,913 bytes, expected weights of"):
        load_policy(tmp_path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs POSIX's devices")
@pytest.mark.parametrize("name", ["a.replay", "a.mcap", "a.csv"])
def test_a_device_is_not_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=rf"{name} is no regular file, expected a recording"):
        open_recording(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs Linux's folder in memory")
def test_a_pipe_is_not_waited_for_wherever_it_lies() -> None:
    pipe = Path("/dev/shm", f"{os.getpid()}.replay")
    os.mkfifo(pipe)
    try:
        with pytest.raises(ValueError, match=r"is a named pipe, expected a recording"):
            open_recording(pipe)
    finally:
        pipe.unlink()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_checkpoint_packed_as_torch_never_does_is_refused(method: int, tmp_path: Path) -> None:
    file = tmp_path / "bomb.pt"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a/constants.pkl", bytes(1 << 20))
    with pytest.raises(ValueError, match=rf"packed by the methods \[{method}\] of zip, expected 0 or 8"):
        read_checkpoint(file)


def test_a_checkpoint_in_a_newer_kind_of_zip_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "newer.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/constants.pkl", b"")
    data = bytearray(file.read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 101  # the version that reading it needs
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r"newer.pt cannot be read: zip file version 10.1; expected an"):
        read_checkpoint(file)


def test_a_table_of_too_many_or_too_long_lines_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "a.csv"
    table.write_text("1," * (1 << 20))
    with pytest.raises(ValueError, match=r"a.csv has a line of 2,097,152 characters, expected 1,048,576"):
        cells.read_cells(table, header=False)
    monkeypatch.setattr(cells, "_MOST_LINES", 5)
    table.write_text("1,2\n" * 6)
    with pytest.raises(ValueError, match=r"a.csv has 6 lines, expected a table of 5 at most: cut it"):
        cells.read_cells(table, header=False)


def test_what_the_recorder_said_is_not_read_where_it_is_vast(tmp_path: Path) -> None:
    file = tmp_path / "vast.mcap"
    recorder = Recorder(file, {"notes": ["[" * 90 + "]" * 90] * 3000})
    recorder.put(PACKETS, 1, b"")
    recorder.close()
    found = read_contents(file)
    assert found.about == {} and found.notes == [
        "what the recorder said has more than 262,144 characters: left out"
    ]


def test_decisions_of_cars_that_are_not_there_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.mcap"
    recorder = Recorder(file)
    seats = {1: [0], 2: [], 3: [2**31 - 1], 4: [-1]}
    for frame, cars in seats.items():
        recorder.put(PACKETS, frame, flat.CorePacket(packet(frame, player())).pack())
        numbers = np.zeros(len(cars), np.float32)
        made = Decision(frame, np.array(cars, np.int32), numbers[:, None], numbers[:, None], *[numbers] * 3)
        recorder.put(agent_topic("a/b", "decisions"), frame, made.to_bytes())
    recorder.close()
    assert main(["inspect", str(file)]) == 0
    said = capsys.readouterr().out
    assert "3 decisions of a/b cannot be read" in said and "1 decision," in said


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD, CompressionType.LZ4])
def test_a_wrong_length_costs_a_recording_few_messages(compression: CompressionType, tmp_path: Path) -> None:
    packets = [bytes([number % 251]) * 300 for number in range(200)]
    data = recording_bytes(packets, compression, checksums=False)
    file = tmp_path / "wrong.mcap"
    for number, (_, at, length) in enumerate(records_of(data)[:-1]):
        wrong = (0, 5, length + 300, 1 << 62)[number % 4]
        file.write_bytes(data[: at + 1] + struct.pack("<Q", wrong) + data[at + 9 :])
        assert len(read_contents(file).topics[PACKETS]) >= 180


def test_a_wrong_length_in_a_chunk_costs_one_message(tmp_path: Path) -> None:
    packets = [bytes([number]) * 300 for number in range(100)]
    data = recording_bytes(packets, CompressionType.NONE, 1 << 20, checksums=False)
    file = tmp_path / "wrong.mcap"
    for wrong in (0, 21, 1 << 40, (1 << 64) - 1):
        at = data.index(struct.pack("<Q", 22 + 300) + struct.pack("<HI", 1, 50))
        file.write_bytes(data[:at] + struct.pack("<Q", wrong) + data[at + 8 :])
        found = read_contents(file)
        assert [one.frame for one in found.topics[PACKETS]] == [*range(50), *range(51, 100)]
        assert "damaged and left out: 1 (the first" in found.notes[0]
