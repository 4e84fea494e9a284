"""Threads that take turns: one goes on when another waits or ends.

WebAssembly has one thread, and so Python's own can't be started. Here each has a stack
of its own, which waits as asyncio's tasks do (JSPI). None is interrupted: one that
computes, computes to its end. Where all wait for one another, that is an error in one
of them, and no hang.
"""

import _thread
import _threading_local
import asyncio
import itertools
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import thread as pools
from typing import Any

from . import display
from .eventloop import Runs

NOTE = "Threads take turns here: one goes on when another waits or ends."


class WouldWait(RuntimeError):
    """A thread would wait for ever."""

    __module__ = "threading"

    def __init__(self, what: str) -> None:
        """Say what it would wait for."""
        super().__init__(
            f"this would wait for {what} for ever: no other thread or task can bring that about"
        )


module: Any = threading
# The number of the thread that runs, and those of others.
current = main = 0
numbers = itertools.count(1)
# Those that have been started and have not ended, and of all those that only wait for
# another.
alive: dict[int, Any] = {}
idle: set[int] = set()
# A thread that has not waited yet → what its starter waits for.
first_turns: dict[int, "asyncio.Future[None]"] = {}
# Set when something has changed that may be waited for.
changes: list["asyncio.Future[None]"] = []
# What threads wait for that is none of the program's tasks, such as the end of a sleep.
naps: "weakref.WeakSet[asyncio.Future[Any]]" = weakref.WeakSet()
ending: "asyncio.Future[None] | None" = None  # what the program's end waits for
told: Any = None  # the screen on which the note is

# How a thread waits for an awaitable, whether it can, and how a function is called on a
# stack of its own.
wait_for: Callable[[Any], Any]
interrupt: Callable[[BaseException], None]
can_wait: Callable[[], bool]
call: Callable[[Callable[[], None]], Any]


def switching(wait: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Have others take their turn while wait waits."""

    def switch(awaitable: Any) -> Any:
        global current
        this = current
        if turn := first_turns.pop(this, None):
            turn.set_result(None)
        current = main
        try:
            return wait(awaitable)
        finally:
            current = this

    return switch


def _change() -> None:
    """Let all that waits look again."""
    idle.clear()
    for future in changes:
        if not future.done():
            future.set_result(None)


def _wait(ready: Callable[[], bool], timeout: float | None, what: str) -> bool:
    """Wait until something is ready, or for a time."""
    if ready():
        return True
    end = None if timeout is None else time.monotonic() + timeout
    if not can_wait():
        raise WouldWait(what)
    loop = asyncio.get_event_loop()
    soon = loop.create_future()
    loop.call_soon(soon.set_result, None)
    wait_for(soon)  # what was to become a task is one now
    this = current
    while not ready():
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return False
        others = asyncio.all_tasks(loop) - {asyncio.current_task(), *naps}
        if left is None and not others and {main, *alive} - idle <= {this}:
            raise WouldWait(what)
        change = loop.create_future()
        timer = None if left is None else loop.call_later(left, _change)
        changes.append(change)
        if left is None:
            idle.add(this)
            if ending and not ending.done():
                ending.set_result(None)
        try:
            wait_for(change)
        finally:
            idle.discard(this)
            changes.remove(change)
            if timer:
                timer.cancel()
    return True


class Handle:
    """What a thread knows of itself as one of the system's."""

    def __init__(self) -> None:
        """Begin."""
        self.ident, self.done = current, False

    def is_done(self) -> bool:
        """Say whether it has ended."""
        return self.done

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        _wait(lambda: self.done, None if timeout is None or timeout < 0 else timeout, "its end")


class Lock:
    """threading.Lock."""

    def __init__(self) -> None:
        """Make it, unlocked."""
        self._lock = _thread.allocate_lock()
        self.locked = self._lock.locked

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; see threading.Lock."""
        if self._lock.acquire(False):
            return True
        if not blocking:
            return False
        return _wait(lambda: self._lock.acquire(False), None if timeout < 0 else timeout, "a lock")

    def release(self) -> None:
        """Let it go."""
        self._lock.release()
        _change()

    acquire_lock, release_lock = acquire, release

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: Any) -> None:
        self.release()

    def __repr__(self) -> str:
        return repr(self._lock)


def _start(function: Any, handle: Any = None, daemon: bool = True) -> None:
    """Run a thread until it first waits, or to its end: _thread.start_joinable_thread."""
    global told
    if told is not display.SCREEN:
        told = display.SCREEN
        told.note(NOTE)
    thread, number = function.__self__, next(numbers)
    thread._os_thread_handle = handle = Handle()
    alive[number] = thread

    tell = thread._invoke_excepthook

    def tell_or_interrupt(of: Any) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, KeyboardInterrupt):
            interrupt(error)
        else:
            tell(of)

    thread._invoke_excepthook = tell_or_interrupt

    def body() -> None:
        global current
        before, current = current, number
        handle.ident = number
        try:
            function()
        finally:
            handle.done = True
            current = before
            del alive[number]
            if turn := first_turns.pop(number, None):
                turn.set_result(None)
            _change()

    if not can_wait():  # a callback of JavaScript's
        body()
        return
    turn = first_turns[number] = asyncio.get_event_loop().create_future()
    call(body)
    wait_for(turn)


def _start_new(function: Any, arguments: Any, named: Any = None) -> int:
    """_thread.start_new_thread."""
    thread = threading.Thread(target=function, args=arguments, kwargs=named, daemon=True)
    thread.start()
    return thread.ident or 0


def finish() -> list[str]:
    """Wait for threads that are no daemons, as Python does at its end; names of those left."""
    global ending
    left = {number for number, thread in alive.items() if not thread.daemon}
    while left & alive.keys() - idle:
        ending = asyncio.get_event_loop().create_future()
        changes.append(ending)
        try:
            wait_for(ending)
        finally:
            changes.remove(ending)
            ending = None
    return [alive[number].name for number in left if number in alive]


def patch(
    runs: Runs,
    sleepers: list[Any],
    wait: Callable[[Any], Any],
    can: Callable[[], bool],
    on_a_stack: Callable[[Callable[[], None]], Any],
) -> None:
    """Have threads take turns.

    wait waits for an awaitable where can says so, and so do sleepers by the name
    run_sync; on_a_stack begins a call on a stack of its own.
    """
    global wait_for, can_wait, call, current, interrupt, main
    interrupt = runs.interrupt
    current = main = _thread.get_ident()
    runs._block = switching(runs._block)
    switched = switching(wait)

    def of_others(awaitable: Any) -> Any:
        if current != main and asyncio.iscoroutine(awaitable):
            awaitable = asyncio.ensure_future(awaitable)
            naps.add(awaitable)
        return switched(awaitable)

    def wait_in_turn(future: Any) -> Any:
        return (runs.until_complete if current == main else of_others)(future)

    wait_for = wait_in_turn
    can_wait, call = can, on_a_stack
    for one in sleepers:
        one.run_sync = of_others
    module.get_ident = module._get_ident = lambda: current
    module._start_joinable_thread = _start
    module.Lock = module._allocate_lock = Lock
    module._CRLock = None
    module.local = _threading_local.local
    _thread.start_new_thread = _start_new  # type: ignore[assignment]
    queue.SimpleQueue = queue._PySimpleQueue  # type: ignore
    pools._global_shutdown_lock = Lock()  # type: ignore
