"""A program's value as JSON: the value itself where JSON holds it exactly, else its repr."""

import json
from typing import Any

# The integers that every JSON reader holds exactly (2**53 - 1).
MAX_SAFE_INTEGER = 9007199254740991
# How deep a value may nest and still be given as JSON.
MAX_DEPTH = 64


class Inexact(Exception):
    """JSON can't hold the value exactly."""


def encode(value: Any, limit: int) -> str | None:
    """JSON text of at most about limit bytes for value; None for no value."""
    if value is None:
        return None
    try:
        _check(value, MAX_DEPTH)
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (Inexact, UnicodeEncodeError):
        return json.dumps(shorten(printed(value), limit // 8))
    if len(text.encode()) > limit:
        return json.dumps(shorten(printed(value), limit // 8))
    return text


def printed(value: Any) -> str:
    """repr(value), also where the value's own __repr__ fails."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} object; its __repr__ raised {type(error).__name__}>"


def shorten(text: str, limit: int) -> str:
    """Text with at most limit characters: its beginning and its end."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


def _check(value: Any, depth: int) -> None:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return
    if kind is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return
    if kind is float and value - value == 0:  # neither infinite nor NaN
        return
    if depth > 0 and kind is list:
        for item in value:
            _check(item, depth - 1)
        return
    if depth > 0 and kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise Inexact
            _check(item, depth - 1)
        return
    raise Inexact
