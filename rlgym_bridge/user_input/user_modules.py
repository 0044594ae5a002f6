"""Modules of users: imported from folders that are named, behind all that is installed."""

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Final

_FOREIGN: Final = ("policy.json", "run.toml")
"""Files of folders that may come from anybody; no module is searched beside them."""


def import_user_module(name: str, folders: Iterable[str | Path] = ()) -> ModuleType:
    """Import a module that a user named.

    Args:
        name: Of the module, with dots; what is installed under this name comes before a file of the user.
        folders: As `add_module_folders` takes them.

    Raises:
        Exception: Whatever the module raises; ModuleNotFoundError where there is none.
    """
    add_module_folders(*folders)
    return importlib.import_module(name)


def add_module_folders(*folders: str | Path) -> None:
    """Search modules in further folders, from now on, here and in processes that this one starts.

    They come last on the search path, so that no file in them takes the place of the standard library or of
    an installed package. Modules in them can import each other. A policy folder or the folder of a training
    run is left out: what lies in it may come from anybody.

    Args:
        folders: In the order in which they are searched.
    """
    for folder in folders:
        place = Path(folder).absolute()
        if str(place) not in sys.path and not names_no_modules(place):
            sys.path.append(str(place))
            importlib.invalidate_caches()


def names_no_modules(folder: Path) -> bool:
    """Tell whether a folder is one of a policy or a training run, in which no module is searched."""
    return any((folder / name).exists() for name in _FOREIGN)
