"""Files that a command is told to write: what cannot be written is named, and the result is shown."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlbot import flat

from rlgym_bridge.cli import main, options
from rlgym_bridge.cli.options import check_outputs, write_json
from rlgym_bridge.probe import ProbeReport
from rlgym_bridge.probe.battery import Probe
from rlgym_bridge.server import ConfigError
from tests.support.processes import child, run_to_end

FULL = Path("/dev/full")
PLAIN = """import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from rlgym_bridge.cli import main
sys.exit(main(["probe"]))"""
"""The command in a process that does not ignore Ctrl-C, as one in the background does."""

posix = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


def found_nothing() -> ProbeReport:
    return Probe((1, 2), flat.FieldInfo()).report()


@posix
@pytest.mark.parametrize("option", ["--json", "--out"])
def test_a_result_that_cannot_be_written_is_shown(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlgym_bridge.cli.probe_command._ask", lambda *_: (found_nothing(), "a server"))
    assert main(["probe", option, str(FULL)]) == 2
    said = capsys.readouterr()
    assert "No space left on device: '/dev/full'" in said.err
    assert "pad_timer" in said.out and "written to" not in said.out


@posix
def test_a_match_with_unwritable_json_shows_its_result(tmp_path: Path) -> None:
    words = ["match", "--blue", "chaser", "--orange", "chaser", "--pace", "lockstep", "--seconds", "1"]
    done = run_to_end(
        [sys.executable, "-m", "rlgym_bridge.cli", *words, "--max-overtime", "0", "--json", str(FULL)],
        cwd=tmp_path, seconds=100,
    )  # fmt: skip
    assert done.returncode == 2
    assert "No space left on device: '/dev/full'" in done.stderr and "Traceback" not in done.stderr
    assert "touches" in done.stdout


@posix
def test_an_unwritable_log_is_named_and_no_server_blamed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["probe", "-q", "--log", str(FULL)]) == 2
    said = capsys.readouterr().err
    assert "/dev/full" in said and "No space left on device" in said and "went away" not in said


def test_two_outputs_in_one_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to("same")
    words = ["--out", str(tmp_path / "same"), "--log", str(tmp_path / "link")]
    assert main(["probe", *words]) == 2
    assert "link is given for two outputs" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_a_reader_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="pipe is a named pipe, expected a file"):
        check_outputs(None, tmp_path / "pipe")


def test_a_link_to_a_missing_file_is_written_through(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    check_outputs(link)
    assert link.is_symlink() and not (tmp_path / "target").exists()
    assert write_json(link, {"a": 1})
    assert (tmp_path / "target").read_text() == '{\n  "a": 1\n}\n'


def test_what_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    check_outputs(tmp_path / "old", tmp_path / "new", None)
    assert (tmp_path / "old").read_text() == "kept"
    assert not (tmp_path / "new").exists()
    assert options.write(None, "nowhere")


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are POSIX's")
def test_ctrl_c_while_the_program_is_still_loading_says_stopped(tmp_path: Path) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(9)\n"
    )
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run_to_end([sys.executable, "-c", PLAIN], env={**os.environ, "PYTHONPATH": search}, seconds=60)
    assert (done.returncode, done.stderr) == (1, "stopped\n")


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "a.csv", "--json", "a.csv"], ["compare", "a.csv", "--html", "link.csv"],
        ["compare", "b.csv", "--against", "a.csv", "--json", "a.csv"],
        ["compare", "b.csv", "--columns", "map.toml", "--fit", "map.toml"],
        ["inspect", "a.csv", "--csv", "a.csv"], ["inspect", "a.csv", "--parquet", "hard.csv"],
    ],
)  # fmt: skip
def test_no_output_replaces_what_is_read(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("1,2\n")
    Path("map.toml").write_text("rate = 60\n")
    Path("link.csv").symlink_to("a.csv")
    Path("hard.csv").hardlink_to("a.csv")
    assert main(words) == 2
    assert "is read and would be replaced by an output" in capsys.readouterr().err
    assert Path("a.csv").read_text() == "1,2\n"


def test_a_reader_that_leaves_changes_no_exit_status(tmp_path: Path) -> None:
    code = """import sys
from argparse import Namespace
from rlgym_bridge.cli.options import console_of
console = console_of(Namespace(quiet=False))
for _ in range(10_000):
    console.print("a line that nobody reads")
sys.exit(7)"""
    with child([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 7
