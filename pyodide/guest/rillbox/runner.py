"""Runs one Python program as `python main.py` would, and says how it ended.

`start` is what the worker calls. A request goes through four steps: parse,
install what the program imports and asks for, run, report. Nothing of the
guest's runs before the `started` frame; from then on every frame is a claim.
"""

import ast
import asyncio
import atexit
import errno
import json
import linecache
import logging
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any, Protocol

from . import display, errors, figures, packages, streams, values

HOME = os.path.expanduser("~")  # the snapshot's, and so every worker's
NOTHING = compile("", "<nothing>", "exec")
CO_COROUTINE = 0x80
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Host(Protocol):
    """What the worker gives: the two directions of the wire, and what installs wheels."""

    def send(self, frame: str) -> None:
        """Write one frame."""

    def ask(self, frame: str) -> str:
        """Write one frame and read the request that answers it."""

    def mount(self, image: str, metadata: str) -> None:
        """Make the files of an image appear; see mount.ts."""

    def place(self, wheel: Any, filename: str, directory: str, metadata: str) -> bool:
        """Install a wheel as it is, if that can be; see wheel.ts."""


class Runs(Protocol):
    """What runs coroutines to their end; see eventloop.Runs."""

    def until_complete(self, future: Any) -> Any: ...
    def cancel(self, tasks: set[asyncio.Task[Any]]) -> None: ...


@dataclass
class Program:
    """A request: the program and what surrounds it."""

    code: str
    name: str
    args: list[str]
    packages: list[str]
    env: dict[str, str]
    limit: int
    displays: int
    gateway: str
    echo: bool = False

    @classmethod
    def from_json(cls, request: dict[str, Any]) -> "Program":
        return cls(
            code=request["code"],
            name=request.get("name") or "main.py",
            args=request.get("args") or [],
            packages=request.get("packages") or [],
            env=request.get("env") or {},
            limit=request["limit"],
            displays=request["displays"],
            gateway=request["gateway"],
            echo=request.get("echo") or False,
        )


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


def start(line: str, host: Host, runs: Runs, installer: packages.Installer) -> int:
    """Run the request in line, report to host, and return the exit code."""
    program = Program.from_json(json.loads(line))
    try:
        body, last, wish = read(program)
    except UNREADABLE as error:
        ending = unreadable(program, error)
        host.send(ending.frame())
        return ending.code
    try:
        missing = install(program, wish, installer, host, runs.until_complete)
    except packages.PackageError as error:
        host.send(not_installed(error).frame())
        return 1
    prepare(program)
    display.begin(host.send, program.displays)
    host.send('{"type":"started"}')
    ending = run(program, body, last, runs, missing)
    streams.flush()
    host.send(ending.frame())
    return ending.code


# What reading a program may raise.
UNREADABLE = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)


def read(program: Program) -> tuple[CodeType, CodeType | None, packages.Wanted]:
    """A program's statements, its last one if it is an expression, and what it needs."""
    tree = ast.parse(program.code, program.name)
    body, last = compile_program(tree, program.name)
    return body, last, packages.wanted(program.code, tree, program.packages)


def unreadable(program: Program, error: Exception) -> Ending:
    """The ending of a program that can't be read."""
    add_source(program)
    return Ending(1, error=errors.describe(_shown(error, program.name), program.limit))


def install(
    program: Program,
    wish: packages.Wanted,
    installer: packages.Installer,
    host: Host,
    until_complete: Callable[[Any], Any],
) -> dict[str, str]:
    """Install what a program needs; returns the imports left out, each with the reason."""
    if not packages.needs(wish, installer):
        installer.use(program.gateway, host)
        return {}
    return until_complete(packages.install(wish, installer, program.gateway, host))


def not_installed(error: packages.PackageError) -> Ending:
    """The ending of a program whose packages can't be had."""
    return Ending(1, error={"name": "PackageError", "message": str(error), "stack": ""})


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
    futures = body.co_flags & _future_flags()
    return body, compile(last, name, "eval", flags=AWAIT | futures, dont_inherit=True)


def _future_flags() -> int:
    import __future__

    flags = 0
    for feature in __future__.all_feature_names:
        flags |= getattr(__future__, feature).compiler_flag
    return flags


def add_source(program: Program) -> None:
    """Let tracebacks and inspect show the program's lines, wherever it runs."""
    lines = program.code.splitlines(keepends=True)
    linecache.cache[program.name] = (len(program.code), None, lines, program.name)


def renew() -> None:
    """Make what the snapshot holds new. No program is needed for it, so none waits for it."""
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


def prepare(program: Program) -> None:
    """Give the interpreter the state that a new process has for its program."""
    begin(program.env)
    path = os.path.join(HOME, program.name)
    sys.modules["__main__"].__dict__["__file__"] = path
    sys.argv = [program.name, *program.args]
    add_source(program)
    with open(path, "wb", buffering=0) as file:
        file.write(program.code.encode(errors="surrogatepass"))


def run(
    program: Program,
    body: CodeType,
    last: CodeType | None,
    runs: Runs,
    missing: dict[str, str],
) -> Ending:
    """Run the program's code in __main__ and tell how it ended."""
    space = sys.modules["__main__"].__dict__
    before = asyncio.all_tasks(asyncio.get_event_loop())
    ending = Ending(0)
    value = None
    try:
        _evaluate(body, space, runs)
        if last is not None:
            value = _evaluate(last, space, runs)
            if asyncio.iscoroutine(value) or asyncio.isfuture(value):
                value = runs.until_complete(value)
            ending.value = values.encode(value, program.limit)
        display.SCREEN.finish(value)
    except BaseException as error:
        ending = ending_of(error, program.limit, missing)
        quietly(display.SCREEN.finish)
    _finish(runs, before, warn=ending.code == 0)
    return ending


def _evaluate(code: CodeType, space: dict[str, Any], runs: Runs) -> Any:
    if code.co_flags & CO_COROUTINE:
        return runs.until_complete(eval(code, space))
    return eval(code, space)


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
        if not hint and absent and top in sys.stdlib_module_names:
            hint = f"{top} is in Python's standard library, but not in WebAssembly's."
    if _of_socket(error) or _of_socket(error.__context__):
        hint = "Sockets can neither listen nor connect here; pyodide.http fetches by HTTP."
    if isinstance(error, FileNotFoundError):
        hint = hint or _of_file(error)
    code = 130 if isinstance(error, KeyboardInterrupt) else 1
    return Ending(code, error=errors.describe(error, limit, hint))


def _of_socket(error: BaseException | None) -> bool:
    """Whether a socket could do nothing for want of a network."""
    if not isinstance(error, OSError):
        return False
    number = OSError.errno.__get__(error)  # type: ignore # not what a class of the program's gives
    return type(number) is int and number in (errno.ENETDOWN, errno.EHOSTUNREACH)


def _of_file(error: FileNotFoundError) -> str:
    """How a program could have a file that it looked for in a place it has not."""
    path = OSError.filename.__get__(error)  # type: ignore # not what a class of the program's gives
    if type(path) is not str:
        return ""
    if not path.startswith("/") or path.startswith("/workspace/"):
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
    """Do what CPython does at the end: leftover tasks, atexit, flush."""
    left = asyncio.all_tasks(asyncio.get_event_loop()) - before
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
