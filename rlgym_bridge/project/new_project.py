"""Begin a project of one's own: settings, parts, bot and match, ready to train and to play."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.toml_text import toml_line

TEMPLATE: Final = Path(__file__).with_name("template")

_COPIED: Final = {name: name for name in ("my_parts.py", "train.toml")} | {"gitignore": ".gitignore"}
_FILLED: Final = ("bot.py", "README.md")
_MOST_LETTERS: Final = 32  # of a name; the game cuts longer ones [RLBot wiki]


class ProjectError(ValueError):
    """A project cannot be made as asked."""


def new_project(folder: Path, author: str = "") -> tuple[Path, ...]:
    """Write the files of a new project.

    Args:
        folder: To make; the bot has its name.
        author: Of the bot, for RLBot's window and the agent id.

    Returns:
        The files.

    Raises:
        ProjectError: The folder's name is no name for a bot, or there is something in the folder.
        OSError: The folder cannot be written.
    """
    name = folder.absolute().name
    _check_name(name, "the bot's name, which is the folder's,")
    if author:
        _check_name(author, "the author")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(f"{folder} is there already, expected a new or empty folder")
    agent_id = f"{_identifier(author) or 'me'}/{_identifier(name) or 'bot'}"
    texts = {ours: (TEMPLATE / theirs).read_text("utf-8") for theirs, ours in _COPIED.items()}
    for one in _FILLED:
        text = (TEMPLATE / one).read_text("utf-8")
        texts[one] = text.replace("{agent_id}", agent_id).replace("{name}", name)
    texts["bot.toml"] = _bot(name, author, agent_id, ["bot.py"], f"{name}, trained with rlgym_bridge")
    texts["chaser.bot.toml"] = _bot(
        "Chaser", "rlgym_bridge", "rlgym_bridge/chaser", ["-P", "-m", "rlgym_bridge.live", "chaser"],
        "Drives at the ball and lines up with the goal",
    )  # fmt: skip
    texts["match.toml"] = _MATCH
    folder.mkdir(parents=True, exist_ok=True)
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
    """Return a `bot.toml` that starts this Python with some words."""
    windows, others = _commands(words)
    lines = [
        "#:schema https://rlbot.org/schemas/agent.json",
        "",
        "[settings]",
        toml_line("agent_id", agent_id),
        toml_line("name", name),
        toml_line("run_command", windows),
        toml_line("run_command_linux", others),
        "",
        "[details]",
        toml_line("description", description),
        toml_line("developer", author),
        toml_line("language", "Python"),
        toml_line("tags", ["1v1"]),
    ]
    return "\n".join(lines) + "\n"


def _commands(words: list[str]) -> tuple[str, str]:
    """Return the commands for Windows and for Linux; this Python stands in that of this system."""
    windows = sys.platform == "win32"
    return (
        subprocess.list2cmdline([sys.executable if windows else "python", *words]),
        shlex.join(["python3" if windows else sys.executable, *words]),
    )


def _check_name(name: str, what: str) -> None:
    """Check that RLBot and the game can show a name.

    Raises:
        ProjectError: It is empty, too long, or has characters that cannot be shown.
    """
    if name == ".." or not name.strip() or not name.isprintable() or len(name) > _MOST_LETTERS:
        raise ProjectError(
            f"{what} is {shorten_text(name)!r}, expected 1 to {_MOST_LETTERS} characters that can be shown"
        )


def _identifier(name: str) -> str:
    """Return a name's letters, digits and dashes, for an agent id."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
