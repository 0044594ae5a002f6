"""The bot that comes with the package, and the match that it plays against Chaser."""

from pathlib import Path
from typing import Final

from rlbot import flat

from rlgym_bridge.matches.lineup import command_of
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.server import ConfigError, read_match_file

MATCH_FILE: Final = "rlbot.cfg"
_PACKAGE: Final = Path(__file__).parents[1]


def find_shipped_folder() -> Path:
    """Return the folder with the match file and the shipped bot: in an installed package, or a checkout's.

    Raises:
        ConfigError: There is neither.
    """
    for folder in (_PACKAGE / "shipped", _PACKAGE.parent):
        if (folder / MATCH_FILE).is_file() and (folder / "bot" / "policy").is_dir():
            return folder
    raise ConfigError(
        f"there is no {MATCH_FILE} in {Path.cwd()} and no shipped bot in {_PACKAGE}; name a match file, or "
        "give --blue and --orange"
    )


def read_shipped_match() -> flat.MatchConfiguration:
    """Return the match of the shipped bot against Chaser, both started by this Python.

    Raises:
        ConfigError: The shipped files are missing or damaged.
    """
    folder = find_shipped_folder()
    match = read_match_file(folder / MATCH_FILE)
    for player, policy in zip(
        match.player_configurations, (str(folder / "bot" / "policy"), CHASER), strict=True
    ):
        if not isinstance(player.variety, flat.CustomBot):
            raise ConfigError(f"{folder / MATCH_FILE} has a player that is no bot, expected two bots")
        player.variety.run_command = command_of(policy)
        player.variety.root_dir = str(Path.cwd())
    return match
