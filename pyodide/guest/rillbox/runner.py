"""Runs one Python program as `python main.py` would, and says how it ended.

`Runner.start` is what the worker calls. A request goes through four steps: parse,
install what the program imports and asks for, run, report. Nothing of the
guest's runs before the `started` frame; from then on every frame is a claim.
"""

import __future__

import ast
import asyncio
import atexit
import binascii
import errno
import importlib
import json
import linecache
import logging
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from . import beside, display, errors, figures, magics, packages, streams, threads, values
from . import command as command
from .errors import HOME
from .eventloop import Runs
from .network import NETWORK

if TYPE_CHECKING:  # it needs Pyodide
    from .installer import Installer

# How many files that are lost are named.
MOST_LOST = 3
NOTHING = compile("", "<nothing>", "exec")
CO_COROUTINE = 0x80
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# What `from __future__ import` may change; all else has become the language.
FUTURES = __future__.annotations.compiler_flag | __future__.barry_as_FLUFL.compiler_flag


@dataclass
class Program:
    """A request: the program and what surrounds it."""

    code: str
    limit: int
    displays: int
    gateway: str
    name: str = "main.py"  # of its file; then that which its user sees
    args: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # beside it, in base64
    folder: str = ""  # that its user has its file in, from the current one
    path: str = ""  # of its file in the workspace, if it is there
    env: dict[str, str] = field(default_factory=dict)
    echo: bool = False
    # What its project says: versions of packages (PEP 508), names that are no package's with
    # the reason, and whether a lock file must have all that is imported.
    constraints: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    frozen: bool = False
    fetch_only: bool = False  # what it needs, and run none of it
    file: str = field(init=False)  # where it is
    directory: str = field(init=False)  # where its own modules are

    def __post_init__(self) -> None:
        self.name = self.path or os.path.join(self.folder, self.name)
        current = os.getcwd()
        self.file = os.path.join(current if self.path else HOME, self.name)
        self.directory = current
        if self.path or self.files or current == HOME:
            self.directory = os.path.dirname(self.file)


@dataclass
class Ending:
    """How a program ended: its exit code, and its value or its error."""

    code: int
    value: str | None = None
    error: dict[str, str] | None = None

    def frame(self) -> str:
        if self.error is not None:
            return json.dumps({"type": "result", "error": self.error})
        if self.value is not None:
            return f'{{"type":"result","value":{self.value}}}'
        return '{"type":"result"}'


class Runner:
    """Takes programs through their steps, each in the interpreter as the last one left it."""

    def __init__(self, host: packages.Host, runs: Runs, installer: "Installer") -> None:
        self._host = host
        self._runs = runs
        self._installer = installer
        self._missing: dict[str, str] = {}  # imports that could not be installed → why
        self._placed: set[str] = set()  # our files in HOME

    def take(self, program: Program) -> Ending:
        """Read a program, install what it needs, prepare and run it; tell how it ended."""
        add_source(program)
        self._place(program)
        NETWORK.gateway = program.gateway
        try:
            body, last, imports = read(program)
            want = packages.wanted(program.code, program.packages, imports)
            want.constraints, want.refused = program.constraints, program.refused
            want.frozen = program.frozen
        except UNREADABLE as error:
            return Ending(1, error=errors.describe(_shown(error, program.name), program.limit))
        try:
            self._missing.update(
                packages.install(want, self._installer, program.gateway, self._host, self._wait)
            )
        except packages.PackageError as error:
            return Ending(1, error={"name": "PackageError", "message": str(error), "traceback": ""})
        if program.fetch_only:
            return Ending(0)
        self._prepare(program, imports)
        display.begin(self._host.send, program.displays)
        self._host.send('{"type":"started"}')
        return self._run(program, body, last)

    def start(self, line: str) -> int:
        """Run the program that the request in line holds, and return the exit code."""
        ending = self.take(Program(**json.loads(line)))
        streams.flush()
        self._host.send(ending.frame())
        return ending.code

    def _wait(self, awaitable: Any) -> Any:
        """Wait for an awaitable."""
        return self._runs.until_complete(awaitable)

    def _place(self, program: Program) -> None:
        """Put the program's files where they are found before all but built-in modules."""
        place = os.path.dirname(program.file)
        files = {
            os.path.join(place, name): binascii.a2b_base64(content)
            for name, content in program.files.items()
        }
        if not program.path:
            files[program.file] = program.code.encode(errors="surrogatepass")
        self._placed.update(files)
        for folder in {os.path.dirname(path) for path in files} - {HOME}:
            os.makedirs(folder, exist_ok=True)
        for path, content in files.items():
            with open(path, "wb", buffering=0) as file:
                file.write(content)
        sys.path[:] = [program.directory, *(path for path in sys.path if path)]
        if program.files:
            importlib.invalidate_caches()

    def _prepare(self, program: Program, imports: beside.Imports) -> None:
        """Give the interpreter the state that a new process has for its program."""
        begin(program.env)
        beside.precede(imports.own)
        sys.modules["__main__"].__dict__["__file__"] = program.file
        sys.argv = [program.name, *program.args]

    def _run(self, program: Program, body: CodeType, last: CodeType | None) -> Ending:
        """Run the program's code in __main__ and tell how it ended."""
        before = asyncio.all_tasks(asyncio.get_event_loop())
        try:
            ending, _ = evaluate(program, body, last, self._wait)
        except BaseException as error:
            ending = ending_of(error, program.limit, self._missing)
        _finish(self._runs, before, warn=ending.code == 0)
        quietly(lambda: _tell_of_lost(self._placed))
        return ending


def _tell_of_lost(placed: set[str]) -> None:
    """Tell of files that the program leaves where they are lost with it."""
    entries = [name for name in os.listdir(HOME) if not name.startswith((".", "__"))]
    if {os.path.join(HOME, name) for name in entries} <= placed:
        return
    lost = []
    for folder, folders, names in os.walk(HOME):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        paths = [os.path.join(folder, name) for name in names if not name.startswith(".")]
        lost += [beside.shown(path) for path in paths if path not in placed]
        if len(lost) > MOST_LOST:
            break
    if lost:
        more = " and others are" if len(lost) > MOST_LOST else " are" if len(lost) > 1 else " is"
        display.SCREEN.note(
            f"{', '.join(sorted(lost)[:MOST_LOST])}{more} lost with the run: the program has no "
            "directory of files; files or session_id gives it one"
        )


NO_PROCESSES = (
    "WebAssembly has no other processes; concurrent.futures.ThreadPoolExecutor and "
    "threading.Thread take turns here."
)

# What reading a program may raise.
UNREADABLE = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)


def read(program: Program) -> tuple[CodeType, CodeType | None, beside.Imports]:
    """A program's statements, its last one if it is an expression, and what it imports."""
    tree, text, asked = magics.parse(program.code, program.name)
    program.packages += asked
    body, last = compile_program(tree, program.name)
    codes = [code for code in (body, last) if code]
    return body, last, beside.follow(codes, text, program.file, program.directory)


def _shown(error: Exception, name: str) -> Exception:
    if isinstance(error, SyntaxError) and error.filename == "<unknown>":
        error.filename = name
    return error.with_traceback(None)


def compile_program(tree: ast.Module, name: str) -> tuple[CodeType, CodeType | None]:
    """The program's statements, and its last one apart if it is an expression."""
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    body = NOTHING
    if tree.body:
        body = compile(tree, name, "exec", flags=AWAIT, dont_inherit=True)
    if last is None:
        return body, None
    flags = AWAIT | body.co_flags & FUTURES
    return body, compile(last, name, "eval", flags=flags, dont_inherit=True)


def add_source(program: Program) -> None:
    """Let tracebacks and inspect show the program's lines, wherever it runs."""
    lines = program.code.splitlines(keepends=True)
    linecache.cache[program.name] = (len(program.code), None, lines, program.name)


def renew() -> None:
    """Make what the snapshot holds new. No program is needed for it, so none waits for it."""
    sys.executable = "python"  # what usage messages show; there is no such file
    random.seed()  # the snapshot's would be the same in every run
    os.environ["MPLBACKEND"] = figures.BACKEND
    # finalizeSetup puts "" before what the snapshot has already.
    sys.path[:] = list(dict.fromkeys(sys.path))
    names = sys.modules["__main__"].__dict__
    names.clear()
    names.update(ModuleType("__main__").__dict__, __builtins__=__builtins__)
    streams.open_standard()


def begin(env: dict[str, str]) -> None:
    """Make the time and the environment those of a program."""
    logging._startTime = time.time_ns()  # type: ignore[attr-defined]
    os.environ.update(env)


def evaluate(
    program: Program, body: CodeType, last: CodeType | None, wait: Callable[[Any], Any]
) -> tuple[Ending, Any]:
    """Run code in __main__, and show what it leaves; its ending, and its value as it is."""
    space = sys.modules["__main__"].__dict__
    value = None
    try:
        for code in (body, last):
            if code is None:
                continue
            value = eval(code, space)
            if code.co_flags & CO_COROUTINE:
                value = wait(value)
        if asyncio.iscoroutine(value) or asyncio.isfuture(value):
            value = wait(value)
        ending = Ending(0, value=values.encode(value, program.limit))
        display.SCREEN.finish(value, program.echo)
    except BaseException:
        quietly(display.SCREEN.finish)
        raise
    return ending, value


def ending_of(error: BaseException, limit: int, missing: dict[str, str]) -> Ending:
    """The ending that an uncaught exception makes."""
    if isinstance(error, SystemExit):
        return _exit(error.code)
    hint = ""
    if isinstance(error, ImportError) and error.name:
        top = error.name.partition(".")[0]
        related = [m for m in missing if m in (error.name, top) or m.startswith(f"{error.name}.")]
        hint = "\n".join(missing[module] for module in related)
        # Else it is a name in it that is not there.
        absent = isinstance(error, ModuleNotFoundError)
        if top == "_multiprocessing":
            hint = NO_PROCESSES
        if not hint and absent and top in sys.stdlib_module_names:
            hint = f"{top} is in Python's standard library, but not in WebAssembly's."
    if isinstance(error, NotImplementedError) and "multiprocessing" in errors.message_of(error):
        hint = NO_PROCESSES
    if type(error).__name__ == "ZoneInfoNotFoundError":
        hint = "Time zones are in the package tzdata; name it in packages."
    if _of_socket(error) or _of_socket(error.__context__):
        hint = "A program can connect by TCP here, but neither listen nor use UDP."
    if isinstance(error, FileNotFoundError):
        hint = hint or _of_file(error)
    code = 130 if isinstance(error, KeyboardInterrupt) else 1
    return Ending(code, error=errors.describe(error, limit, hint))


def _of_socket(error: BaseException | None) -> bool:
    """Whether a socket was to do what none can here."""
    if not isinstance(error, OSError):
        return False
    number = OSError.errno.__get__(error)  # type: ignore # not what a class of the program's gives
    return type(number) is int and number == errno.ENETDOWN


def _of_file(error: FileNotFoundError) -> str:
    """How a program could have a file that it looked for in a place it has not."""
    path = OSError.filename.__get__(error)  # type: ignore # not what a class of the program's gives
    if type(path) is not str:
        return ""
    if not path.startswith("/") or path.startswith(("/workspace/", f"{HOME}/")):
        if os.getcwd() != HOME:  # a workspace's
            return ""
        return "The program has no directory of files; files or session_id gives it one."
    if os.path.isdir(os.path.dirname(path)) or any(c.isspace() for c in path):
        return ""
    return f"The operator can allow it with --allow-read={path} in PYODIDE_PERMISSION_ARGS."


def _exit(code: Any) -> Ending:
    if code is None:
        return Ending(0)
    if isinstance(code, int):
        # As CPython has it: -1 stands for what is no long of the machine's.
        return Ending(code & 0xFF if -(1 << 63) <= code < 1 << 63 else 255)
    quietly(lambda: print(code, file=sys.stderr))
    return Ending(1)


def _finish(runs: Runs, before: set[asyncio.Task[Any]], warn: bool) -> None:
    """Do what CPython does at the end: leftover threads and tasks, atexit, flush."""
    waiting: list[str] = []
    quietly(lambda: waiting.extend(threads.finish()))
    if waiting and warn:
        text = f"Warning: the program ended before these threads did: {', '.join(sorted(waiting))}"
        quietly(lambda: print(text, file=sys.stderr))
    left = asyncio.all_tasks(asyncio.get_event_loop()) - before - {*threads.naps}
    if left:
        names = ", ".join(sorted(task.get_coro().__qualname__ for task in left))  # type: ignore
        if warn:
            text = f"Warning: the program ended before these tasks did: {names}"
            quietly(lambda: print(text, file=sys.stderr))
        quietly(lambda: runs.cancel(left))
    quietly(atexit._run_exitfuncs)


def quietly(step: Callable[[], Any]) -> None:
    """Take a step of the ending; a failure there does not change how it ended."""
    try:
        step()
    except BaseException as error:
        errors.clean(error)
        sys.excepthook(type(error), error, error.__traceback__)
