"""Fuzz folders of one's own: new projects and training runs; files to be read lie there, too."""

import ast
import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.project.new_project import new_project
from rlgym_bridge.server import ConfigError, read_match_file
from rlgym_bridge.training.runs.curve_files import mend_table

ROOT: Final = Path(__file__).parents[2]


@cache
def folder() -> Path:
    """Return a folder of this process for files to be read."""
    made = Path(tempfile.mkdtemp(prefix="rlgym-bridge-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    shutil.copytree(ROOT / "bot", made / "bot", ignore=shutil.ignore_patterns("policy"))
    return made


def of_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Return a function that writes bytes into a file and has it read."""

    def run(data: bytes) -> object:
        path = folder() / name
        path.write_bytes(data)
        return read(path)

    return run


def begin_project(data: bytes) -> None:
    """Begin a project whose folder and author have these names, and read its files."""
    name, _, author = data.decode(errors="surrogateescape").partition("\n")
    made = folder() / "project" / name.replace("/", "").replace("\0", "")
    if made.name in ("", "..", "project"):
        return
    made.parent.mkdir(exist_ok=True)
    try:
        new_project(made, author)
        read_match_file(made / "match.toml")
        for file in made.glob("*.py"):
            ast.parse(file.read_text("utf-8"))
    except (SyntaxError, ConfigError) as error:
        raise AssertionError("the project cannot be read") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def read_run(data: bytes) -> object:
    """Have the file of a training run read that names its modules."""
    run = folder() / "run"
    (run / "checkpoints" / "1").mkdir(parents=True, exist_ok=True)
    (run / "run.toml").write_bytes(data)
    return run_modules(run)


def resume(path: Path) -> object:
    """Have the table of a training run mended; what is put aside does not pile up."""
    try:
        return mend_table(path, ("steps", "rating"), 2)
    finally:
        for older in path.parent.glob("progress.*.csv"):
            older.unlink()
