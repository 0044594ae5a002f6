"""Files that a command is told to write: what cannot be written is named, and the result is shown."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.cli.output_files import check_output_folder, check_outputs, write_json
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.lineup import BotReport, read_bot_report
from rlgym_bridge.trials.findings import ProbeReport
from rlgym_bridge.trials.probe import Probe
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
    monkeypatch.setattr("rlgym_bridge.cli.probe._ask", lambda *_: (found_nothing(), "a server", True))
    assert main(["probe", option, str(FULL)]) == 2
    said = capsys.readouterr()
    assert "/dev/full: No space left on device" in said.err
    assert "pad_timer" in said.out and "written to" not in said.out


def test_two_outputs_in_one_file_are_refused(tmp_path: Path, refused) -> None:
    (tmp_path / "link").symlink_to("same")
    said = refused("probe", "--out", tmp_path / "same", "--json", tmp_path / "link")
    assert "is given for two outputs" in said
    file = tmp_path / "m.mcap"
    assert "is given for two outputs" in refused("match", "--record", file, "--json", file)


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
    write_json(link, {"a": 1})
    assert (tmp_path / "target").read_text() == '{\n  "a": 1\n}\n'


def test_an_output_in_no_folder_is_named_as_it_was_given(empty_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^nowhere/a: No such file or directory, expected a file to write"):
        check_outputs(Path("nowhere/a"))


def test_what_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    check_outputs(tmp_path / "old", tmp_path / "new", None)
    assert (tmp_path / "old").read_text() == "kept"
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are POSIX's")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_the_program_loads_says_stopped(
    name: str, tmp_path: Path, hangups_end_processes: None
) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(
        f"import os, signal\nos.kill(os.getpid(), signal.{name})\nimport time\ntime.sleep(9)\n"
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
        ["match", "--physics", "map.toml", "--json", "map.toml"], ["match", "map.toml", "--json", "map.toml"],
        ["match", "--blue", "map.toml", "--json", "map.toml"], ["train", "map.toml", "--json", "map.toml"],
        ["imitate", "map.toml", "--json", "map.toml"],
        ["import", "map.toml", "--env", "a:b", "--out", "c", "--json", "map.toml"],
    ],
)  # fmt: skip
def test_no_output_replaces_what_is_read(words: list[str], empty_folder: Path, refused) -> None:
    Path("a.csv").write_text("1,2\n")
    Path("map.toml").write_text("rate = 60\n")
    Path("link.csv").symlink_to("a.csv")
    Path("hard.csv").hardlink_to("a.csv")
    assert "is read and would be replaced by an output" in refused(*words)
    assert (Path("a.csv").read_text(), Path("map.toml").read_text()) == ("1,2\n", "rate = 60\n")


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


@pytest.mark.parametrize(
    "name", ["policy.json", "fingerprint.json", "weights.safetensors", "progress.csv", "training.pt"]
)
def test_no_result_replaces_a_file_of_a_policy_or_run(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("kept")
    (tmp_path / "link").symlink_to(name)
    for file in (tmp_path / name, tmp_path / "link"):
        with pytest.raises(ConfigError, match="belongs to a policy folder or a training run"):
            check_outputs(file)
    assert (tmp_path / name).read_text() == "kept"


def make_run(folder: Path) -> Path:
    (folder / "checkpoints" / "7").mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "out", ["run", "run/checkpoints", "run/checkpoints/../checkpoints/7", "run/checkpoints/8"]
)
def test_no_policy_is_written_into_a_training_run(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_run(tmp_path / "run").parent)
    with pytest.raises(ConfigError, match=f"--out {out} belongs to a training run, expected"):
        check_output_folder(Path(out), None)
    check_output_folder(Path("run/mean"), None)  # beside the checkpoints it is fine
    assert not Path("run/mean").exists()


@pytest.mark.parametrize("out", ["file", "file/policy"])
def test_a_file_in_place_of_a_policy_folder_is_refused(out: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ConfigError, match="file is a file, expected a folder"):
        check_output_folder(tmp_path / out, None)


@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/stdout")
def test_a_result_is_appended_to_redirected_output(capfd: pytest.CaptureFixture[str]) -> None:
    print("before", flush=True)
    write_json(Path("/dev/stdout"), {})
    print("after", flush=True)
    assert capfd.readouterr().out == "before\n{}\nafter\n"


@pytest.mark.parametrize(
    "text",
    ["[]", "3", '{"missed": "many"}', '{"missed": -5}', '{"faults": ["a"]}', '{"refused": []}', "{", ""],
)
def test_a_report_of_another_form_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "0.json").write_text(text)
    assert read_bot_report(tmp_path / "0.json") == BotReport()


def test_texts_of_a_report_change_no_terminal(tmp_path: Path) -> None:
    report = {"missed": 2, "faults": {"\x1b[2J": 1}, "dialect_file": "a\rb", "refused": "\x9b1m", "more": 1}
    (tmp_path / "0.json").write_text(json.dumps(report | {"no_forecast": "\x1bc", "no_search": "\x1bd"}))
    expected = BotReport(2, {"\\x1b[2J": 1}, "a\\rb", "\\x9b1m", no_forecast="\\x1bc", no_search="\\x1bd")
    assert read_bot_report(tmp_path / "0.json") == expected


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
