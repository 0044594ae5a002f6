"""The recorder writes in a thread of its own, and whatever fails ends the recording alone."""

import errno
import logging
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.recording.mcap import mcap_writer as recording_writer
from rlgym_bridge.recording.mcap.channels import INPUTS, MATCH_CONFIGURATION, PACKETS
from rlgym_bridge.recording.mcap.mcap_reader import read_contents
from rlgym_bridge.recording.mcap.mcap_writer import Recorder, RecordingError, parts_of
from rlgym_bridge.recording.mcap.merge import bot_files, merge
from tests.support.power_cut import Calls


def noise(frame: int) -> bytes:
    """Return bytes that no compression makes small."""
    return random.Random(frame).randbytes(1000)


def test_a_full_recording_goes_on_in_another_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(tmp_path / "long.mcap", {"by": "test"}, part_bytes=300_000, parts=2)
    recorder.put(MATCH_CONFIGURATION, 0, b"the match", head=True)
    for frame in range(6000):
        recorder.put(PACKETS, frame, noise(frame))
        if frame % 500 == 0:  # as a match does, not all at once
            while recorder._queue:
                time.sleep(0.01)
    recorder.close()
    names = sorted(one.name for one in tmp_path.iterdir())
    assert len(names) == 2 and "long.mcap" not in names
    assert "is removed: a recording keeps 2 files" in caplog.text
    newest = read_contents(recorder.path)
    assert newest.about == {"by": "test"}
    assert [one.content for one in newest.topics[MATCH_CONFIGURATION]] == [b"the match"]
    assert newest.topics[PACKETS][-1].frame == 5999


@pytest.mark.parametrize(("patience", "loses"), [(20.0, False), (0.0, True)])
def test_a_slow_disk_is_waited_for_where_time_allows(
    patience: float, loses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(recording_writer, "_QUEUED", 8)
    disk = threading.Event()

    def write_slowly(*_: object) -> list[tuple[str, bytes]]:
        disk.wait(0.002)
        return []

    recorder = Recorder(tmp_path / "slow.mcap", prepare=write_slowly)
    recorder.patience = patience
    for frame in range(100):
        recorder.put(PACKETS, frame, b"packet")
    recorder.close()
    assert (recorder.dropped > 0) is loses
    assert (f"{recorder.dropped} messages are missing in" in caplog.text) is loses
    assert len(read_contents(recorder.path).topics[PACKETS]) == 100 - recorder.dropped


def test_a_disk_that_hangs_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_writer, "_QUEUED", 1)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    recorder = Recorder(tmp_path / "hangs.mcap")
    recorder.patience = 0.01
    for frame in range(4):
        recorder.put(PACKETS, frame, b"packet")
    assert (recorder.dropped, recorder.patience) == (3, 0.0)
    recorder._stream.close()


def test_a_full_disk_ends_the_recording_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = recording_writer._Stream.write

    def full(self: Any, data: bytes) -> int:
        if self.written + len(data) > 600_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(recording_writer._Stream, "write", full)
    recorder = Recorder(tmp_path / "full.mcap")
    for frame in range(4000):
        recorder.put(PACKETS, frame, noise(frame))
    recorder.close()
    warnings = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(warnings) == 1 and "full.mcap ends here: [Errno 28]" in warnings[0].getMessage()
    recorder.put(PACKETS, 4000, b"")  # costs nothing any more
    frames = [one.frame for one in read_contents(tmp_path / "full.mcap").topics[PACKETS]]
    assert frames == list(range(len(frames))) and len(frames) > 200


def rolled_over(file: Path, topic: str) -> Recorder:
    """Return a recording that went on in another file after each chunk."""
    recorder = Recorder(file, {"by": topic}, part_bytes=2000)
    recorder.put(MATCH_CONFIGURATION, 0, b"the match", head=True)
    for frame in range(1200):
        recorder.put(topic, frame, noise(frame))
    recorder.close()
    return recorder


def test_a_long_queue_is_written_in_short_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[int] = []

    class Turns(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waiting.append(len(recorder._queue))
            return len(waiting) == 6

    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    recorder = Recorder(tmp_path / "long.mcap")
    for frame in range(120):
        recorder.put(PACKETS, frame, b"packet")
    recorder._closed = Turns()
    recorder._run()
    assert waiting == [120, 88, 56, 24, 0, 0]
    for frame in range(3200):
        recorder._queue.append((PACKETS, frame, 0, b"packet", False))
    recorder.failed = "written to a file that is closed"
    waiting[:] = [0, 0, 0, 0]
    recorder._run()
    assert waiting[4:] == [3200, 3000] and not recorder._queue


def test_nothing_that_is_there_is_written_over(tmp_path: Path) -> None:
    for name in ("match.mcap", "mine-2.mcap", "mine.part2.mcap"):
        (tmp_path / name).write_text("kept")
    with pytest.raises(RecordingError, match=r"match.mcap is there already, expected a new file"):
        Recorder(tmp_path / "match.mcap")
    recorder = rolled_over(tmp_path / "mine.mcap", PACKETS)
    assert (tmp_path / "mine.part3.mcap").is_file()
    assert recorder.path in parts_of(tmp_path / "mine.mcap")
    other = Recorder(tmp_path / "mine.mcap", beside=True)
    other.close()
    assert other.path == tmp_path / "mine-3.mcap"
    for name in ("match.mcap", "mine-2.mcap", "mine.part2.mcap"):
        assert (tmp_path / name).read_text() == "kept"


def test_all_parts_of_all_recordings_are_merged(tmp_path: Path) -> None:
    rolled_over(tmp_path / "match.mcap", PACKETS)
    rolled_over(tmp_path / "match.0.part.mcap", "/agents/me/inputs")
    assert len(parts_of(tmp_path / "match.mcap")) >= 2
    assert len(parts_of(tmp_path / "match.0.part.mcap")) >= 2
    assert merge(tmp_path / "match.mcap", bot_files(tmp_path / "match.mcap")) == []
    assert [one.name for one in tmp_path.iterdir()] == ["match.mcap"]
    found = read_contents(tmp_path / "match.mcap")
    assert found.about == {"by": PACKETS}
    assert len(found.topics[MATCH_CONFIGURATION]) == 1
    for topic in (PACKETS, "/agents/me/inputs"):
        assert [(one.frame, one.content) for one in found.topics[topic]] == [
            (frame, noise(frame)) for frame in range(1200)
        ]


def test_a_failed_merge_leaves_the_parts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("match.mcap", "match.0.part.mcap"):
        Recorder(tmp_path / name).close()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rlgym_bridge.recording.mcap.merge._write", full)
    with pytest.raises(OSError, match="No space left"):
        merge(tmp_path / "match.mcap", [tmp_path / "match.0.part.mcap"])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["match.0.part.mcap", "match.mcap"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows syncs no folders")
def test_a_power_cut_while_recordings_are_merged_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("match.mcap", "match.0.part.mcap"):
        recorder = Recorder(tmp_path / name)
        recorder.put(PACKETS if name == "match.mcap" else "/agents/me/inputs", 1, b"packet")
        recorder.close()
    before = {f"/{path.name}": path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as recorded:
        calls = Calls(tmp_path, recorded)
        merge(tmp_path / "match.mcap", [tmp_path / "match.0.part.mcap"])
    calls.check_recorded()
    merged = (tmp_path / "match.mcap").read_bytes()
    for tree in (tree for trees in calls.states for tree in trees):
        assert tree["/match.mcap"] == merged or before.items() <= tree.items()


def test_a_disk_full_from_the_start_leaves_no_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording_writer._Stream, "write", full)
    with pytest.raises(RecordingError, match=r"cannot record to .*match.mcap: \[Errno 28\]"):
        Recorder(tmp_path / "match.mcap")
    assert list(tmp_path.iterdir()) == []


def test_agents_parts_are_merged_and_broken_ones_stay(tmp_path: Path) -> None:
    server = Recorder(tmp_path / "match.mcap", {"by": "server"})
    agent = Recorder(tmp_path / "agent.mcap", {"by": "agent"})
    for frame in range(10):
        server.put(PACKETS, frame, b"packet %d" % frame)
        agent.put("/agents/me/packets", frame, b"packet %d" % frame)
        agent.put("/agents/me/inputs", frame, b"input %d" % frame)
    server.close()
    agent.close()
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"nothing of the kind")
    notes = merge(tmp_path / "match.mcap", [tmp_path / "agent.mcap", broken, tmp_path / "missing.mcap"])
    assert len(notes) == 1 and "broken.mcap" in notes[0]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["broken.mcap", "match.mcap"]
    found = read_contents(tmp_path / "match.mcap")
    assert found.about == {"by": "server"}
    assert [one.content for one in found.topics["/agents/me/arrivals"]] == [b""] * 10
    assert [one.content for one in found.topics["/agents/me/inputs"]] == [b"input %d" % n for n in range(10)]
    assert INPUTS not in found.topics


def test_a_match_that_never_began_leaves_no_recording(tmp_path: Path) -> None:
    assert merge(tmp_path / "match.mcap", [tmp_path / "agent.mcap"]) == []
    assert list(tmp_path.iterdir()) == []
