"""Copies of the user's own modules in a policy folder, so that an old policy plays with the code it had.

Importing a copy runs code of whoever made the folder. So a copy is used only where the user gives its name,
as `carried:my_parts` among the modules that he allows.
"""

import atexit
import importlib
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rlgym_bridge.user_input.durable_files import make_folder, sync_folder, write_durably
from rlgym_bridge.user_input.own_modules import MOST_SOURCE_BYTES, MOST_SOURCES
from rlgym_bridge.user_input.text_files import read_bytes
from rlgym_bridge.user_input.user_modules import is_installed

CARRIED_FOLDER: Final = "own_modules"  # folder of the copies, in a policy folder
MOST_SHOWN: Final = 20  # names of copies that messages list at most
CARRIED: Final = "carried:"  # prefix of an allowed module whose copy is meant
_MOST_INSIDE: Final = 10 * MOST_SOURCES  # files and folders of a package, others than modules among them
_IN_USE: Final[dict[str, dict[str, bytes]]] = {}  # files of the copies that this process imports, by module


def write_carried(policy: Path, sources: Mapping[str, bytes]) -> None:
    """Write copies of modules, contents by path, into a policy folder, in place of former ones.

    Raises OSError where one cannot be written, ValueError where the place of the copies is no folder.
    """
    check_place(policy)
    folder, unfinished = policy / CARRIED_FOLDER, policy / f".{CARRIED_FOLDER}.{os.getpid()}.tmp"
    try:
        for path, content in sources.items():
            file = unfinished / path
            make_folder(file.parent)
            write_durably(file.parent, {file.name: content})
        if folder.is_dir():
            shutil.rmtree(folder)
        if sources:
            unfinished.replace(folder)
            sync_folder(policy)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def check_place(policy: Path) -> None:
    """Raise ValueError where a file or a link is in the place of a policy's copies; there may be nothing."""
    folder = policy / CARRIED_FOLDER
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        found = "a link" if folder.is_symlink() else "a file"
        raise ValueError(
            f"{folder} is {found}, expected a folder with copies of your modules, or nothing: move it away"
        )


def copy_carried(policy: Path, target: Path) -> None:
    """Copy the modules that a policy folder carries into another one; nothing of them is imported.

    Raises OSError where one cannot be copied, ValueError for a large module, no file or no folder.
    """
    check_place(policy)
    copies = (item for name in carried_names(policy) for item in _read_copy(policy, name))
    write_carried(target, dict(copies))


def carried_names(policy: Path) -> list[str]:
    """Return the names of the top-level modules that a policy folder carries, `MOST_SHOWN` at most."""
    folder = policy / CARRIED_FOLDER
    found = itertools.islice(folder.iterdir(), MOST_SOURCES) if folder.is_dir() else ()
    names = {one.name.removesuffix(".py") for one in found if one.is_dir() or one.suffix == ".py"}
    # Others cannot be imported, and a stranger's file may be called like a command of the shell.
    return sorted(name for name in names if name.isidentifier())[:MOST_SHOWN]


def explain_copies(policy: Path, allow_modules: Sequence[str] = ()) -> str:
    """Say which modules a policy folder carries that the user has not allowed; "" for none."""
    names = [f"{CARRIED}{name}" for name in carried_names(policy) if f"{CARRIED}{name}" not in allow_modules]
    if not names:
        return ""
    return f"; to use the code that the folder carries, if you trust it: --allow-modules {' '.join(names)}"


def use_carried(policy: Path, allow_modules: Sequence[str]) -> tuple[str, ...]:
    """Have Python import the copies that a user allowed, here and in processes started from here.

    Return the modules that may be imported: `allow_modules` with `carried:NAME` as `NAME`, but without copies
    that this policy does not carry; another one in the match may.

    Raises:
        ValueError: `allow_modules` is a text; a name is that of an installed package; this process has
            imported another module of that name; or the place of the copies is no folder.
    """
    if isinstance(allow_modules, str):
        raise ValueError(
            f"allow_modules is {allow_modules!r}, expected a list of names of modules: [{allow_modules!r}]"
        )
    allowed: list[str] = []
    copied: dict[str, dict[str, bytes]] = {}
    for entry in allow_modules:
        name = entry.removeprefix(CARRIED)
        if name == entry:
            allowed.append(entry)
            continue
        check_place(policy)
        if files := dict(_read_copy(policy, name)):
            allowed.append(name)
            if _IN_USE.get(name) != files:
                _check_unused(policy, name)
                copied[name] = files
    if copied:
        folder = Path(tempfile.mkdtemp(prefix="rlgym-bridge-modules-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for path, content in (item for files in copied.values() for item in files.items()):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        _IN_USE.update(copied)
        sys.path.insert(0, str(folder))  # before the user's own modules of these names; nothing else is in it
        importlib.invalidate_caches()
    return tuple(allowed)


def _check_unused(policy: Path, name: str) -> None:
    """Check that a copy may take a name. Raises ValueError where it may not."""
    if name == "rlgym_bridge" or is_installed(name):
        raise ValueError(f"{CARRIED}{name}: {name} is an installed package, expected a module of the policy")
    if name in _IN_USE:
        raise ValueError(
            f"{CARRIED}{name}: the copy in {policy} differs from one that this process has imported; play "
            "the two in processes of their own, as match does"
        )
    if name in sys.modules:
        where = getattr(sys.modules[name], "__file__", None) or "elsewhere"
        raise ValueError(f"{CARRIED}{name}: this process has imported {name} from {where} already")


def _read_copy(policy: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the files of one top-level module that a policy carries."""
    folder = policy / CARRIED_FOLDER
    if not name.isidentifier():
        return
    is_package = (folder / name).is_dir() and not (folder / name).is_symlink()
    found = (folder / name).rglob("*") if is_package else iter([folder / f"{name}.py"])
    inside = list(itertools.islice(found, _MOST_INSIDE + 1))
    if len(inside) > _MOST_INSIDE:
        raise ValueError(
            f"{folder / name} has more than {_MOST_INSIDE} files, expected a package of that at most"
        )
    files = sorted(one for one in inside if one.suffix == ".py")
    for file in files:
        if file.exists():
            yield file.relative_to(folder).as_posix(), read_bytes(file, MOST_SOURCE_BYTES, "a module")
