"""Package the shipped bot from a clean environment and play it: `python -m tools.package_and_play`.

    wheel -> environment -> package -> the folder's own environment, of its requirements.txt -> match
                                    -> PyInstaller -> a folder as the botpack has it -> match

Prints times and sizes. Nothing of this checkout is used but its wheel and the shipped policy, and the module
`rocketsim_batch` where it is installed.
"""

import json
import shutil
import tomllib
from pathlib import Path

from rlgym_bridge.project.bot_description import bot_toml
from rlgym_bridge.project.first_start import start_once
from rlgym_bridge.project.package_bot import pack_wheel
from tools.clean_folder import (
    ROOT,
    CleanFolder,
    build_wheel,
    make_environment,
    print_figures,
    processor_seconds,
)

NAME = "Ace"
TRIPLE = "x86_64-unknown-linux-gnu"
"""Folder in which the botpack's builder puts the program for Linux."""

_STEP = """

from rlgym_bridge.sim.simulator import make_simulator

make_simulator("rocketsim3", 1, 1, 1)
"""


def package_and_play(folder: Path) -> dict[str, float]:
    """Do all of it in an empty folder; return seconds and megabytes by name."""
    clean = CleanFolder(folder)
    wheel = build_wheel(clean)
    simulator = pack_wheel("rocketsim_batch")
    for name, content in simulator.items():
        (folder / name).write_bytes(content)
    python = make_environment(
        clean, folder / "maker", f"{wheel}[rlgym]", *(str(folder / name) for name in simulator)
    )
    program = python.with_name("rlgym-bridge")
    _policy_with_a_module(folder, bool(simulator))
    with clean.timed("package"):
        words = ("--name", NAME, "--author", "a maker", "--allow-modules", "my_obs", "--json", "told.json")
        print(clean.run(program, "package", "trained", *words))
    told = json.loads((folder / "told.json").read_text())
    bot = folder / told["folder"]
    clean.weigh("packaged folder", bot)
    clean.figures["start to connection, python s"] = round(told["start_seconds"], 2)
    shutil.copy(wheel, bot)  # beside requirements.txt, as long as it is nowhere else
    theirs = make_environment(clean, bot / ".venv", "-r", "requirements.txt", cwd=bot)
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
        before = processor_seconds()
        seconds = start_once(built, agent_id, [str(binary)])
        clean.figures[f"start to connection, program, {start} s"] = round(seconds, 2)
        clean.figures[f"processor time of that, {start} s"] = round(processor_seconds() - before, 2)
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


def _policy_with_a_module(folder: Path, has_module: bool) -> None:
    """Write the shipped policy into `trained`, its observation as one of a module of the user's own.

    Args:
        folder: Where to write both.
        has_module: Whether the bot has `rocketsim_batch`: its own module then makes a match in RocketSim 3
            as it is imported, so that a bot without it, or without its meshes, does not start.
    """
    own = "from rlgym_bridge import TeamObs\n\n\nclass MyObs(TeamObs):\n    pass\n"
    if has_module:
        own += _STEP
    (folder / "my_obs.py").write_text(own)
    shutil.copytree(ROOT / "bot" / "policy", folder / "trained")
    manifest = folder / "trained" / "policy.json"
    said = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps(said | {"obs": said["obs"] | {"class": "my_obs:MyObs"}}), "utf-8")


def _play(clean: CleanFolder, program: Path, bot: Path, name: str) -> str:
    """Play ten seconds against Chaser; return the last lines of what the match printed."""
    match = ("--pace", "lockstep", "--seconds", "10", "--max-overtime", "0", "--json", "match.json")
    with clean.timed(name):
        said = clean.run(program, "match", "--blue", bot / "bot.toml", "--orange", "chaser", *match)
    ours = json.loads((clean.folder / "match.json").read_text())["bots"][0]
    assert ours["name"] == NAME and ours["exit_code"] in (None, 0) and not ours["unanswered"], ours
    return "\n".join(said.splitlines()[-4:])


if __name__ == "__main__":
    print_figures(package_and_play)
