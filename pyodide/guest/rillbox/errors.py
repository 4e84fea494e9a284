"""An exception as a person should see it: the program's frames, without ours."""

import os
import re
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from .values import shorten

# Where the program's files are; the snapshot's, and so every worker's.
HOME = os.path.expanduser("~")
WORKSPACE = "/workspace"

# Frames of these files are machinery: ours, Pyodide's, and the loop's that drives a task.
MACHINERY = (
    "/rillbox/",
    "/_pyodide/",
    "/pyodide/webloop.py",
    "/pyodide/ffi/",
    "/pyodide/code.py",
    "ext:",  # Deno's own JavaScript
)

# What Deno says when a permission is missing: its last part is for those who started it.
NOT_CAPABLE = re.compile(r"(Requires .* access to .*), run again with the (--[a-z-]+) flag")

# What refusal makes of it.
REFUSAL = re.compile(r"Requires .* access to .*: the operator can allow it with \S+ in \w+")

# Where nobody whom Deno trusts has signed a server's certificate.
UNTRUSTED = (
    "the operator can have a certificate's issuer trusted with DENO_CERT=FILE in the environment "
    "that Rillbox starts with"
)

ONE_HOST = re.compile(r'^Requires net access to "([^",\s]+)"$')


def describe(error: BaseException, limit: int, hint: str = "") -> dict[str, str]:
    """The error frame for an exception, well below limit bytes also when it is escaped."""
    clean(error)
    try:
        text = "".join(traceback.format_exception(error, colorize=False))  # type: ignore
    except TypeError:  # CPython before 3.13 has no colorize
        text = "".join(traceback.format_exception(error))
    except Exception as failure:  # an exception class that can't be printed
        text = f"{qualified_name(error)} (printing it raised {type(failure).__name__})\n"
    text, message = (part.replace(f"{HOME}/", "") for part in (text, message_of(error)))
    if missing := NOT_CAPABLE.search(message):
        hint = f"The operator can allow it with {_flag(missing)} in PYODIDE_PERMISSION_ARGS."
        message, text = (NOT_CAPABLE.sub(r"\1", part) for part in (message, text))
    if message == "fetch failed" and (why := _of_fetch(error)):
        text = text.replace(f"{message}\n", f"{message}: {why}\n")
        message = f"{message}: {why}"
    if "invalid peer certificate: UnknownIssuer" in message:
        hint = f"{UNTRUSTED[0].upper()}{UNTRUSTED[1:]}."
    if not hint:  # a client may hide it in what it raises
        told = (REFUSAL.search(message_of(linked)) for linked in _with_linked(error))
        hint = next((found[0] for found in told if found and found[0] not in message), "")
    if hint:
        message = f"{message}\n{hint}" if message else hint
        text += hint + "\n"
    return {
        "name": shorten(qualified_name(error), 200),
        "message": shorten(message, limit // 64),
        "traceback": shorten(text, limit // 32),
    }


def _of_fetch(error: BaseException) -> str:
    """What JavaScript's fetch failed for, which its error has as a cause."""
    for linked in _with_linked(error):
        try:
            if why := str(linked.cause.message):  # type: ignore[attr-defined]
                return why
        except Exception:  # it is no JsException
            continue
    return ""


def refusal(text: str) -> str:
    """What Deno says of a missing permission, for those who can't start the program again."""
    missing = NOT_CAPABLE.search(text)
    if not missing:
        return text
    return (
        f"{missing[1]}: the operator can allow it with {_flag(missing)} in PYODIDE_PERMISSION_ARGS"
    )


def _flag(missing: re.Match[str]) -> str:
    host = ONE_HOST.search(missing[1])
    return f"{missing[2]}={host[1]}" if host else missing[2]


def qualified_name(error: BaseException) -> str:
    """The exception's class, with its module unless that is builtins or the program."""
    kind = type(error)
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """str(error), also where that fails."""
    try:
        return str(error)
    except Exception:
        return ""


def clean(error: BaseException) -> None:
    """Drop the machinery's frames from an exception and from all that it links to."""
    for linked in _with_linked(error):
        # Not an assignment: an attribute of a JsException is its JavaScript error's.
        BaseException.with_traceback(linked, _without_machinery(linked.__traceback__))


def _with_linked(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that it links to."""
    seen: set[int] = set()
    queue = [error]
    while queue:
        current = queue.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        linked: list[Any] = [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            linked.extend(current.exceptions)
        queue.extend(link for link in linked if isinstance(link, BaseException))


def _without_machinery(tb: TracebackType | None) -> TracebackType | None:
    kept = []
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        if not any(part in file for part in MACHINERY) and not _only_starts(tb):
            kept.append(tb)
        tb = tb.tb_next
    below = None
    for entry in reversed(kept):
        entry.tb_next = below
        below = entry
    return below


def _only_starts(tb: TracebackType) -> bool:
    """Whether a frame is the program that we make for -m or for a package's command."""
    if tb.tb_next is None:
        return False
    code = tb.tb_next.tb_frame.f_code
    return code.co_name == "_run_module_as_main" or "/rillbox/command.py" in code.co_filename
