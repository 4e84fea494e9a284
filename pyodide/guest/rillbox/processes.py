"""Says what to do in place of starting another program, which WebAssembly can't."""

import errno
import os
import shlex
import subprocess
import sys
from typing import Any


def instead(arguments: Any) -> str:
    """What to do in place of starting a program with these arguments."""
    try:
        words = shlex.split(arguments) if isinstance(arguments, str) else [*arguments]
        words = [os.fsdecode(word) for word in words]
    except (TypeError, ValueError):
        words = []
    if not words:
        return "Python in WebAssembly can't start other programs"
    program = os.path.basename(words[0])
    text = f"Python in WebAssembly can't start other programs ({words[0]!r})"
    rest = words[1:]
    if program.startswith("pip"):
        rest, program = ["-m", "pip"], "python"
    if not program.startswith("python") and words[0] not in ("", sys.executable):
        return f"{text}; JavaScript can, where --allow-run is granted"
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        rest = rest[1:]
    if rest[:2] == ["-m", "pip"]:
        return (
            f"{text}: packages are installed for what is imported, and by a line `%pip install x`"
        )
    if rest[:1] == ["-m"] and len(rest) > 1:
        module = rest[1]
        return (
            f"{text}: runpy.run_module({module!r}, run_name='__main__') runs the module in this one"
        )
    if rest[:1] == ["-c"]:
        return f"{text}: exec() runs code in this one"
    if rest:
        return f"{text}: runpy.run_path({rest[0]!r}, run_name='__main__') runs the file in this one"
    return text


def patch(loop: Any) -> None:
    """Have subprocess and the event loop say it."""

    def refuse(_: Any, args: Any = (), *_more: Any, **_named: Any) -> None:
        raise OSError(errno.ENOTSUP, instead(args))

    async def refuse_exec(_: Any, _protocol: Any, program: Any = "", *args: Any, **_n: Any) -> None:
        raise OSError(errno.ENOTSUP, instead([program, *args]))

    async def refuse_shell(_: Any, _protocol: Any, command: Any = "", **_named: Any) -> None:
        raise OSError(errno.ENOTSUP, instead(command))

    process: Any = subprocess.Popen
    process.__init__ = refuse
    kind = type(loop)
    kind.subprocess_exec, kind.subprocess_shell = refuse_exec, refuse_shell
