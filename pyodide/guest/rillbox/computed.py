"""What a program imports by calls, and where it looks for modules, as far as its text tells.

Nothing of it runs: expressions of names, paths and literals are worked out.
"""

import ast
import os
from collections.abc import Iterator
from importlib.util import resolve_name

# Calls whose first argument names a module, by the last part of their name.
IMPORTERS = {"import_module", "__import__", "find_spec", "run_module", "_run_module_as_main"}
# Methods of paths that lead to the same place.
SAME = {"resolve", "absolute", "as_posix", "__str__", "expanduser"}
# Functions that do.
PLAIN = {"abspath", "realpath", "normpath", "fspath", "str", "Path", "PurePath"}
# How deep expressions are looked into.
DEPTH = 20


class Tree:
    """A module's syntax tree."""

    def __init__(self, text: str | bytes, file: str) -> None:
        self._file = file
        self._nodes = [*ast.walk(ast.parse(text))]
        self._values: dict[str, ast.expr] = {}  # a name → what is first assigned to it
        for node in self._nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._values.setdefault(node.targets[0].id, node.value)

    def added(self) -> Iterator[tuple[str, bool]]:
        """The directories that are put on sys.path, and whether before what is there."""
        for node in self._nodes:
            name = _called(node)
            if isinstance(node, ast.Call):
                if name == "sys.path.insert" and len(node.args) == 2:
                    yield from self._paths(node.args[1:], before=True)
                elif name in ("sys.path.append", "site.addsitedir", "addsitedir"):
                    yield from self._paths(node.args[:1], before=False)
                elif name == "sys.path.extend":
                    yield from self._paths(_elements(node.args), before=False)
            elif isinstance(node, ast.AugAssign) and _dotted(node.target) == "sys.path":
                yield from self._paths(_elements([node.value]), before=False)
            elif isinstance(node, ast.Assign) and _changes_path(node.targets[0]):
                value, after = node.value, list[ast.expr]()
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
                    value, after = value.left, [value.right]
                single = isinstance(node.targets[0], ast.Subscript) and not _elements([value])
                yield from self._paths([value] if single else _elements([value]), before=True)
                yield from self._paths(_elements(after), before=False)

    def imported(self, package: str) -> Iterator[tuple[str, bool]]:
        """The modules that calls name, as code in a package would import them.

        With True it is a package, of which any module may be meant: its name is computed.
        """
        for node in self._nodes:
            if not isinstance(node, ast.Call):
                continue
            if _called(node).rpartition(".")[2] not in IMPORTERS or not node.args:
                continue
            (name, computed), within = _beginning(node.args[0]), package
            for value in [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "package")]:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    within = value.value
            try:
                if name:
                    yield resolve_name(name, within), computed
            except (ImportError, ValueError):  # it leads out of the package
                continue

    def searched(self) -> Iterator[str]:
        """The directories that are named to pkgutil, and the files that runpy runs."""
        for node in self._nodes:
            if isinstance(node, ast.Call):
                name = _called(node).rpartition(".")[2]
                if name in ("iter_modules", "walk_packages"):
                    found = self._paths(_elements(node.args[:1]), before=False)
                elif name == "run_path":
                    found = self._paths(node.args[:1], before=False)
                else:
                    continue
                yield from (path for path, _ in found)

    def _paths(self, nodes: list[ast.expr], before: bool) -> Iterator[tuple[str, bool]]:
        for node in nodes:
            if isinstance(path := self._path(node, DEPTH), str):
                yield os.path.abspath(path), before

    def _path(self, node: ast.expr, depth: int) -> str | None:
        """The path, or text, that an expression gives; None where that can't be told."""
        depth -= 1
        if depth < 0:
            return None
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id="__file__"):
                return self._file
            case ast.Name(id=name) if name in self._values:
                return self._path(self._values[name], depth)
            case ast.Attribute(value=inner, attr="parent"):
                return _up(self._path(inner, depth), 1)
            case ast.Subscript(
                value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(n))
            ):
                return _up(self._path(inner, depth), n + 1)
            case ast.Attribute() if _dotted(node) in ("os.curdir", "os.pardir", "os.sep"):
                return {"curdir": ".", "pardir": "..", "sep": "/"}[node.attr]
            case ast.BinOp(left=left, right=right, op=ast.Div() | ast.Add() as op):
                between = "/" if isinstance(op, ast.Div) else ""
                return _joined(between, [self._path(left, depth), self._path(right, depth)])
            case ast.JoinedStr(values=parts):
                return _joined("", [self._path(part, depth) for part in parts])
            case ast.FormattedValue(value=inner, format_spec=None):
                return self._path(inner, depth)
            case ast.Call():
                return self._call(node, depth)
        return None

    def _call(self, node: ast.Call, depth: int) -> str | None:
        name = _called(node)
        last = name.rpartition(".")[2]
        given = [self._path(argument, depth) for argument in node.args]
        if last == "getcwd" or last == "cwd":
            return os.getcwd()
        if last == "dirname" and given:
            return _up(given[0], 1)
        if name.endswith("path.join") or (last in PLAIN and given):
            return _joined("/", given)
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in SAME:
                return self._path(node.func.value, depth)
            if node.func.attr == "joinpath":
                return _joined("/", [self._path(node.func.value, depth), *given])
        return None


def listed(text: str | bytes) -> list[str]:
    """What `__all__` of a package has."""
    found = []
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                found.append(value)
            case ast.AugAssign(target=ast.Name(id="__all__"), value=value):
                found.append(value)
            case ast.Expr(value=ast.Call(func=function, args=[value])):
                if _dotted(function) in ("__all__.extend", "__all__.append"):
                    found.append(value)
    parts = [part for value in found for part in (*ast.walk(value),)]
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def _beginning(node: ast.expr) -> tuple[str, bool]:
    """A text; or what comes before its last dot, and True, where the rest is computed."""
    if isinstance(node, ast.Constant):
        return (node.value, False) if isinstance(node.value, str) else ("", False)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return "", False
    name = node.value.rpartition(".")[0]
    dots = len(node.value) - len(node.value.lstrip("."))
    return (name if len(name) > dots else node.value[:dots]), True


def _dotted(node: ast.AST) -> str:
    """The names of a chain of attributes."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


def _called(node: ast.AST) -> str:
    return _dotted(node.func) if isinstance(node, ast.Call) else ""


def _changes_path(target: ast.expr) -> bool:
    return _dotted(target.value if isinstance(target, ast.Subscript) else target) == "sys.path"


def _elements(nodes: list[ast.expr]) -> list[ast.expr]:
    """What lists among the nodes have."""
    lists = [node for node in nodes if isinstance(node, (ast.List, ast.Tuple))]
    return [element for one in lists for element in one.elts]


def _up(path: str | None, levels: int) -> str | None:
    for _ in range(levels):
        path = None if path is None else os.path.dirname(os.path.abspath(path))
    return path


def _joined(between: str, parts: list[str | None]) -> str | None:
    texts = [part for part in parts if part is not None]
    if len(texts) < len(parts):
        return None
    return os.path.join("", *texts) if between else "".join(texts)
