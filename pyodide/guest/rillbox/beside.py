"""The modules beside a program: before the standard library's and any package's, as in CPython."""

import _imp
import ast
import os
import sys
from collections.abc import Iterator

# How many files of its own a program is followed through.
MOST = 1000


def imported(tree: ast.AST, directory: str) -> list[str]:
    """The modules, by their whole names, that a program and its own modules import."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    queue: list[tuple[ast.AST, str]] = [(tree, "")]
    for tree, package in queue:
        for name in _imports(tree, package):
            found[name] = None
            for path, inside in _files(name, directory):
                if path in seen or len(seen) == MOST:
                    continue
                seen.add(path)
                try:
                    with open(path, "rb") as file:
                        queue.append((ast.parse(file.read()), inside))
                except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                    pass  # its import says why
    return list(found)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """What a module of a package imports: modules, and names that may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if node.level else []
            if node.level and (not package or node.level > len(parts)):
                continue  # it leads out of what is a package
            parts = parts[: len(parts) - node.level + 1] if node.level else []
            name = ".".join([*parts, node.module] if node.module else parts)
            yield name
            # `from google import protobuf` imports a module too, or a name.
            yield from (f"{name}.{alias.name}" for alias in node.names if alias.name != "*")


def _files(name: str, directory: str) -> Iterator[tuple[str, str]]:
    """The files in directory that an import of a module runs, each with the package it is in."""
    path, package = directory, ""
    for part in name.split("."):
        path = os.path.join(path, part)
        if os.path.isfile(f"{path}.py"):
            yield f"{path}.py", package
        package = f"{package}.{part}" if package else part
        if os.path.isfile(f"{path}/__init__.py"):
            yield f"{path}/__init__.py", package
        elif not os.path.isdir(path):
            return


def is_beside(module: str, directory: str) -> bool:
    """Whether a module at the top is a program's own: CPython has only its built-in ones before."""
    if _imp.is_builtin(module) or _imp.is_frozen(module):
        return False
    path = os.path.join(directory, module)
    return os.path.isfile(f"{path}.py") or os.path.isfile(f"{path}/__init__.py")


def precede(modules: list[str], directory: str) -> None:
    """Forget what is imported under the name of a program's own module."""
    for top in {name.partition(".")[0] for name in modules}:
        if top in sys.modules and is_beside(top, directory):
            for name in [*sys.modules]:
                if name == top or name.startswith(f"{top}."):
                    del sys.modules[name]
