"""Find what the current folder says of a bot: the file of settings, its run, and the match."""

from pathlib import Path
from typing import Final

from rlgym_bridge.user_input.text_files import read_toml

SETTINGS_FILE: Final = Path("train.toml")
MATCH_FILES: Final = (Path("match.toml"), Path("rlbot.cfg"))


def settings_file() -> Path | None:
    """Return the current folder's settings of training, if there are any."""
    return SETTINGS_FILE if SETTINGS_FILE.is_file() else None


def match_file() -> Path | None:
    """Return the current folder's match file, if there is one."""
    return next((file for file in MATCH_FILES if file.is_file()), None)


def run_folder() -> str | None:
    """Return the folder of the run that the settings here train; None without settings."""
    file = settings_file()
    if file is None:
        return None
    out = read_toml(file).get("out")
    if not isinstance(out, str) or not out:
        raise ValueError(f'{file} has no out, expected the folder of the run, such as out = "runs/mine"')
    return out


def run_named(given: str | None, what: str, expected: str) -> str:
    """Return what a command's argument names, else the run of the settings here.

    `what` and `expected` are for the ValueError without either: "RUN", and what it may name.
    """
    found = given or run_folder()
    if found is None:
        raise ValueError(f"{what} is missing, expected {expected}: there is no {SETTINGS_FILE} here")
    return found
