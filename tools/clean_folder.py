"""Lends scripts a folder in which programs run with nothing of this environment, and times them."""

import os
import shutil
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import run_to_end

ROOT = Path(__file__).parents[1]

_INSTALLERS = ("pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources")
_MADE = {ROOT: ("build", "runs", "logs", "dist", "*.egg-info"), ROOT / "native": ("target",)}
_MINUTES = 600.0  # s that an installation, a build or a command may take


class CleanFolder:
    """A folder outside of the checkout, in which programs run with nothing of this environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.figures: dict[str, float] = {}

    def run(self, *words: str | Path, cwd: Path | None = None, seconds: float = _MINUTES) -> str:
        """Run a program to its end, which it has to reach within some seconds; return what it printed."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RLGYM_"))
        }
        command = [str(word) for word in words]
        done = run_to_end(command, cwd=cwd or self.folder, env=kept, check=True, seconds=seconds)
        return str(done.stdout)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note the seconds of the clock and of the processor that a block takes."""
        begin, before = time.monotonic(), processor_seconds()
        yield
        self.figures[f"{name} s"] = round(time.monotonic() - begin, 2)
        self.figures[f"{name}, processor s"] = round(processor_seconds() - before, 2)

    def weigh(self, name: str, *paths: Path) -> None:
        """Note the size of files and folders, without pip's own."""
        self.figures[f"{name} MB"] = round(sum(map(_size, paths)) / 1e6, 1)


def copy_sources(clean: CleanFolder) -> Path:
    """Copy the checkout's files, without what was made in it; return the folder of the copy."""
    sources = clean.folder / "sources"
    shutil.copytree(ROOT, sources, ignore=_ignore)
    return sources


def _ignore(folder: str, names: list[str]) -> set[str]:
    """Return what is not copied of a folder; packages below the first one may have names such as `runs`."""
    made = _MADE.get(Path(folder), ())
    return shutil.ignore_patterns(".*", "__pycache__", *made)(folder, names)


def build_wheel(clean: CleanFolder) -> Path:
    """Build the wheel of a copy of the checkout's files."""
    sources = copy_sources(clean)
    with clean.timed("wheel"):
        clean.run(sys.executable, "-m", "venv", clean.folder / "builder")
        python = clean.folder / "builder" / "bin" / "python"
        clean.run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", clean.folder, sources)
    (wheel,) = clean.folder.glob("*.whl")
    return wheel


def make_environment(clean: CleanFolder, folder: Path, *what: str, cwd: Path | None = None) -> Path:
    """Make an environment and install something into it, with pip running in `cwd`; return its Python."""
    with clean.timed(f"installation into {folder.name}"):
        venv.create(folder, with_pip=True, symlinks=True)
        python = folder / "bin" / "python"
        clean.run(python, "-m", "pip", "install", "-q", *what, cwd=cwd)
    return python


def print_figures(do: Callable[[Path], dict[str, float]]) -> dict[str, float]:
    """Do something in an empty folder; print and return its figures, by name and unit."""
    with tempfile.TemporaryDirectory() as made:
        figures = do(Path(made))
    for title, figure in figures.items():
        name, _, unit = title.rpartition(" ")
        print(f"{name:45} {figure:8.2f} {unit}")
    return figures


def processor_seconds() -> float:
    """Return the processor time of all processes that were started here and have ended, s."""
    used = os.times()
    return used.children_user + used.children_system


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    files = (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(
        file.stat().st_size
        for file in files
        if not any(part.startswith(_INSTALLERS) for part in file.relative_to(path).parts)
    )
