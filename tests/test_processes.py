"""Processes that tests and benchmarks start end with the block, with the time, and with their owner."""

import ast
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support import processes
from tests.support.processes import child, guard, marked, run_to_end
from tools.benchmarks import live_engine

ROOT = Path(__file__).parents[1]
ASLEEP = "import time; print('asleep', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {ASLEEP}"
PARENT = f"""
import subprocess, sys
alone = {{}} if sys.platform == "win32" else {{"start_new_session": True}}
subprocess.Popen([sys.executable, "-c", {ASLEEP!r}], **alone)
"""
"""Starts a process in a session of its own, and ends before it."""

Started = Callable[[], set[psutil.Process]]
STARTERS = ("subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_output", "os.system")


@pytest.fixture
def started() -> Started:
    """Returns a function that returns what a test has started and still runs."""
    before = {*marked(guard()), *psutil.Process().children(recursive=True)}
    return lambda: {*marked(guard()), *psutil.Process().children(recursive=True)} - before


def gone(pids: list[int]) -> bool:
    """Wait until none of some processes runs; tell whether that came to be."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        alive = [pid for pid in pids if psutil.pid_exists(pid)]
        if not any(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in alive):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("code", [ASLEEP, STUBBORN, f"{PARENT}{ASLEEP}", PARENT])
def test_a_block_that_fails_leaves_no_process_behind(
    code: str, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_PATIENCE", 1.0)
    with (
        pytest.raises(ZeroDivisionError),
        child([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout.readline() == "asleep\n"
        assert started()
        raise ZeroDivisionError
    assert process.returncode is not None and not started()


def test_a_program_that_ends_has_its_exit_code_and_its_words() -> None:
    done = run_to_end([sys.executable, "-c", "input()"], stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and "EOFError" in done.stderr
    assert run_to_end([sys.executable, "-c", "print(3)"], check=True).stdout == "3\n"
    with pytest.raises(subprocess.CalledProcessError, match="exit status 2"):
        run_to_end([sys.executable, "-c", "raise SystemExit(2)"], check=True)


@pytest.mark.parametrize("code", [ASLEEP, PARENT])
def test_a_run_ends_in_time_though_its_output_is_held(code: str, started: Started) -> None:
    with pytest.raises(subprocess.TimeoutExpired, match=r"timed out after 0\.8 seconds"):
        run_to_end([sys.executable, "-c", code], seconds=0.8)
    assert not started()


OWNER = f"""
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import os, time
from tests.support.processes import child, guard

if __name__ == "__main__":
    guard()
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    worker = pool.submit(os.getpid).result()
    with child([sys.executable, "-c", {ASLEEP!r}]) as process:
        print(process.pid, worker, flush=True)
        time.sleep(600)
"""


def test_a_killed_owners_processes_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "owner.py").write_text(OWNER)
    search = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, tmp_path / "owner.py"]
    with child(command, stdout=subprocess.PIPE, text=True, env=search) as owner:
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 2 and all(map(psutil.pid_exists, pids))
        owner.kill()
        owner.wait(20)
        assert gone(pids)


@pytest.mark.timeout(60)
def test_a_failed_benchmark_ends_with_its_server(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise ZeroDivisionError("a benchmark's mistake")

    monkeypatch.setattr(live_engine, "steps_a_second", fail)
    with pytest.raises(ZeroDivisionError, match="a benchmark's mistake"):
        live_engine.live_engine(1)
    assert not started()


def test_no_test_and_no_benchmark_starts_what_outlives_it() -> None:
    here = Path(__file__).parents[1]
    files = {*(here / "tests").rglob("*.py"), *(here / "tools").glob("*/*.py")}
    for file in sorted(files - {Path(processes.__file__)}):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called, where = ast.unparse(node.func), f"{file.relative_to(here)}:{node.lineno}"
                assert called not in STARTERS, f"{where} starts a process: see tests/support/processes.py"
                daemon = "daemon=True" in map(ast.unparse, node.keywords)
                assert daemon or called != "threading.Thread", f"{where} starts a thread without daemon=True"
