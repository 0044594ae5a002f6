"""Count what CONTRIBUTING.md asks of the code: `python -m tools.house [CHECKOUT]`.

Prints the numbers of a checkout (this one when none is named), and what falls short of them.
"""

import ast
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LONGEST_FUNCTION: Final = 60

_NAMED: Final = ("rlgym_bridge", "training")
_MEASURED: Final = (*_NAMED, "bot")
_UNNAMED: Final = ("__init__", "__main__")
_QUESTION: Final = re.compile(r"(What|How|Where|When|Which|Who|Whose|Whether|Why)\b")
_ARRAY: Final = re.compile(r"\b(ndarray|NDArray|Tensor)\b")
_SIZE: Final = r"(?:\.\.\.|[\w.]+(?:\s*[-+*/]\s*[\w.]+)*)"
_SHAPE: Final = re.compile(rf"\({_SIZE},(?:\s*{_SIZE},?)*\)|\bshapes?\b|\bscalar\b")


@dataclass(frozen=True)
class Source:
    """A Python file of a checkout, parsed.

    Attributes:
        path: Relative to the checkout.
        lines: How many it has.
    """

    path: Path
    lines: int
    tree: ast.Module


@dataclass(frozen=True)
class ArrayFunction:
    """A public function or method whose annotations name arrays.

    Attributes:
        where: `path:line name`.
        text: Its docstring, and that of its class.
    """

    where: str
    text: str

    @property
    def states_shape(self) -> bool:
        """Say whether the text has a shape such as `(matches, cars, 3)` or compares one."""
        return _SHAPE.search(self.text) is not None


def read_sources(checkout: Path, folders: Sequence[str] = _MEASURED) -> list[Source]:
    """Parse the Python files of a checkout's folders, in the order of their paths."""
    sources = []
    for path in sorted(path for folder in folders for path in (checkout / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        sources.append(Source(path.relative_to(checkout), len(text.splitlines()), ast.parse(text)))
    return sources


def find_reused_files(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Return the module names that several files of a room have, as `room/name`, each with those files."""
    paths = defaultdict(list)
    for source in sources:
        package, *folders = source.path.parts[:-1]
        if package in _NAMED and source.path.stem not in _UNNAMED:
            room = folders[0] if package == "rlgym_bridge" and folders else package
            paths[f"{room}/{source.path.stem}"].append(str(source.path))
    return {name: files for name, files in paths.items() if len(files) > 1}


def find_cycles(sources: Sequence[Source]) -> set[frozenset[str]]:
    """Return the groups of modules that import each other, over others too, wherever an import stands.

    An import inside a function or under `TYPE_CHECKING` counts as any other does. The package's own
    `__init__`, which loads its names when they are asked for, does not count.
    """
    modules = {_module_name(source.path): source for source in sources if source.path.parts[0] in _NAMED}
    del modules["rlgym_bridge"]
    imported = {name: _imported(source.tree) & modules.keys() - {name} for name, source in modules.items()}
    reached = {name: _reach(name, imported) for name in modules}
    return {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in modules
        if name in reached[name]
    }


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    full = ".".join(parts if parts[0] == "rlgym_bridge" else ("rlgym_bridge", *parts))
    return full.removesuffix(".__init__")


def _imported(tree: ast.Module) -> set[str]:
    """Return the full names that a module imports, of modules and of what is in them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _reach(name: str, imported: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that one imports, directly or over others."""
    found: set[str] = set()
    waiting = [*imported[name]]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += imported[one]
    return found


def find_reused_classes(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Return the class names that are defined more than once, each with the files of the definitions."""
    paths = defaultdict(list)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and source.path.parts[0] in _NAMED:
                paths[node.name].append(str(source.path))
    return {name: files for name, files in paths.items() if len(files) > 1}


def find_question_docstrings(sources: Sequence[Source]) -> list[str]:
    """Return `path:line first line` of the docstrings that begin with a question word."""
    return [
        f"{source.path}:{getattr(node, 'lineno', 1)} {docstring.splitlines()[0]}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (docstring := ast.get_docstring(node)) and _QUESTION.match(docstring)
    ]


def find_long_functions(sources: Sequence[Source]) -> dict[str, int]:
    """Return the lines of functions that are longer than `LONGEST_FUNCTION`, by `path:name`."""
    return {
        f"{source.path.as_posix()}:{node.name}": lines
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    }


def _public(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def _public_functions(source: Source) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield the public functions and methods of public classes, each with its class's docstring."""
    for node in _public(source.tree.body):
        if isinstance(node, ast.FunctionDef):
            yield node, ""
        else:
            of_class = ast.get_docstring(node) or ""
            yield from (
                (method, of_class) for method in _public(node.body) if isinstance(method, ast.FunctionDef)
            )


def find_array_functions(sources: Sequence[Source]) -> list[ArrayFunction]:
    """Return the public functions that take or return numpy arrays or torch tensors."""
    functions = []
    for source in sources:
        for node, of_class in _public_functions(source):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            annotations = [node.returns, *(argument.annotation for argument in arguments)]
            if any(_ARRAY.search(ast.unparse(annotation)) for annotation in annotations if annotation):
                text = f"{ast.get_docstring(node) or ''}\n{of_class}"
                functions.append(ArrayFunction(f"{source.path}:{node.lineno} {node.name}", text))
    return functions


def main(arguments: Sequence[str]) -> None:
    """Print the numbers of a checkout and what falls short."""
    checkout = Path(arguments[0]) if arguments else Path(__file__).parents[1]
    sources = read_sources(checkout)
    functions = find_array_functions(sources)
    silent = [function.where for function in functions if not function.states_shape]
    long = find_long_functions(sources)
    lists = {
        "file names used more than once": find_reused_files(sources),
        "class names used more than once": find_reused_classes(sources),
        "docstrings that begin with a question word": find_question_docstrings(sources),
        f"functions over {LONGEST_FUNCTION} lines": [f"{lines} {name}" for name, lines in long.items()],
        "public array functions without a shape": silent,
    }
    for title, entries in lists.items():
        print(f"{title}: {len(entries)}", *entries, sep="\n    ")
    print(f"\nfiles {len(sources)}, median lines {statistics.median(source.lines for source in sources):g}")
    print(f"public array functions {len(functions)}, of which {len(silent)} state no shape")


if __name__ == "__main__":
    main(sys.argv[1:])
