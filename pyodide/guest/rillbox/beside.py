"""The modules beside a program: before the standard library's and any package's, as in CPython.

`follow` finds them by the imports in a program's code and in theirs; nothing of it runs.
`Loader` loads them, which were compiled for that already, under the names that the
program's user has for their files.
"""

import _imp
import linecache
import opcode
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import decode_source
from types import CodeType
from typing import Any

from . import computed, names
from .errors import HOME, WORKSPACE

# How many files of its own a program is followed through.
MOST = 1000
# What may come of reading a module; its import says why.
UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
# Names that code has where it imports otherwise than by a statement; see computed.py.
CALLS = {*computed.IMPORTERS, "run_path", "pkgutil", "iter_modules", "walk_packages", "__path__"}

# Modules that run the tests of a directory, and what its files are called.
TESTERS = ("pytest", "unittest")
TEST = re.compile(r"test.*\.py|.*_test\.py|conftest\.py")

# How many bytes are read at a time; most files are smaller.
PART = 1 << 16

# A module's path → what was read from it, and its code.
COMPILED: dict[str, tuple[bytes, CodeType]] = {}


def read(path: str) -> bytes:
    """A file's content, with a third of the system calls that open() makes."""
    file = os.open(path, os.O_RDONLY)
    try:
        data = part = os.read(file, PART)
        while len(part) == PART:
            part = os.read(file, PART)
            data += part
        return data
    finally:
        os.close(file)


@dataclass
class Imports:
    """What a program with its own modules imports."""

    modules: list[str]  # by their whole names
    own: set[str]  # of these at the top, the program's own
    outside: str  # a directory on its sys.path that is none of its own, or nothing


def follow(code: Iterable[CodeType], text: str, path: str, directory: str) -> Imports:
    """What a program imports; its modules are in directory, and where it puts on sys.path."""
    follower = Follower(directory)
    with warnings.catch_warnings(record=True) as follower.warned:
        follower.follow(path, "", code, text)
        for file in follower.queue:
            follower.follow(*file)
    return follower.imports()


class Follower:
    """Follows a program through its modules."""

    def __init__(self, directory: str) -> None:
        """Begin with the program's directory, which is first on sys.path."""
        self.queue: list[tuple[str, str, Iterable[CodeType], bytes]] = []
        self.warned: list[Any] | None = []
        self._directory = directory
        self._before = dict.fromkeys([directory, *filter(is_ours, sys.path)])
        self._after: dict[str, None] = {}  # of directories after packages and all
        self._outside = ""
        self._found: dict[str, None] = {}
        self._seen: dict[str, bytes | None] = {}
        self._entries: dict[str, set[str]] = {}

    def imports(self) -> Imports:
        """What was found."""
        own = set()
        for name in self._found:
            top = name.partition(".")[0]
            if top not in own and any(self._files(name)):
                own.add(top)
        return Imports([*self._found], own, self._outside)

    def follow(self, path: str, package: str, code: Iterable[CodeType], text: str | bytes) -> None:
        """Follow one file, in a package or none."""
        used: set[str] = set()
        named = dict.fromkeys(_imports(code, package, used))
        for name in named:
            self._import(name)
        if not (used & CALLS or ("sys" in used and "path" in used) or "addsitedir" in used):
            return
        tree = computed.Tree(text, path)
        for place, before in tree.added():
            self._search(place, before)
        for name, whole in tree.imported(package):
            self._import(name)
            if whole:
                self._all(name)
            if name in TESTERS:
                self._tests()
        for place in tree.searched():
            if place.endswith(".py"):
                self._add(place, "")
            else:
                self._folder(place, os.path.relpath(place, next(iter(self._before))))
        if used & {"pkgutil", "iter_modules", "walk_packages", "__path__"}:
            for name in {package, *named} - {""}:
                self._all(name)

    def _search(self, place: str, before: bool) -> None:
        """Look for modules in another directory too."""
        if place in self._before or place in self._after:
            return
        if not (is_ours(place) and os.path.isdir(place)) or place == HOME:
            if not is_within(place, self._directory) and not is_within(place, WORKSPACE):
                beyond = is_within(self._directory, place) or is_ours(place)
                self._outside = os.path.relpath(place, self._directory) if beyond else place
            return
        if before:
            self._before = {place: None, **self._before}
        else:
            self._after[place] = None
        for name in [*self._found]:
            self._import(name)

    def _import(self, name: str) -> None:
        name, star, _ = name.partition(".*")
        self._found[name] = None
        for path, package in self._files(name):
            data = self._add(path, package)
            if star and data and package == name:
                for one in computed.listed(data):
                    self._import(f"{name}.{one}")

    def _add(self, path: str, package: str) -> bytes | None:
        """Follow another file too; gives its content, if it can be compiled."""
        if path not in self._seen and len(self._seen) < MOST:
            data = None
            try:
                data = read(path)
                self.queue.append((path, package, [self._compiled(data, path)], data))
            except UNREADABLE:
                data = None
            self._seen[path] = data
        return self._seen.get(path)

    def _compiled(self, data: bytes, path: str) -> CodeType:
        known = COMPILED.get(path)
        if known and known[0] == data:
            return known[1]
        before = len(self.warned or ())
        code = compile(data, shown(path), "exec", dont_inherit=True)
        if len(self.warned or ()) == before:  # else it warns when it is imported
            COMPILED[path] = data, code
        return code

    def _all(self, name: str) -> None:
        """Follow all modules of one of the program's packages."""
        for place in self._places(name):
            self._folder(os.path.join(place, *name.split(".")), name)

    def _folder(self, folder: str, package: str) -> None:
        """Follow all modules in a folder, and those of the packages in it."""
        for entry in sorted(self._listed(folder)):
            extension = os.path.splitext(entry)[1]
            path = os.path.join(folder, entry)
            if extension == ".py":
                self._add(path, package)
            elif not extension and "__init__.py" in self._listed(path):
                self._folder(path, f"{package}.{entry}")

    def _tests(self) -> None:
        """Follow the files of tests in the program's directory."""
        for count, (folder, folders, entries) in enumerate(os.walk(self._directory)):
            if "pyvenv.cfg" in entries or count > MOST:
                folders.clear()
                continue
            folders[:] = [name for name in folders if name[0] != "." and name != "node_modules"]
            package = ""
            if "__init__.py" in entries:
                package = os.path.relpath(folder, self._directory).replace("/", ".")
            for entry in entries:
                if TEST.fullmatch(entry):
                    self._add(os.path.join(folder, entry), package.strip("."))

    def _places(self, name: str) -> Iterator[str]:
        """Where a module is looked for, apart from packages."""
        top = name.partition(".")[0]
        if not _comes_first(top):
            yield from self._before
            if not names.is_own(top):
                yield from self._after

    def _files(self, name: str) -> list[tuple[str, str]]:
        """The program's files that an import of a module runs, each with its package."""
        for place in self._places(name):
            found = []
            folder, package = place, ""
            for part in name.split("."):
                entries, folder = self._listed(folder), os.path.join(folder, part)
                inner = f"{package}.{part}" if package else part
                if part in entries and "__init__.py" in self._listed(folder):
                    found.append((f"{folder}/__init__.py", inner))
                elif f"{part}.py" in entries:
                    found.append((f"{folder}.py", package))
                    break
                elif part not in entries:
                    break
                package = inner
            if found:
                return found
        return []

    def _listed(self, folder: str) -> set[str]:
        """What is in a folder."""
        if folder not in self._entries:
            try:
                self._entries[folder] = set(os.listdir(folder))
            except OSError:
                self._entries[folder] = set()
        return self._entries[folder]


def _comes_first(module: str) -> bool:
    """Whether a module at the top is one that CPython has before any directory, or by then."""
    return module == "encodings" or _imp.is_builtin(module) != 0 or _imp.is_frozen(module)


IMPORT = opcode.opmap["IMPORT_NAME"]
SMALL = opcode.opmap.get("LOAD_SMALL_INT")


def _imports(code: Iterable[CodeType], package: str, used: set[str]) -> Iterator[str]:
    """What code in a package imports: modules, and names that may be modules.

    `from x import *` gives `x.*`. What names the code uses is added to used.
    """
    codes = [*code]
    for one in codes:
        used.update(one.co_names)
        codes.extend(inner for inner in one.co_consts if isinstance(inner, CodeType))
        text = one.co_code
        instructions = text[::2]
        at = instructions.find(IMPORT)
        while at >= 0:
            module, before = _operand(text, 2 * at)
            names_of, before = _operand(text, before)
            level, _ = _operand(text, before)
            if text[before] != SMALL:
                level = one.co_consts[level]
            yield from _named(one.co_names[module], one.co_consts[names_of], level, package)
            at = instructions.find(IMPORT, at + 1)


def _operand(text: bytes, at: int) -> tuple[int, int]:
    """The operand of the instruction at a place, and the place of the one before."""
    value, shift = text[at + 1], 8
    while at >= 2 and text[at - 2] == opcode.EXTENDED_ARG:
        at -= 2
        value |= text[at + 1] << shift
        shift += 8
    return value, at - 2


def _named(
    module: str, fromlist: tuple[str, ...] | None, level: int, package: str
) -> Iterator[str]:
    """The modules that an import in a package names."""
    if level:
        parts = package.split(".") if package else []
        if level > len(parts):
            return  # it leads out of what is a package
        module = ".".join([*parts[: len(parts) - level + 1], *filter(None, [module])])
    yield module
    # `from google import protobuf` imports a module too, or a name.
    yield from (f"{module}.{name}" for name in fromlist or ())


def is_ours(path: str) -> bool:
    """Whether a path is where programs and their workspaces are."""
    return is_within(path, HOME) or is_within(path, WORKSPACE)


def is_within(path: str, directory: str) -> bool:
    """Whether a path is a directory or in it."""
    return f"{path}/".startswith(f"{directory}/")


def shown(path: str) -> str:
    """A program's file by the path that its user has for it."""
    return path.removeprefix(f"{WORKSPACE}/").removeprefix(f"{HOME}/")


class Loader(SourceFileLoader):
    """Loads a module of the program's."""

    def get_data(self, path: Any) -> bytes:
        """The content of a file of its package's, or its own."""
        return read(path)

    def get_code(self, fullname: str) -> CodeType:
        """The module's code; it may be compiled already."""
        path = self.get_filename(fullname)
        data = self.get_data(path)
        known = COMPILED.get(path)
        # Its name may lead nowhere, or elsewhere once the program changes its directory.
        lines = [f"{line}\n" for line in _text(data).splitlines()]
        linecache.cache[shown(path)] = (len(data), None, lines, shown(path))
        return known[1] if known and known[0] == data else self.source_to_code(data, path)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
        """Compile it, under the name that its user has for it."""
        return compile(data, shown(path), "exec", dont_inherit=True, optimize=_optimize)  # type: ignore


def _text(data: bytes) -> str:
    """A module's text; none where it can't be told."""
    try:
        return decode_source(data) if b"coding" in data[:400] else data.decode()
    except (SyntaxError, ValueError):
        return ""


LOADERS = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (Loader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


def find_in(path: str) -> FileFinder:
    """Find modules in a directory of the program's; one of sys.path_hooks."""
    if is_ours(os.path.abspath(path)) and os.path.isdir(path):
        return FileFinder(path, *LOADERS)
    raise ImportError("it is no directory of the program's", path=path)


def precede(own: set[str]) -> None:
    """Forget what is imported under the names of the program's own modules."""
    for name in [*sys.modules]:
        if name.partition(".")[0] in own:
            del sys.modules[name]
