"""Recordings of agents write over nothing that is there, and the bot plays on."""

import logging
from pathlib import Path

import pytest

from rlgym_bridge.live.agent_recorder import RECORD_VARIABLE, begin_recording


def begun(folder: Path, value: Path, agent_id: str = "my/bot") -> list[str]:
    """Return the files that are new when an agent has begun to record."""
    before = set(folder.rglob("*.mcap"))
    recorder = begin_recording(agent_id, "no policy", value)
    if recorder is not None:
        recorder.close()
    return sorted(str(one.relative_to(folder)) for one in set(folder.rglob("*.mcap")) - before)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RECORD_VARIABLE, raising=False)


def test_two_agents_with_one_file_write_two_and_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert begun(tmp_path, tmp_path / "both.mcap") == ["both.mcap"]
    assert "already" not in caplog.text
    (tmp_path / "both-2.mcap").write_text("somebody else's")
    assert begun(tmp_path, tmp_path / "both.mcap") == ["both-3.mcap"]
    assert "both.mcap exists already: recording to" in caplog.text
    assert (tmp_path / "both-2.mcap").read_text() == "somebody else's"


@pytest.mark.parametrize("name", ["recordings", "recs.d", "folder.mcap"])
def test_a_folder_gets_a_file_named_after_the_agent(name: str, tmp_path: Path) -> None:
    if name.endswith(".mcap"):
        (tmp_path / name).mkdir()
    (file,) = begun(tmp_path, tmp_path / name)
    assert Path(file).parent.name == name and Path(file).name.startswith("my-bot-")


def test_a_file_that_is_no_recording_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert begun(tmp_path, tmp_path / "notes.txt") == []
    (warning,) = (one.getMessage() for one in caplog.records if one.levelno == logging.WARNING)
    assert "notes.txt is a file, expected a folder or a file whose name ends with .mcap" in warning
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_link_to_a_missing_file_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.mcap").symlink_to("target.mcap")
    assert begun(tmp_path, tmp_path / "link.mcap") == ["target.mcap"]
    (tmp_path / "loop.mcap").symlink_to("loop.mcap")
    assert begun(tmp_path, tmp_path / "loop.mcap") == []
