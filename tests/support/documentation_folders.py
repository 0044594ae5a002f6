"""Makes the folders in which examples of the documentation run, as a reader would have them."""

import os
import shutil
import sys
from pathlib import Path

from tests.support.documentation import ROOT, blocks
from tests.support.processes import run_to_end
from tests.support.short_waits import SOON

FEW = "collectors = 1\nmatches = 8\nrollout_steps = 8\nsteps = 300\ncheckpoint_every = 100\n"
"""Settings with which training takes seconds."""


def run_program(folder: Path, *words: str, code: int = 0, **environment: str) -> str:
    """Run this Python in a folder; return what it printed."""
    path = {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    done = run_to_end([sys.executable, *words], cwd=folder, env={**os.environ, **path, **environment})
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def run_command(folder: Path, words: str, code: int = 0) -> str:
    """Run a command of `rlgym-bridge` in a folder, matches with a short countdown; return what it printed."""
    program = ("-c", SOON) if words.startswith("match ") else ("-m", "rlgym_bridge.cli")
    return run_program(folder, *program, *words.split(), code=code)


def files_of_the_pages(folder: Path) -> None:
    """Write all files that pages show whole."""
    for block in blocks("python", "toml"):
        if block.file is not None:
            assert not (folder / block.file).exists(), f"{block.name}: {block.file} stands on two pages"
            (folder / block.file).write_text(block.text, encoding="utf-8")


def readers_folder(folder: Path, match: Path) -> Path:
    """Make a folder with the bots, a copy of a recorded match, and the files of the pages."""
    shutil.copytree(ROOT / "bot", folder / "bot")
    shutil.copy(ROOT / "rlbot.cfg", folder)
    files_of_the_pages(folder)
    (folder / "dialect.toml").unlink()
    shutil.copy(match, folder / "match.mcap")
    return folder


def trained_folder(folder: Path) -> Path:
    """Make a folder with a run of the bot with modules of its own, and a match that it played."""
    files_of_the_pages(folder)
    (folder / "dialect.toml").unlink()
    parts = [block.text for block in blocks("python") if block.detail.startswith("part of my_bot.py")]
    with (folder / "my_bot.py").open("a", encoding="utf-8") as module:
        module.writelines(parts)
    own = (folder / "my.toml").read_text(encoding="utf-8")
    (folder / "my.toml").write_text(FEW + own, encoding="utf-8")
    said = run_command(folder, "train my.toml --out runs/mine")
    assert "1v1 of my_bot: 114 numbers, categorical actions (90,)" in said
    match = "match --blue runs/mine --orange chaser --pace lockstep --max-overtime 0"
    run_command(folder, f"{match} --seconds 20 --record match.mcap")
    return folder
