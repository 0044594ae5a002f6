"""Find the modules of a user's own that a bot imports, and the packages that those import; nothing is run."""

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Final

from rlgym_bridge.project.bot_description import ProjectError
from rlgym_bridge.user_input.text_files import explain_unreadable, read_text

_COME_ALONG: Final = ("numpy", "rlbot", "rlgym")  # with rlgym_bridge
_INSTALLED: Final = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class OwnModules:
    """Modules of a user.

    Attributes:
        files: Files by their paths in the bot's folder, with slashes.
        requirements: Lines of `requirements.txt` for what they import when they are imported themselves.
        missing: Names that nobody has; they may be imported where they are needed alone.
    """

    files: Mapping[str, Path]
    requirements: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def modules(self) -> tuple[str, ...]:
        """Their names, with dots."""
        paths = (Path(path).with_suffix("") for path in self.files)
        return tuple(".".join(path.parts).removesuffix(".__init__") for path in paths)


def find_own_modules(needed: Iterable[str]) -> OwnModules:
    """Find modules by name, and those that they import, in the folders where Python looks for modules.

    Args:
        needed: Names of modules, with dots or without.

    Raises:
        ProjectError: A file cannot be read as Python.
    """
    waiting, seen = list(needed), {"rlgym_bridge"}
    files: dict[str, Path] = {}
    early = {name.partition(".")[0] for name in waiting}  # imported when the bot starts
    installed, missing = set(), set()
    while waiting:
        name = waiting.pop().partition(".")[0]
        if name in seen or name in sys.stdlib_module_names:
            continue
        seen.add(name)
        place = _place_of(name)
        if place is None:
            missing.add(name)
        elif any(part in _INSTALLED for part in place.parts):
            installed.add(name)
        else:
            for file in _files_at(place):
                files[file.relative_to(place.parent).as_posix()] = file
                found = imported_by(file)
                waiting += found
                early |= {module.partition(".")[0] for module, at_once in found.items() if at_once}
    required = _requirements((installed & early) - {*_COME_ALONG, "torch"})
    return OwnModules(files, required, tuple(sorted(missing)))


def imported_by(file: Path) -> dict[str, bool]:
    """Return the modules that a file imports, by name: whether at once, when it is imported itself.

    Raises:
        ProjectError: It cannot be read as Python.
    """
    if file.suffix != ".py":
        return {}
    try:
        imports = [*_imports(ast.parse(read_text(file)), True)]
    except (SyntaxError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ProjectError(f"{file}, line {line}: {error.args[0]}, expected Python") from error
    except (OSError, ValueError) as error:
        raise ProjectError(explain_unreadable(error)) from error
    found: dict[str, bool] = {}
    for module, at_once in imports:
        found[module] = found.get(module, False) or at_once
    return found


def _imports(node: ast.AST, at_once: bool) -> Iterator[tuple[str, bool]]:
    """Yield the modules that code imports, and whether outside of functions."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, at_once) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        yield node.module, at_once
    inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, at_once and not inside)


def _place_of(name: str) -> Path | None:
    """Return the file of a module, or the folder of a package; None where there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # somebody has put None in its place
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec.origin and Path(spec.origin).is_file() else None


def _files_at(place: Path) -> Iterator[Path]:
    """Yield the file of a module, or the Python files of a package."""
    if place.is_file():
        yield place
        return
    for file in sorted(place.rglob("*.py")):
        if not any(part.startswith(".") for part in file.relative_to(place).parts):
            yield file


def _requirements(names: Iterable[str]) -> tuple[str, ...]:
    """Return the lines of `requirements.txt` for installed modules, in the versions that are installed."""
    packages = packages_distributions()
    found = {package for name in names for package in packages.get(name, ())[:1]}
    return tuple(f"{package}=={version(package)}" for package in sorted(found))
