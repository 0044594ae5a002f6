"""Begin a project of one's own: settings, parts, bot and match, ready to train and to play."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from rlgym_bridge.project.bot_description import ProjectError, agent_id_of, bot_toml, check_name

TEMPLATE: Final = Path(__file__).with_name("template")

_COPIED: Final = ("my_parts.py", "train.toml", "goals.toml", "gitignore")
_FILLED: Final = ("bot.py", "README.md")


def new_project(folder: Path, author: str = "") -> tuple[Path, ...]:
    """Write the files of a new project, and return them; the bot has the folder's name.

    A ProjectError says that this is no name for a bot, that there is something in the folder, or that the
    folder that it would be in is not there.
    """
    name = folder.absolute().name
    check_name(name, "the bot's name, which is the folder's,")
    if author:
        check_name(author, "the author")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(f"{folder} is there already, expected a new or empty folder")
    if folder.is_symlink() and not folder.exists():
        raise ProjectError(f"{folder} links to {folder.readlink()}, which is not there; expected a folder")
    if not folder.absolute().parent.is_dir():
        raise ProjectError(f"{folder.parent} is not there, expected a folder: init makes the last one alone")
    agent_id = agent_id_of(author, name)
    texts = {one: (TEMPLATE / one).read_text("utf-8") for one in _COPIED}
    texts[".gitignore"] = texts.pop("gitignore")
    for one in _FILLED:
        text = (TEMPLATE / one).read_text("utf-8")
        texts[one] = text.replace("{agent_id}", agent_id).replace("{name}", name)
    texts["bot.toml"] = _bot(name, author, agent_id, ["bot.py"], f"{name}, trained with rlgym_bridge")
    texts["chaser.bot.toml"] = _bot(
        "Chaser", "rlgym_bridge", "rlgym_bridge/chaser", ["-P", "-m", "rlgym_bridge.live", "chaser"],
        "Drives at the ball and lines up with the goal",
    )  # fmt: skip
    texts["match.toml"] = _MATCH
    folder.mkdir(exist_ok=True)
    for one, text in texts.items():
        (folder / one).write_text(text, "utf-8", newline="\n")
    return tuple(folder / one for one in texts)


_MATCH: Final = """# The match that `rlgym-bridge match` plays; RLBot reads it, too.
[match]
game_mode = "Soccar"
game_map_upk = "Stadium_P"
skip_replays = true

[mutators]
match_length = "FiveMinutes"

[[cars]]
team = 0
config_file = "bot.toml"

[[cars]]
team = 1
config_file = "chaser.bot.toml"
"""


def _bot(name: str, author: str, agent_id: str, words: list[str], description: str) -> str:
    """Return a `bot.toml` that starts a Python, this one on this system, with some words."""
    on_windows = sys.platform == "win32"
    windows = subprocess.list2cmdline([sys.executable if on_windows else "python", *words])
    others = shlex.join(["python3" if on_windows else sys.executable, *words])
    settings = {"agent_id": agent_id, "name": name, "run_command": windows, "run_command_linux": others}
    details = {"description": description, "developer": author, "language": "Python", "tags": ["1v1"]}
    return bot_toml(settings, details)
