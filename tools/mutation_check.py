"""Plant faults in a copy of the project, one after the other, and run the tests that must notice each.

    python -m tools.mutation_check [--room sim]

`tools/faults.toml` has the faults: a file, a piece of its text, the text in its place, and the tests to run.
A fault counts as caught when these tests pass without it and fail with it. Exit code 1: one was not caught.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.processes import run_to_end

_ROOT: Final = Path(__file__).parents[1]
_FAULTS: Final = _ROOT / "tools" / "faults.toml"
_LONGEST: Final = 600.0  # s that the tests of a fault may take; a fault that hangs them is caught


def copy_project(folder: Path) -> None:
    """Copy all files that git tracks into a folder, where `rlgym_bridge.training` is found, too."""
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=_ROOT, text=True).split("\0")
    for file in filter(None, files):
        if (_ROOT / file).is_file():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_ROOT / file, folder / file)
    (folder / "rlgym_bridge" / "training").symlink_to(folder / "training")


def tests_pass(folder: Path, tests: Sequence[str]) -> bool:
    """Say whether tests pass in a copy of the project.

    Raises:
        RuntimeError: pytest could not collect them, so that they say nothing.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = run_to_end(command, cwd=folder, env=env, seconds=_LONGEST)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):  # 2: the planted fault keeps a module from being imported
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.returncode == 0


def plant(folder: Path, fault: dict[str, Any]) -> str:
    """Write a fault into a file of the copy, and return the file's text before.

    Raises:
        ValueError: The fault's text is not in the file exactly once.
    """
    file = folder / fault["file"]
    text = file.read_text(encoding="utf-8")
    if (found := text.count(fault["old"])) != 1:
        raise ValueError(f"{fault['file']} has {fault['old']!r} {found} times, expected once: mend {_FAULTS}")
    file.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
    return text


def main(words: Sequence[str]) -> int:
    """Plant each fault, run its tests, and print whether they noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--room", help="only faults of this room")
    parser.add_argument("--faults", type=Path, default=_FAULTS, help="another file of faults")
    options = parser.parse_args(words)
    faults = [
        fault
        for fault in tomllib.loads(options.faults.read_text(encoding="utf-8"))["fault"]
        if options.room in (None, fault["room"])
    ]
    passing: dict[tuple[str, ...], bool] = {}
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutation-check-") as name:
        folder = Path(name)
        copy_project(folder)
        for number, fault in enumerate(faults, 1):
            tests = tuple(fault["tests"])
            before = plant(folder, fault)
            caught = not tests_pass(folder, tests)
            (folder / fault["file"]).write_text(before, encoding="utf-8")
            if caught and tests not in passing:
                passing[tests] = tests_pass(folder, tests)
            said = "missed" if not caught else "caught" if passing[tests] else "the tests fail without it"
            missed += said != "caught"
            print(f"{number:3} of {len(faults)}  {fault['room']:12} {said:7} {fault['says']}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} caught")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
