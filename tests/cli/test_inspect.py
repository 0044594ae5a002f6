"""`inspect`: what it is given and cannot read, and what it is to write and cannot."""

import os
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.recording.open import open_recording

FULL = Path("/dev/full")
BALL_MAP = "[time]\nseconds = 0\n[ball]\nposition = [1, 2, 3]\n"


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command for a table that can be read."""
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("0,1,2,3\n0.1,2,3,4\n")
    Path("map.toml").write_text(BALL_MAP)
    return ["inspect", "table.csv", "--columns", "map.toml", "-q"]


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("option", ["--csv", "--parquet"])
def test_a_failed_export_names_the_file_and_keeps_it(
    option: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if option == "--parquet":
        pytest.importorskip("pyarrow")
    out = Path("out")
    out.symlink_to(FULL)
    assert main([*words, option, "out"]) == 2
    assert capsys.readouterr().err == "error: out: No space left on device\n"
    assert out.is_symlink() and FULL.exists()


def test_a_missing_file_is_named_without_a_traceback(words: list[str], refused) -> None:
    for file in ("nothing.mcap", "nothing.replay"):
        assert refused("inspect", file) == f"error: {file}: No such file or directory\n"
    assert refused(*words[:3], "nothing.toml") == "error: nothing.toml: No such file or directory\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_a_writer_is_refused_and_not_waited_for(words: list[str]) -> None:
    os.mkfifo("pipe")
    for given in (("pipe",), ("pipe", "map.toml"), ("table.csv", "pipe")):
        with pytest.raises(RecordingError, match="pipe is a named pipe, expected "):
            open_recording(*given)
