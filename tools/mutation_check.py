"""Plant faults in a copy of the project, one after the other, and run the tests that must notice each.

    python -m tools.mutation_check [rlgym_bridge/sim training/ppo.py]

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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.processes import run_to_end

_ROOT: Final = Path(__file__).parents[1]
_FAULTS: Final = _ROOT / "tools" / "faults.toml"
_LONGEST: Final = 60  # s for one test: a fault that keeps it waiting longer is caught


class Fault(NamedTuple):
    """One fault: `new` stands in place of `old` in a file, which breaks what `says` tells.

    Attributes:
        says: What a user would notice.
        file: Path from the project's root.
        old: Text that is in the file exactly once.
        new: Text in its place.
        tests: Tests as pytest names them, of which one must fail.
    """

    says: str
    file: str
    old: str
    new: str
    tests: Sequence[str]


def read_faults(places: Sequence[str] = ()) -> list[Fault]:
    """Return the faults of some files and folders, or of all if none is given.

    Raises:
        ValueError: The texts of some faults are not in their files exactly once.
    """
    faults = [Fault(**table) for table in tomllib.loads(_FAULTS.read_text(encoding="utf-8"))["fault"]]
    counts = [(_ROOT / one.file).read_text(encoding="utf-8").count(one.old) for one in faults]
    stale = [
        f"{one.file} has {one.old!r} {count} times"
        for one, count in zip(faults, counts, strict=True)
        if count != 1
    ]
    if stale:
        raise ValueError("\n".join([f"expected each text once, mend {_FAULTS}:", *stale]))
    wanted = [Path(place) for place in places or ["."]]
    return [one for one in faults if any(Path(one.file).is_relative_to(place) for place in wanted)]


def copy_project(folder: Path) -> None:
    """Copy all files that git tracks into a folder, where `rlgym_bridge.training` is found, too."""
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=_ROOT, text=True).split("\0")
    for file in filter(None, files):
        if (_ROOT / file).is_file():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_ROOT / file, folder / file)
    (folder / "rlgym_bridge" / "training").symlink_to(folder / "training")


def failing_tests(folder: Path, tests: Iterable[str], *options: str) -> list[str]:
    """Return which of some tests fail in a copy of the project; all, if a module cannot be imported.

    Raises:
        RuntimeError: There is no such test, so that the others say nothing.
    """
    chosen = list(dict.fromkeys(tests))
    command = [
        sys.executable, "-m", "pytest", "-n", "0", "--tb", "no", "-rfE", "-p", "no:cacheprovider",
        f"--timeout={_LONGEST}", *options, *chosen,
    ]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "1000"}
    done = run_to_end(command, cwd=folder, env=env, seconds=_LONGEST * (len(chosen) + 1))
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    if done.returncode == 2:
        return chosen
    said = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return [test for test in chosen if any(one.partition("[")[0] == test.partition("[")[0] for one in said)]


def is_noticed(folder: Path, fault: Fault) -> bool:
    """Plant a fault in a copy of the project, tell whether a test fails, and take it out again."""
    file = folder / fault.file
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    try:
        return bool(failing_tests(folder, fault.tests, "-x"))
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(text, encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Plant each fault, run its tests, and print whether they noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", help="only faults in these files and folders")
    faults = read_faults(parser.parse_args(words).places)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutation-check-") as name:
        folder = Path(name)
        copy_project(folder)
        broken = set(failing_tests(folder, (test for one in faults for test in one.tests)))
        for number, fault in enumerate(faults, 1):
            if broken.intersection(fault.tests):
                said = "fails without it"
            else:
                said = "caught" if is_noticed(folder, fault) else "missed"
            missed += said != "caught"
            print(f"{number:3} of {len(faults)}  {said:6}  {fault.file}: {fault.says}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} caught")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
