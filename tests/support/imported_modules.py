"""List the modules that a module imports."""

import ast
from functools import cache
from pathlib import Path


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules a file imports, by their full names."""
    return frozenset(imports_of(ast.parse(path.read_text())))


def imports_of(tree: ast.AST) -> set[str]:
    """Return the modules that parsed code imports, by their full names."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found
