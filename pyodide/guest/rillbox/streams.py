"""The program's standard streams, unbuffered, so that nothing printed waits or is lost."""

import io
import sys


def open_standard() -> None:
    """Replace sys.stdin, sys.stdout and sys.stderr by streams of their own."""
    sys.stdin = sys.__stdin__ = _reader()
    sys.stdout = sys.__stdout__ = _writer(1, "<stdout>")
    sys.stderr = sys.__stderr__ = _writer(2, "<stderr>")


def renew_input() -> None:
    """Forget what is left of the input, unless the program has put another in its place."""
    if sys.stdin is sys.__stdin__:
        sys.stdin = sys.__stdin__ = _reader()


def _reader() -> io.TextIOWrapper:
    raw = open(0, "rb", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline=None)


def _writer(descriptor: int, name: str) -> io.TextIOWrapper:
    raw = open(descriptor, "wb", buffering=0, closefd=False)
    # A lone surrogate, which has no UTF-8 form, is printed rather than raised.
    stream = io.TextIOWrapper(
        raw,  # type: ignore[arg-type]
        encoding="utf-8",
        errors="backslashreplace",
        newline="\n",
        write_through=True,
    )
    stream.mode = "w"
    return stream


def flush() -> None:
    """Write what a program's own wrapper around the streams may still hold."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            continue  # closed, or replaced by something of the program's
