"""Install the wheel with each extra into empty environments: `python -m tools.install_table PYTHON...`.

    python -m tools.install_table python3.11 python3.13 --extras rlgym play view

Prints seconds and megabytes of each, beside those without extras. Every environment plays two seconds of a
match. The collision meshes come from rlgym-rocket-league, which is installed without what it needs.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.clean_folder import ROOT, CleanFolder, build_wheel

_MESHES: Final = "rlgym-rocket-league==2.0.1"
_MATCH: Final = ("match", "--pace", "lockstep", "--seconds", "2", "--max-overtime", "0", "--quiet")


class Installed(NamedTuple):
    """An environment: what `python --version` says, the extra, its seconds and MB, and how a match ended."""

    python: str
    extra: str
    seconds: float
    megabytes: float
    match: str


def install_each(pythons: Sequence[str], extras: Sequence[str], folder: Path) -> Iterator[Installed]:
    """Install the wheel with each extra for each Python, one after another, and delete it again."""
    clean = CleanFolder(folder)
    wheel = build_wheel(clean)
    for python in pythons:
        for extra in ("", *extras):
            yield _install(clean, python, wheel, extra)


def _install(clean: CleanFolder, python: str, wheel: Path, extra: str) -> Installed:
    where = clean.folder / "environment"
    named = clean.run(python, "--version").split()[1]
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    try:
        clean.run(python, "-m", "venv", where)
        pip = (where / "bin" / "python", "-m", "pip", "install", "-q")
        with clean.timed("install"):
            clean.run(*pip, "-c", ROOT / "constraints.txt", what)
        clean.weigh("environment", where)
        clean.run(*pip, "--no-deps", _MESHES)
        work = clean.folder / "work"
        work.mkdir(exist_ok=True)
        clean.run(where / "bin" / "rlgym-bridge", *_MATCH, cwd=work)
    except Exception as error:
        last = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
        return Installed(named, extra, 0.0, 0.0, f"failed: {last[:100]}")
    finally:
        shutil.rmtree(where, ignore_errors=True)
    return Installed(named, extra, clean.figures["install s"], clean.figures["environment MB"], "played")


def main(words: Sequence[str] | None = None) -> None:
    """Print a line for each environment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="interpreters, such as python3.11")
    parser.add_argument("--extras", nargs="*", default=["rlgym", "play", "view", "replay", "docs", "wandb"])
    options = parser.parse_args(words)
    print("python  extra     seconds      MB  match")
    with tempfile.TemporaryDirectory() as folder:
        for one in install_each(options.pythons, options.extras, Path(folder)):
            line = f"{one.python:7} {one.extra or '-':8} {one.seconds:8.0f} {one.megabytes:7.0f}  {one.match}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
