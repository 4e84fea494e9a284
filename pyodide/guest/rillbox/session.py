"""Runs cells: programs that share one interpreter and its state, one after the other.

A request is a cell, a text that is to be completed, or one of which is asked whether
it is unfinished; each is answered by one `result` frame. A cell may be interrupted from the moment it is taken up until its
result is made; what was interrupted is an error like any other, and what ran
before it stays.
"""

import ast
import asyncio
import builtins
import codeop
import json
import re
import rlcompleter
import sys
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any, Protocol

from . import display, packages, runner, streams
from .runner import Ending, Program

# The last word of a line, as far as it can be completed.
WORD = re.compile(r"(?<![\w.)\]}'\"])[^\W\d]\w*(\.\w*)*$")
# The most names that a completion gives.
MAX_NAMES = 200


# Compiles text as far as it goes.
STATEMENTS = codeop.CommandCompiler()
STATEMENTS.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
TO_AST = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def unfinished(text: str) -> bool:
    """Whether text, as it is typed, waits for another line.

    A statement with a block ends with an empty line, as in Python's own REPL.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            if STATEMENTS(text, symbol="exec") is None:
                return True
            statements = compile(text, "<cell>", "exec", TO_AST).body
    except runner.UNREADABLE:
        return False  # an error that no line mends
    if not statements or text.rpartition("\n")[2].strip() == "":
        return False
    return hasattr(statements[-1], "body") or isinstance(statements[-1], ast.Match)


class Host(runner.Host, Protocol):
    """What the worker gives: the wire, and the interruptions."""

    def interruptible(self, on: bool) -> None:
        """Let interruptions come, or no more. Between two is a part of a second."""


class Session:
    """One interpreter with its state."""

    def __init__(self, host: Host, runs: runner.Runs, installer: packages.Installer) -> None:
        self._host = host
        self._runs = runs
        self._installer = installer
        self._space = sys.modules["__main__"].__dict__
        self._missing: dict[str, str] = {}
        self._cells = 0

    def run(self, line: str) -> None:
        """Run the request in line and send its result."""
        request = json.loads(line)
        if "complete" in request:
            ending = self._guarded(lambda: self._complete(request["complete"]), request["limit"])
        elif "unfinished" in request:
            ending = self._guarded(lambda: self._unfinished(request["unfinished"]), request["limit"])
        else:
            ending = self._guarded(lambda: self._cell(request), request["limit"])
        streams.flush()
        self._host.send(f'{{"code":{ending.code},{ending.frame()[1:]}')

    def _guarded(self, step: Callable[[], Ending], limit: int) -> Ending:
        """Take a step that may be interrupted, and tell how it ended."""
        try:
            try:
                self._host.interruptible(True)
                return step()
            finally:
                self._host.interruptible(False)
        except BaseException as error:
            self._host.interruptible(False)  # one may have come in place of that above
            return runner.ending_of(error, limit, self._missing)

    def _cell(self, request: dict[str, Any]) -> Ending:
        self._cells += 1
        program = Program.from_json(request)
        program.name = request.get("name") or f"<cell {self._cells}>"
        if self._cells == 1:
            runner.begin(program.env)
        try:
            body, last, wish = runner.read(program)
        except runner.UNREADABLE as error:
            return runner.unreadable(program, error)
        try:
            self._missing.update(
                runner.install(program, wish, self._installer, self._host, self._until_complete)
            )
        except packages.PackageError as error:
            return runner.not_installed(error)
        runner.add_source(program)
        sys.argv = ["", *program.args]
        streams.renew_input()
        display.begin(self._host.send, program.displays)
        self._host.send('{"type":"started"}')
        try:
            return self._evaluate(body, last, program)
        except BaseException:
            runner.quietly(display.SCREEN.finish)
            raise

    def _evaluate(self, body: CodeType, last: CodeType | None, program: Program) -> Ending:
        if asyncio.all_tasks(asyncio.get_event_loop()):  # of earlier cells
            self._until_complete(asyncio.sleep(0))
        value = None
        self._wait(eval(body, self._space), body)
        if last is not None:
            value = self._wait(eval(last, self._space), last)
            if asyncio.iscoroutine(value) or asyncio.isfuture(value):
                value = self._until_complete(value)
        ending = Ending(0, value=runner.values.encode(value, program.limit))
        display.SCREEN.finish(value, program.echo)
        if value is not None:
            builtins._ = value  # type: ignore[attr-defined]
        return ending

    def _wait(self, value: Any, code: CodeType) -> Any:
        """What code with top-level await comes to in the end, else value."""
        return self._until_complete(value) if code.co_flags & runner.CO_COROUTINE else value

    def _until_complete(self, awaitable: Any) -> Any:
        """Wait for an awaitable; it ends when the wait is interrupted."""
        future = asyncio.ensure_future(awaitable)
        try:
            return self._runs.until_complete(future)
        finally:
            if not future.done():
                self._runs.cancel({future})

    def _complete(self, text: str) -> Ending:
        found: list[str] = []
        if word := WORD.search(text):
            completer = rlcompleter.Completer(self._space)
            while len(found) < MAX_NAMES:
                name = completer.complete(word[0], len(found))
                if name is None:
                    break
                found.append(name)
        names = dict.fromkeys(name.rstrip("(): ") for name in found)
        return Ending(0, value=json.dumps(list(names)))

    def _unfinished(self, text: str) -> Ending:
        return Ending(0, value=json.dumps(unfinished(text)))
