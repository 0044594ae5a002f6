"""Simulate power cuts: record the calls that write below a folder, and enumerate what a disk may hold then.

    calls of a program -> Calls -> crash_states: folders that a power cut after any of the calls may leave

POSIX promises only this: the data of a file is on the disk after fsync of the file, its name after fsync of
its folder. Of everything else any part may survive. A rename happens whole or not at all, as on file systems
with a journal.
"""

import io
import itertools
import os
import random
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

Tree = dict[str, bytes | None]
"""Files below a folder by relative path, with their content; None for a folder."""

_MOST_STATES: Final = 128  # of one call; beyond it as many are drawn


@dataclass
class _Node:
    """A file or a folder, whatever its name.

    `calls` are those on it since it was last synced: bytes that were added, or functions that change names.
    """

    is_folder: bool
    data: bytes = b""
    names: "dict[str, _Node]" = field(default_factory=dict)
    calls: list[Any] = field(default_factory=list)


class Calls:
    """Records the calls that write below a folder, until the test ends.

    Args:
        root: The folder; what it holds already is on the disk.
        monkeypatch: Puts back what is replaced here.

    Attributes:
        states: What a power cut may leave, for each call: before the first, after the first, and so on.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._top = _read(root)
        self._open: dict[int, _Node] = {}
        self.states = [crash_states(self._top)]
        real = {name: getattr(os, name) for name in ("open", "close", "mkdir", "replace", "unlink", "rmdir")}
        self._real, self._real_open = real, io.open
        monkeypatch.setattr(shutil, "_use_fd_functions", False)  # so that every call has a whole path
        monkeypatch.setattr(io, "open", self._open_file)
        monkeypatch.setattr("builtins.open", self._open_file)
        monkeypatch.setattr(os, "open", self._open_number)
        monkeypatch.setattr(os, "close", self._close)
        monkeypatch.setattr(os, "fsync", self._sync)
        monkeypatch.setattr(os, "mkdir", self._mkdir)
        for name in ("replace", "rename"):
            monkeypatch.setattr(os, name, self._rename)
        for name in ("unlink", "remove"):
            monkeypatch.setattr(os, name, lambda path, **more: self._remove("unlink", path, more))
        monkeypatch.setattr(os, "rmdir", lambda path, **more: self._remove("rmdir", path, more))

    def check_recorded(self) -> None:
        """Check that all calls were seen: they make what lies on the disk."""
        assert _tree(self._top, everything=True) == _tree(_read(self._root), everything=True)

    def _parts(self, path: Any) -> tuple[str, ...] | None:
        place = Path.cwd() / path if isinstance(path, str | os.PathLike) else None
        return place.relative_to(self._root).parts if place and place.is_relative_to(self._root) else None

    def _find(self, parts: tuple[str, ...]) -> _Node:
        node = self._top
        for part in parts:
            node = _names(node)[part]
        return node

    def _add(self, node: _Node, call: Any) -> None:
        node.calls.append(call)
        self.states.append(crash_states(self._top))

    def _open_file(self, file: Any, mode: str = "r", buffering: int = -1, *more: Any, **named: Any) -> Any:
        parts = self._parts(file)
        if parts is None or not set(mode) & set("wxa+"):
            return self._real_open(file, mode, buffering, *more, **named)
        assert not Path(file).exists(), f"{file} is written in place"
        node = _Node(is_folder=False)
        raw = _Recorded(self, node, file)
        self._add(self._find(parts[:-1]), ("link", parts[-1], node))
        if "b" in mode:
            return raw if buffering == 0 else io.BufferedWriter(raw)
        return io.TextIOWrapper(io.BufferedWriter(raw), *more, **named)

    def _open_number(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        number: int = self._real["open"](path, flags, *more, **named)
        parts = self._parts(path)
        if parts is not None:
            assert Path(path).is_dir() or flags & os.O_ACCMODE == os.O_RDONLY, f"{path} is written unseen"
            self._open[number] = self._find(parts)
        return number

    def _close(self, number: int) -> None:
        self._open.pop(number, None)
        self._real["close"](number)

    def _sync(self, number: int) -> None:
        node = self._open.get(number)
        if node is None:
            return
        if node.is_folder:
            node.names = _names(node)
        else:
            node.data = b"".join([node.data, *node.calls])
        node.calls = []
        self.states.append(crash_states(self._top))

    def _mkdir(self, path: Any, *more: Any, **named: Any) -> None:
        self._real["mkdir"](path, *more, **named)
        if (parts := self._parts(path)) is not None:
            self._add(self._find(parts[:-1]), ("link", parts[-1], _Node(is_folder=True)))

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        self._real["replace"](source, target, **named)
        before, after = self._parts(source), self._parts(target)
        if before is not None and after is not None:
            assert before[:-1] == after[:-1], "a rename from folder to folder is not simulated"
            self._add(self._find(before[:-1]), ("rename", before[-1], after[-1], self._find(before)))

    def _remove(self, kind: str, path: Any, named: dict[str, Any]) -> None:
        self._real[kind](path, **named)
        if (parts := self._parts(path)) is not None:
            self._add(self._find(parts[:-1]), ("unlink", parts[-1]))


class _Recorded(io.FileIO):
    """A file whose writes are recorded."""

    def __init__(self, calls: Calls, node: _Node, path: Any) -> None:
        super().__init__(path, "x")
        self._calls, self._node, self._number = calls, node, self.fileno()
        calls._open[self._number] = node

    def write(self, data: Any) -> int:
        """Write, and record what was written."""
        written = super().write(data) or 0
        self._calls._add(self._node, bytes(memoryview(data).cast("B")[:written]))
        return written

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._calls._open.pop(self._number, None)
        super().close()


def _read(folder: Path) -> _Node:
    """Return what lies below a folder."""
    node = _Node(is_folder=True)
    for path in folder.iterdir():
        if path.is_dir():
            node.names[path.name] = _read(path)
        else:
            node.names[path.name] = _Node(False, path.read_bytes())
    return node


def _names(node: _Node, survived: tuple[bool, ...] | None = None) -> dict[str, _Node]:
    """Return the names in a folder after all of its calls, or after those that survived."""
    names = dict(node.names)
    for call, there in zip(node.calls, survived or [True] * len(node.calls), strict=True):
        if not there:
            continue
        kind, name, *more = call
        if kind != "link":
            names.pop(name, None)
        if kind != "unlink":
            names[more[-2] if kind == "rename" else name] = more[-1]
    return names


def _choices(node: _Node) -> Iterator[Any]:
    """Yield what may have survived of the calls on a file or a folder."""
    if node.is_folder:
        yield from itertools.product((True, False), repeat=len(node.calls))
        return
    more = b"".join(node.calls)
    yield from dict.fromkeys((more, b"", more[: len(more) // 2], b"\0" * len(more)))


def _count_choices(node: _Node) -> int:
    return 2 ** len(node.calls) if node.is_folder else len(list(_choices(node)))


def _below(node: _Node, found: dict[int, _Node]) -> dict[int, _Node]:
    """Return a folder and everything that it may hold, under its old and its new names."""
    if id(node) not in found:
        found[id(node)] = node
        more = [call[-1] for call in node.calls if node.is_folder and call[0] != "unlink"]
        for one in [*node.names.values(), *more]:
            _below(one, found)
    return found


def _tree(top: _Node, chosen: dict[int, Any] | None = None, everything: bool = False) -> Tree:
    """Return the files below a folder; of unsynced calls those that are chosen, or everything."""
    tree: Tree = {}

    def walk(node: _Node, place: str) -> None:
        choice = None if everything else (chosen or {}).get(id(node))
        if not node.is_folder:
            tree[place] = node.data + (b"".join(node.calls) if everything else choice or b"")
            return
        tree[place] = None
        survived = None if everything or not node.calls else choice
        for name, one in _names(node, survived).items():
            walk(one, f"{place}/{name}")

    walk(top, "")
    return tree


def crash_states(top: _Node) -> list[Tree]:
    """Return the different trees that a power cut may leave now."""
    open_nodes = [node for node in _below(top, {}).values() if node.calls]
    counts = [_count_choices(node) for node in open_nodes]
    total = 1
    for count in counts:
        total *= count
    drawn: Iterable[tuple[Any, ...]]
    if total <= _MOST_STATES:
        drawn = itertools.product(*map(_choices, open_nodes))
    else:
        draws = random.Random(total)
        drawn = (tuple(_draw(node, draws) for node in open_nodes) for _ in range(_MOST_STATES))
    found: dict[Any, Tree] = {}
    for chosen in drawn:
        tree = _tree(top, {id(node): choice for node, choice in zip(open_nodes, chosen, strict=True)})
        found.setdefault(frozenset(tree.items()), tree)
    return list(found.values())


def _draw(node: _Node, draws: random.Random) -> Any:
    if node.is_folder:
        return tuple(draws.random() < 0.5 for _ in node.calls)
    return draws.choice(list(_choices(node)))


def write_tree(tree: Tree, folder: Path) -> None:
    """Make a folder hold a tree."""
    for place, content in sorted(tree.items(), key=lambda item: item[0].count("/")):
        path = folder / place.lstrip("/")
        if content is None:
            path.mkdir(exist_ok=True, parents=True)
        else:
            path.write_bytes(content)
