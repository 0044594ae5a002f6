"""Package the shipped bot from a clean environment and play it: `python -m tests.support.package_and_play`.

    wheel -> environment -> package -> the folder's own environment, of its requirements.txt -> match
                                    -> PyInstaller -> a folder as the botpack has it -> match

Prints times and sizes. Nothing of this checkout is used but its wheel and the shipped policy.
"""

import json
import os
import resource
import shutil
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlgym_bridge.project.bot_description import bot_toml
from rlgym_bridge.project.first_start import start_once
from tests.support.processes import run_to_end

ROOT = Path(__file__).parents[2]
NAME = "Ace"
TRIPLE = "x86_64-unknown-linux-gnu"
"""Folder in which the botpack's builder puts the program for Linux."""

_INSTALLERS = ("pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources")
_MINUTES = 600.0  # s that an installation or a build may take


class CleanFolder:
    """A folder outside of the checkout, in which programs run with nothing of this environment.

    Attributes:
        folder: It.
        figures: Seconds and megabytes so far, by name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.figures: dict[str, float] = {}

    def run(self, *words: str | Path, cwd: Path | None = None) -> str:
        """Run a program to its end; return what it printed.

        Raises:
            subprocess.CalledProcessError: Its exit status is not 0.
        """
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RLGYM_"))
        }
        command = [str(word) for word in words]
        done = run_to_end(command, cwd=cwd or self.folder, env=kept, check=True, seconds=_MINUTES)
        return str(done.stdout)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note the seconds that a block takes."""
        begin = time.monotonic()
        yield
        self.figures[f"{name} s"] = round(time.monotonic() - begin, 2)

    def weigh(self, name: str, *paths: Path) -> None:
        """Note the size of files and folders, without pip's own."""
        self.figures[f"{name} MB"] = round(sum(map(_size, paths)) / 1e6, 1)


def package_and_play(folder: Path) -> dict[str, float]:
    """Do all of it in an empty folder; return seconds and megabytes by name."""
    clean = CleanFolder(folder)
    wheel = build_wheel(clean)
    python = make_environment(clean, folder / "maker", str(wheel))
    program = python.with_name("rlgym-bridge")
    _policy_with_a_module(folder)
    with clean.timed("package"):
        words = ("--name", NAME, "--author", "a maker", "--allow-modules", "my_obs", "--json", "told.json")
        print(clean.run(program, "package", "trained", *words))
    told = json.loads((folder / "told.json").read_text())
    bot = folder / told["folder"]
    clean.weigh("packaged folder", bot)
    clean.figures["start to connection, python s"] = round(told["start_seconds"], 2)
    shutil.copy(wheel, bot)  # beside requirements.txt, as long as it is nowhere else
    theirs = make_environment(clean, bot / ".venv", "-r", str(bot / "requirements.txt"))
    clean.weigh("environment of requirements.txt", bot / ".venv")
    print(_play(clean, program, bot, "match with python"))
    with clean.timed("PyInstaller"):
        clean.run(theirs, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "pyinstaller")
        clean.run(theirs, "-m", "PyInstaller", "bot.spec", cwd=bot)
    built = as_botpack(bot, folder / "botpack" / NAME)
    binary = built / TRIPLE / "ace"
    clean.weigh("program of PyInstaller", binary)
    agent_id = told["agent_id"]
    for start in ("first", "second"):
        before = _processor_seconds()
        seconds = start_once(built, agent_id, [str(binary)])
        clean.figures[f"start to connection, program, {start} s"] = round(seconds, 2)
        clean.figures[f"processor time of that, {start} s"] = round(_processor_seconds() - before, 2)
    print(_play(clean, program, built, "match with the program"))
    return clean.figures


def as_botpack(bot: Path, folder: Path) -> Path:
    """Lay out a built bot as the botpack's builder does, with a changed bot.toml."""
    (folder / TRIPLE).mkdir(parents=True)
    (program,) = (bot / "dist").iterdir()
    shutil.copy(program, folder / TRIPLE)
    described = tomllib.loads((bot / "bot.toml").read_text("utf-8"))
    described["settings"]["run_command_linux"] = f"{TRIPLE}/{program.name}"
    (folder / "bot.toml").write_text(bot_toml(described["settings"], described["details"]), "utf-8")
    for name in ("logo.png", "loadout.toml"):
        shutil.copy(bot / name, folder)
    return folder


def copy_sources(clean: CleanFolder) -> Path:
    """Copy the checkout's files, without what was made in it; return the folder of the copy."""
    sources = clean.folder / "sources"
    ignored = shutil.ignore_patterns(".*", "build", "runs", "logs", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, sources, ignore=ignored)
    return sources


def build_wheel(clean: CleanFolder) -> Path:
    """Build the wheel of a copy of the checkout's files."""
    sources = copy_sources(clean)
    with clean.timed("wheel"):
        clean.run(sys.executable, "-m", "venv", clean.folder / "builder")
        python = clean.folder / "builder" / "bin" / "python"
        clean.run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", clean.folder, sources)
    (wheel,) = clean.folder.glob("*.whl")
    return wheel


def _policy_with_a_module(folder: Path) -> None:
    """Write the shipped policy into `trained`, its observation as one of a module of the user's own."""
    own = "from rlgym_bridge import RelativeObs\n\n\nclass MyObs(RelativeObs):\n    pass\n"
    (folder / "my_obs.py").write_text(own)
    shutil.copytree(ROOT / "bot" / "policy", folder / "trained")
    manifest = folder / "trained" / "policy.json"
    said = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps(said | {"obs": said["obs"] | {"class": "my_obs:MyObs"}}), "utf-8")


def make_environment(clean: CleanFolder, folder: Path, *what: str) -> Path:
    """Make an environment and install something into it; return its Python."""
    with clean.timed(f"installation into {folder.name}"):
        venv.create(folder, with_pip=True, symlinks=True)
        python = folder / "bin" / "python"
        clean.run(python, "-m", "pip", "install", "-q", *what)
    return python


def _play(clean: CleanFolder, program: Path, bot: Path, name: str) -> str:
    """Play ten seconds against Chaser; return the last lines of what the match printed."""
    match = ("--pace", "lockstep", "--seconds", "10", "--max-overtime", "0", "--json", "match.json")
    with clean.timed(name):
        said = clean.run(program, "match", "--blue", bot / "bot.toml", "--orange", "chaser", *match)
    ours = json.loads((clean.folder / "match.json").read_text())["bots"][0]
    assert ours["name"] == NAME and ours["exit_code"] in (None, 0) and not ours["unanswered"], ours
    return "\n".join(said.splitlines()[-4:])


def _processor_seconds() -> float:
    """Return the processor time of all processes that were started here and have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    files = (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(
        file.stat().st_size
        for file in files
        if not any(part.startswith(_INSTALLERS) for part in file.relative_to(path).parts)
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for title, figure in package_and_play(Path(made)).items():
            print(f"{title.rpartition(' ')[0]:45} {figure:8.2f} {title.rpartition(' ')[2]}")
