"""Runs cells: programs that share one interpreter and its state, one after the other.

A request is a cell, a text to complete, or one that may be unfinished; each is
answered by one `result` frame. A cell may be interrupted from the moment it is taken
up until its result is made; what was interrupted is an error like any other, and what
ran before it stays.
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
from typing import Any

from . import beside, runner, streams
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


class Session(runner.Runner):
    """One interpreter with its state."""

    _cells = 0

    def run(self, line: str) -> None:
        """Run the request in line and send its result."""
        request = json.loads(line)
        del request["cell"]  # each frame has it
        limit = request["limit"]
        if (text := request.pop("complete", None)) is not None:
            ending = self._guarded(lambda: self._complete(text), limit)
        elif (text := request.pop("unfinished", None)) is not None:
            ending = self._guarded(lambda: Ending(0, value=json.dumps(unfinished(text))), limit)
        else:
            ending = self._guarded(lambda: self._cell(request), limit)
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
        program = Program(**{"name": f"<cell {self._cells}>"} | request)
        if self._cells == 1:
            runner.begin(program.env)
        return self.take(program)

    def _place(self, program: Program) -> None:
        pass  # a cell is in no file

    def _prepare(self, program: Program, _: beside.Imports) -> None:
        sys.argv = ["", *program.args]
        streams.renew_input()

    def _run(self, program: Program, body: CodeType, last: CodeType | None) -> Ending:
        if asyncio.all_tasks(asyncio.get_event_loop()):  # of earlier cells
            self._wait(asyncio.sleep(0))
        ending, value = runner.evaluate(program, body, last, self._wait)
        if value is not None:
            builtins._ = value  # type: ignore[attr-defined]
        return ending

    def _wait(self, awaitable: Any) -> Any:
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
            completer = rlcompleter.Completer(sys.modules["__main__"].__dict__)
            while len(found) < MAX_NAMES:
                name = completer.complete(word[0], len(found))
                if name is None:
                    break
                found.append(name)
        names = dict.fromkeys(name.rstrip("(): ") for name in found)
        return Ending(0, value=json.dumps(list(names)))
