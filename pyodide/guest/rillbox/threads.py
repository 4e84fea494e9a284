"""Threads in turns: each runs to its end when it is started.

WebAssembly has one thread, and so Python's own can't be started. Most only compute, and
do so in turns as well. One that would wait for another (a lock, a queue, an event, an
end) gets an error that says so, in place of waiting for ever. What may come of the
event loop's tasks is waited for: they go on meanwhile.
"""

import _thread
import asyncio
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import thread as pools
from typing import Any

from . import display

NOTE = (
    "Threads run in turns here: each to its end when it is started, in the order in which they are."
)


class WouldWait(RuntimeError):
    """A thread would wait for another."""

    __module__ = "threading"

    def __init__(self, what: str) -> None:
        """Say what it would wait for."""
        super().__init__(
            f"this would wait for {what}, and no other thread can bring that about: threads run "
            "in turns here, each to its end when it is started; asyncio's tasks can wait for one "
            "another"
        )


class _Handle:
    """What a thread knows of itself as one of the system's."""

    def __init__(self) -> None:
        self.ident, self.done = _thread.get_ident(), False

    def is_done(self) -> bool:
        return self.done

    def join(self, timeout: float | None = None) -> None:
        if not self.done:
            _wait(lambda: self.done, timeout, "the end of a thread that waits itself")

    def _set_done(self) -> None:
        self.done = True


# What is waited for: set when something has changed.
CHANGED: list["asyncio.Future[None]"] = []
# Waits for an awaitable; and whether that can be done.
block: Callable[[Any], Any]
can_block: Callable[[], bool]
told: Any = None  # the screen on which the note is


def _change() -> None:
    """Let all that waits look again."""
    for future in CHANGED:
        if not future.done():
            future.set_result(None)


def _wait(ready: Callable[[], bool], timeout: float | None, what: str) -> bool:
    """Wait until something is ready, as far as time and other tasks may bring that about."""
    end = None if timeout is None else time.monotonic() + timeout
    if ready():
        return True
    if not can_block():
        raise WouldWait(what)
    block(asyncio.sleep(0))  # what was to become a task is one now
    while not ready():
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return False
        others = asyncio.all_tasks(asyncio.get_event_loop()) - {asyncio.current_task()}
        in_turn = threading.current_thread() is not threading.main_thread()
        if not others and (left is None or in_turn):
            raise WouldWait(what)
        change = asyncio.get_event_loop().create_future()
        timer = None if left is None else change.get_loop().call_later(left, _change)
        CHANGED.append(change)
        try:
            block(change)
        finally:
            CHANGED.remove(change)
            if timer:
                timer.cancel()
    return True


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


def _wait_for_notice(condition: Any, timeout: float | None = None) -> bool:
    """threading.Condition.wait."""
    if not condition._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    waiter = _thread.allocate_lock()
    waiter.acquire()
    condition._waiters.append(waiter)
    state = condition._release_save()
    came = False
    try:
        came = _wait(lambda: waiter.acquire(False), timeout, "another thread's notice")
        return came
    finally:
        condition._acquire_restore(state)
        if not came and waiter in condition._waiters:
            condition._waiters.remove(waiter)


def _run(function: Any, handle: Any = None, daemon: bool = True) -> Any:
    """Run a thread to its end: _thread.start_joinable_thread."""
    global told
    if told is not display.SCREEN:
        told = display.SCREEN
        told.note(NOTE)
    thread = function.__self__
    before, ident = threading.current_thread(), _thread.get_ident()
    failed: list[BaseException] = []
    told_of = thread._invoke_excepthook

    def hook(of: Any) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, (WouldWait, KeyboardInterrupt)):
            failed.append(error)
        else:
            told_of(of)

    thread._invoke_excepthook = hook
    thread._os_thread_handle = _Handle()
    try:
        function()
    finally:
        thread._os_thread_handle.done = True
        threading._active[ident] = before  # type: ignore[attr-defined]
        _change()
    if failed:
        threading._limbo[thread] = thread  # type: ignore[attr-defined] # start takes it out
        raise failed[0]


def _start_new(function: Any, arguments: Any, named: Any = None) -> int:
    """_thread.start_new_thread."""
    threading.Thread(target=function, args=arguments, kwargs=named).start()
    return _thread.get_ident()


def _start_timer(timer: Any) -> None:
    """threading.Timer.start: what is to come later is the event loop's."""

    def run() -> None:
        if not timer.finished.is_set():
            timer.interval = 0
            threading.Thread.start(timer)

    asyncio.get_event_loop().call_later(timer.interval, run)


def _submit(submit: Any) -> Any:
    """concurrent.futures.ThreadPoolExecutor.submit, which runs what it is given at once."""

    def run_all(pool: Any) -> None:
        if not hasattr(pool, "_context_of_turns"):
            context = pool._create_worker_context()
            try:
                context.initialize()
            except BaseException:
                pools._base.LOGGER.critical("Exception in initializer:", exc_info=True)  # type: ignore
                pool._initializer_failed()
                return
            pool._context_of_turns = context
        try:
            while (item := pool._work_queue.get_nowait()) is not None:
                item.run(pool._context_of_turns)
        except queue.Empty:
            pass

    def submit_and_run(pool: Any, fn: Any, /, *args: Any, **named: Any) -> Any:
        future = submit(pool, fn, *args, **named)
        name = f"{pool._thread_name_prefix or pool}_0"
        threading.Thread(target=run_all, args=(pool,), name=name).start()
        return future

    return submit_and_run


def patch(wait: Callable[[Any], Any], can_wait: Callable[[], bool]) -> None:
    """Have threads run in turns. wait waits for an awaitable where can_wait says so."""
    global block, can_block
    block, can_block = wait, can_wait
    module: Any = threading
    module._start_joinable_thread = _run
    module.Lock = module._allocate_lock = Lock
    module.Condition.wait = _wait_for_notice
    module.Timer.start = _start_timer
    _thread.start_new_thread = _start_new  # type: ignore[assignment]
    queue.SimpleQueue = queue._PySimpleQueue  # type: ignore
    pool: Any = pools.ThreadPoolExecutor
    pool.submit = _submit(pool.submit)
    pool._adjust_thread_count = lambda _pool: None
