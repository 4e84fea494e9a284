"""asyncio on Pyodide's event loop, with CPython's endings.

Pyodide's loop belongs to JavaScript and never stops, so an exit in a task ends
up as a rejected promise that nobody awaits, and `asyncio.run` leaves the tasks
that it should cancel. `patch` mends both: SystemExit and KeyboardInterrupt come
out of the innermost `run_until_complete`, as in CPython.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

# Which asyncio.run a task is of.
RUN: contextvars.ContextVar[object] = contextvars.ContextVar("RUN")


class Runs:
    """The nested runs of an event loop; the innermost one receives an exit."""

    def __init__(self, block: Callable[[Awaitable[Any]], Any]) -> None:
        self._block = block
        self._waiters: list[asyncio.Future[BaseException | None]] = []

    def until_complete(self, future: Any) -> Any:
        """Wait for future while the loop runs; also for an exit in any task."""
        if not asyncio.isfuture(future):
            future = asyncio.ensure_future(future)
        waiter = future.get_loop().create_future()

        def finish(_: Any) -> None:
            if not waiter.done():
                waiter.set_result(None)

        future.add_done_callback(finish)
        self._waiters.append(waiter)
        try:
            interruption = self._block(waiter)
        finally:
            self._waiters.remove(waiter)
        if interruption is not None:
            if future.done() and not future.cancelled():
                future.exception()  # it has been seen
            raise interruption
        return future.result()

    def interrupt(self, exception: BaseException) -> None:
        """Let the innermost run raise exception."""
        for waiter in reversed(self._waiters):
            if not waiter.done():
                waiter.set_result(exception)
                return

    def run(self, main: Any, *, debug: bool | None = None, loop_factory: Any = None) -> Any:
        """asyncio.run: the tasks that main left behind are cancelled."""
        if not asyncio.iscoroutine(main):
            raise ValueError(f"a coroutine was expected, got {main!r}")
        loop = asyncio.get_event_loop()
        context, this = contextvars.copy_context(), object()
        context.run(RUN.set, this)  # its tasks have it, and those that a thread makes meanwhile not
        try:
            return self.until_complete(loop.create_task(main, context=context))
        finally:
            tasks = asyncio.all_tasks(loop)
            self.cancel({task for task in tasks if task.get_context().get(RUN) is this})

    def cancel(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Cancel tasks and wait until they have ended."""
        for task in tasks:
            task.cancel()
        if tasks:
            self.until_complete(asyncio.gather(*tasks, return_exceptions=True))


def patch(block: Callable[[Awaitable[Any]], Any]) -> Runs:
    """Put Runs behind asyncio.run and the loop's run_until_complete.

    block waits for an awaitable from synchronous code: Pyodide's run_sync.
    """
    runs = Runs(block)
    loop = asyncio.get_event_loop()
    kind: Any = type(loop)
    kind.run_until_complete = lambda _loop, future: runs.until_complete(future)
    kind._system_exit_handler = property(
        lambda _loop: lambda code: runs.interrupt(SystemExit(code)), lambda _loop, _value: None
    )
    kind._keyboard_interrupt_handler = property(
        lambda _loop: lambda: runs.interrupt(KeyboardInterrupt()), lambda _loop, _value: None
    )
    handle_exception = kind.call_exception_handler

    def call_exception_handler(loop: Any, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), (SystemExit, KeyboardInterrupt)):
            handle_exception(loop, context)

    kind.call_exception_handler = call_exception_handler
    asyncio.run = runs.run
    asyncio.Runner.run = lambda _runner, main, *, context=None: runs.run(main)  # type: ignore
    return runs
