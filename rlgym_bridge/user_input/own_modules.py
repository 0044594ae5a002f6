"""Find the modules of a user's own that a bot imports, and the packages that those import; nothing is run."""

import ast
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Final

from rlgym_bridge.user_input.text_files import explain_unreadable, read_bytes, read_text
from rlgym_bridge.user_input.user_modules import INSTALLED, places_of

MOST_SOURCES: Final = 500
"""Files of modules that a policy carries at most."""

MOST_SOURCE_BYTES: Final = 4 << 20
"""Their size at most, in bytes."""

_LOG: Final = logging.getLogger(__name__)
_HELD: Final[dict[Path, bytes]] = {}
_COME_ALONG: Final = ("numpy", "rlbot", "rlgym")  # with rlgym_bridge


@dataclass(frozen=True)
class OwnModules:
    """Modules of a user."""

    files: Mapping[str, Path]  # files by their paths in the bot's folder, with slashes
    # lines of `requirements.txt` for what they import when they are imported themselves
    requirements: tuple[str, ...]
    missing: tuple[str, ...]  # names that nobody has; they may be imported where they are needed alone

    @property
    def modules(self) -> tuple[str, ...]:
        """Their names, with dots."""
        paths = (Path(path).with_suffix("") for path in self.files)
        return tuple(".".join(path.parts).removesuffix(".__init__") for path in paths)


def find_own_modules(needed: Iterable[str]) -> OwnModules:
    """Find modules by name, and those that they import, as whole packages, for a packaged bot."""
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
        elif _is_installed(place):
            installed.add(name)
        else:
            inside = [place] if place.is_file() else sorted(place.rglob("*.py"))
            hidden = {one for one in inside if any(p.startswith(".") for p in one.relative_to(place).parts)}
            for file in (one for one in inside if one not in hidden):
                files[file.relative_to(place.parent).as_posix()] = file
                found = imported_by(file)
                waiting += found
                early |= {module.partition(".")[0] for module, at_once in found.items() if at_once}
    wanted = (installed & early) - {*_COME_ALONG, "torch"}
    packages = packages_distributions() if wanted else {}  # it reads all that is installed
    required = sorted({package for name in wanted for package in packages.get(name, ())[:1]})
    lines = tuple(f"{package}=={version(package)}" for package in required)
    return OwnModules(files, lines, tuple(sorted(missing)))


def read_own_sources(names: Iterable[str], hold: bool = False) -> dict[str, bytes]:
    """Read the user's own Python files among some modules and all that they import, for a policy.

    Return contents by path from the folder in which Python finds the module, with slashes; nothing, with a
    warning in the log, if they are too many or one cannot be read. With `hold` later calls in this process
    return these files as they are now: a run has imported them, and its user may change them while it trains.
    """
    try:
        files = trace_own_files(names)
        sources = {
            path: _HELD.get(file) or read_bytes(file, MOST_SOURCE_BYTES, "a module")
            for path, file in files.items()
        }
    except (OSError, ValueError) as error:
        _LOG.warning("the policy carries no copy of your modules: %s", error)
        return {}
    if hold:
        _HELD.update((file, sources[path]) for path, file in files.items())
    if len(sources) > MOST_SOURCES or sum(map(len, sources.values())) > MOST_SOURCE_BYTES:
        _LOG.warning(
            "the policy carries no copy of your modules: they are %d files of %d bytes, expected %d of %d at "
            "most", len(sources), sum(map(len, sources.values())), MOST_SOURCES, MOST_SOURCE_BYTES,
        )  # fmt: skip
        return {}
    return sources


def trace_own_files(names: Iterable[str]) -> dict[str, Path]:
    """Find the user's own Python files among some modules and all that they import.

    They are named by path from the folder in which Python finds the module, with slashes. Raises ValueError
    if one cannot be read as Python.
    """
    waiting, seen = list(names), set[str]()
    roots: dict[str, Path | None] = {}
    files: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        first = name.partition(".")[0]
        if name in seen:
            continue
        seen.add(name)
        if first not in roots:
            place = None if first in {"rlgym_bridge", *sys.stdlib_module_names} else _place_of(first)
            roots[first] = None if place is None or _is_installed(place) else place.parent
        if (root := roots[first]) is None:
            continue
        for file, package in _files_of(root, name):
            path = file.relative_to(root).as_posix()
            if path not in files:
                files[path] = file
                waiting += imported_by(file, package)
    return files


def _is_installed(place: Path) -> bool:
    return any(part in INSTALLED for part in place.parts)


def _files_of(root: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the Python files that the import of a module runs, each with the package that it lies in."""
    folder, package = root, ""
    for part in name.split("."):
        if (file := folder / f"{part}.py").is_file():
            yield file, package
            return
        folder, package = folder / part, f"{package}.{part}".strip(".")
        if (file := folder / "__init__.py").is_file():
            yield file, package


def imported_by(file: Path, package: str | None = None) -> dict[str, bool]:
    """Return the modules that a file may import, by name: whether at once, when it is imported itself.

    Names have dots; of `from a import b` there are both `a` and `a.b`. `package` is the one that the file
    lies in; None leaves out relative imports. Raises ValueError if it cannot be read as Python.
    """
    found: dict[str, bool] = {}
    waiting: list[tuple[ast.AST, bool]] = [(_parsed(file), True)] if file.suffix == ".py" else []
    while waiting:
        node, at_once = waiting.pop()
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not (node.level and package is None):
            parts = (package or "").split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*parts, *filter(None, [node.module])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for name in names:
            found[name] = found.get(name, False) or at_once
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting += [(child, at_once and not inside) for child in ast.iter_child_nodes(node)]
    return found


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(read_text(file))
    except (SyntaxError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ValueError(f"{file}, line {line}: {error.args[0]}, expected Python") from error
    except (OSError, ValueError) as error:
        raise ValueError(explain_unreadable(error)) from error


def _place_of(name: str) -> Path | None:
    """Return the file of a module, or the folder of a package; None where there is none."""
    return next((one for one in places_of(name) if one.exists()), None)
