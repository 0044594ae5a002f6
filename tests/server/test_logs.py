"""Logs of bots: what a bot does to its own log holds up nobody."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from rlgym_bridge.server import MatchCalledOff
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net.launch import BotProcess, end_all, inherit_orphans, launch
from tests.support.processes import child
from tests.support.stepped_match import match_of, player, result_of

ASLEEP = "import time; time.sleep(600)"


def launched(folder: Path, command: str, name: str = "A") -> BotProcess:
    """Start a bot, and wait until its shell has ended."""
    seats = seat_players(match_of(player(0, name=name, run_command=command))).agents
    process = launch(seats, "127.0.0.1", 1, folder)
    process.popen.wait(20.0)
    return process


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_log_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0-0-A.log")
    process = launched(tmp_path, "echo it fails")
    assert process.log_tail == "it fails"
    process.log_path.unlink()
    os.mkfifo(process.log_path)
    assert process.log_tail == f"(cannot be read: {process.log_path} is a named pipe, expected a log)"


@pytest.mark.parametrize(
    "name", ["/../x", "..", "a/../../b", "\x1b[2J", "x" * 300, "\U00010348" * 80, "é" * 200]
)
def test_a_log_stays_in_its_folder_whatever_its_bot_is_called(name: str, tmp_path: Path) -> None:
    log = launched(tmp_path, "echo here", name).log_path
    assert [*tmp_path.iterdir()] == [log.resolve()]


@pytest.mark.usefixtures("short_countdowns")
def test_a_bot_that_deletes_its_log_folder_ends_no_match(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    delete = f"import shutil; shutil.rmtree({str(logs)!r}, ignore_errors=True)"
    vandal = player(0, name="A", run_command=f'{sys.executable} -c "{delete}" && python simple_bots.py ball')
    match = match_of(vandal, player(1, name="B"))
    result = result_of(match, seconds=1.0, max_overtime=0.1, log_dir=logs)
    assert result.ended_by != "stopped" and [bot.crashed for bot in result.bots] == [False, False]
    assert all(bot.replies > 100 for bot in result.bots)


@pytest.mark.usefixtures("short_countdowns")
def test_a_log_folder_that_takes_no_logs_is_replaced_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    process = launched(tmp_path / "file", "echo here")
    assert process.log_tail == "here"
    assert f"that of 'A' (agent_id 'test/ball', blue) is {process.log_path}" in caplog.text
    match = match_of(player(0), player(1))
    result = result_of(match, seconds=0.5, max_overtime=0.1, log_dir=tmp_path / "file" / "x")
    assert result.ticks > 60 and not any(bot.crashed for bot in result.bots)
    assert "bots log to a temporary folder instead" in caplog.text


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/home/me/.venv/bin/python bot.py", "/home/me/.venv/bin/python bot.py"),
        (r"..\.venv\Scripts\python.exe -m my_bot", r"..\.venv\Scripts\python.exe -m my_bot"),
        ("python -m live '/home/me/my runs/8'", "python -m live '/home/me/my runs/8'"),
        ("run " + "x" * 1000, "run " + "x" * 496 + "..."),
    ],
)
def test_the_line_of_a_bots_start_has_its_command_as_given(
    command: str, shown: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    launched(tmp_path, command, "A\nB")
    assert caplog.messages == [f"started A\\nB (blue): {shown}"]


FLOOD = """
import time
print("the first line")
for i in range(9999):
    print("x" * 999_999, flush=True)
    time.sleep(0.01 * (i > 80))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a file of POSIX is cut while a program appends to it")
def test_a_bot_that_prints_without_end_does_not_fill_the_disk(tmp_path: Path) -> None:
    (tmp_path / "flood.py").write_text(FLOOD)
    flood = player(0, name="A", run_command=f"{sys.executable} {tmp_path / 'flood.py'}")
    with pytest.raises(MatchCalledOff, match="A"):
        result_of(match_of(flood, player(1)), log_dir=tmp_path, connect_timeout=3.0)
    log = (tmp_path / "0-0-A.log").read_bytes()
    assert log.startswith(b"the first line\n") and log.count(b" bytes were cut here]\n") == 1
    assert 1_000_000 < len(log) < 128 << 20


@pytest.mark.skipif(sys.platform == "win32", reason="sessions of POSIX")
def test_what_a_bot_has_started_ends_though_it_has_gone(tmp_path: Path) -> None:
    process = launched(tmp_path, "sleep 600 & echo $!")
    left = psutil.Process(int(process.log_tail))
    end_all([process], 0.0)
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE


DAEMON = """
import os, sys, time
environment = dict(os.environ) if sys.argv[1] == "marked" else {}
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        words = [sys.executable, "-c", "import time; time.sleep(600)"]
        print(os.getpid(), flush=True)
        os.execve(sys.executable, words, environment)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX forks")
@pytest.mark.parametrize(
    "environment",
    [
        "marked",
        pytest.param("empty", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux's prctl")),
    ],
)
def test_a_process_that_forks_twice_ends_with_its_bot(environment: str, tmp_path: Path) -> None:
    (tmp_path / "daemon.py").write_text(DAEMON)
    command = f"{sys.executable} {tmp_path / 'daemon.py'} {environment}; sleep 1"
    inherit_orphans(True)
    try:
        with child([sys.executable, "-c", ASLEEP], env={"PATH": os.environ["PATH"]}) as ours:
            process = launched(tmp_path, command)
            left = psutil.Process(int(process.log_tail))
            assert left.is_running() and left.pid != process.popen.pid
            end_all([process], 0.0)
            assert process.was_told_to_end and not psutil.pid_exists(left.pid)
            assert ours.poll() is None  # a program of ours goes on
    finally:
        inherit_orphans(False)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's prctl")
def test_an_orphan_of_another_program_is_left_alone(tmp_path: Path) -> None:
    fork = "import os, time\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\n    time.sleep(600)"
    inherit_orphans(True)
    try:
        process = launched(tmp_path, "echo here")
        with child([sys.executable, "-c", fork], stdout=subprocess.PIPE, text=True) as browser:
            assert browser.stdout is not None
            orphan = psutil.Process(int(browser.stdout.readline()))
            assert browser.wait(20.0) == 0 and orphan.ppid() == os.getpid()
            end_all([process], 0.0)
            assert orphan.is_running()
    finally:
        inherit_orphans(False)
