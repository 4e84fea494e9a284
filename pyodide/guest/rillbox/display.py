"""What a program shows, as notebooks show it: each object in all the forms that it has.

An object gives its forms itself (`_repr_mimebundle_`, `_repr_png_`, and so on:
IPython's protocol); matplotlib's figures and pandas' frames get theirs in
`libraries`. A form that can't be had leaves a note and the other forms, and never
ends the program.
"""

import base64
import builtins
import inspect
import json
from collections.abc import Callable, Container
from typing import Any

from . import libraries
from .errors import message_of
from .values import printed, shorten

# The methods by which an object gives its forms, in the order in which IPython
# asks for them, and what each may return.
METHODS: dict[str, tuple[str, tuple[type, ...]]] = {
    "text/html": ("_repr_html_", (str,)),
    "text/markdown": ("_repr_markdown_", (str,)),
    "image/svg+xml": ("_repr_svg_", (str,)),
    "image/png": ("_repr_png_", (bytes, str)),
    "image/jpeg": ("_repr_jpeg_", (bytes, str)),
    "text/latex": ("_repr_latex_", (str,)),
    "application/json": ("_repr_json_", (dict, list)),
}
# How much of an object's text is shown, in characters.
MAX_TEXT = 1 << 16
# Kept free for the frames that tell how much was left out, in bytes.
RESERVE = 4096


class Screen:
    """Sends what the program shows, as display frames, within a budget of bytes."""

    def __init__(self, send: Callable[[str], Any], limit: int) -> None:
        """Show what follows through send, in frames of limit bytes in all."""
        self._send = send
        self._left = limit - RESERVE
        self._left_out = 0

    def show(
        self,
        value: Any,
        include: Container[str] | None = None,
        exclude: Container[str] = (),
        always: bool = True,
    ) -> None:
        """Show value in its forms, its text among them: always, or if it has others."""
        forms, notes = forms_of(value, include, exclude)
        if not (always or forms or notes):
            return
        if "text/plain" not in forms and _wanted("text/plain", include, exclude):
            forms["text/plain"] = shorten(printed(value), MAX_TEXT)
        self._put(forms, notes)

    def show_forms(self, forms: dict[str, Any]) -> None:
        """Show what is given in its forms already."""
        self._put({kind: _encoded(kind, data) for kind, data in forms.items()}, [])

    def note(self, text: str) -> None:
        """Tell of something that was chosen on the program's behalf."""
        self._put({}, [text])

    def finish(self, value: Any = None, echo: bool = False) -> None:
        """Show the open figures, and value if it has more forms than its repr; the end.

        With echo, a value is shown in any case.
        """
        self.figures(but=value)
        self.show(value, always=echo and value is not None)
        if self._left_out & (self._left_out - 1):  # else it has been told
            self._tell_left_out()

    def figures(self, but: Any = None) -> None:
        """Show and close matplotlib's open figures; close alone the one that comes by itself."""
        try:
            for figure in libraries.take_figures():
                if figure is not but:
                    self.show(figure)
        except Exception as error:
            self._put({}, [f"The open figures can't be shown: {_told(error)}."])

    def _put(self, forms: dict[str, str], notes: list[str]) -> None:
        """Send one display; of one that is too large the largest forms are left out."""
        while forms or notes:
            frame: dict[str, Any] = {"type": "display", "data": forms}
            if notes:
                frame["note"] = shorten(" ".join(notes), 1000)
            text = json.dumps(frame)
            if len(text) < self._left:
                self._left -= len(text) + 1
                self._send(text)
                return
            if len(forms) < 2:
                self._left_out += 1
                if self._left_out & (self._left_out - 1) == 0:
                    self._tell_left_out()
                return
            largest = max(forms, key=lambda kind: len(forms[kind]))
            size = len(forms.pop(largest))
            notes.append(f"{largest} of {size} bytes is left out of a display: it is too large.")

    def _tell_left_out(self) -> None:
        self._send(json.dumps({"type": "display", "left_out": self._left_out}))


# That of the program that runs.
SCREEN = Screen(lambda _: None, 0)


def begin(send: Callable[[str], Any], limit: int) -> None:
    """Give the program its screen and the name `display`."""
    global SCREEN
    SCREEN = Screen(send, limit)
    builtins.display = display  # type: ignore[attr-defined]


def display(
    *objects: Any,
    include: Container[str] | None = None,
    exclude: Container[str] = (),
    raw: bool = False,
) -> None:
    """Show objects as notebooks do: pictures, HTML, Markdown, and so on, else their repr.

    include and exclude choose among the MIME types; a frame's HTML is shown only
    where include names it. With raw, an object is a dict of MIME types and data.
    """
    for value in objects:
        if raw:
            kept = {k: data for k, data in value.items() if _wanted(k, include, exclude)}
            SCREEN.show_forms(kept)
        else:
            SCREEN.show(value, include, exclude)


def forms_of(
    value: Any, include: Container[str] | None = None, exclude: Container[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """The forms that value has beside its repr, and notes on those that failed."""
    forms: dict[str, str] = {}
    notes: list[str] = []
    no_html = include is None and libraries.is_frame(value)

    def wanted(kind: str) -> bool:
        return _wanted(kind, include, exclude) and not (no_html and kind == "text/html")

    def collect(what: str, make: Callable[[], Any]) -> Any:
        """What make gives; its failure is a note."""
        try:
            return make()
        except NotImplementedError:  # IPython's way to say that there is none
            return None
        except Exception as error:
            notes.append(f"{what} of {type(value).__name__} raised {_told(error)}.")
            return None

    def add(what: str, kind: str, data: Any) -> None:
        if isinstance(data, tuple) and len(data) == 2:
            data = data[0]  # what follows is metadata
        if data is None or kind in forms or not wanted(kind):
            return
        encoded = collect(what, lambda: _encoded(kind, data))
        if encoded is not None:
            forms[kind] = encoded

    special = collect("A form", lambda: libraries.special_forms(value)) or ({}, "")
    for kind, data in special[0].items():
        add("A form", kind, data)
    if special[1]:
        notes.append(special[1])
    if method := _method(value, "_repr_mimebundle_"):
        bundle = collect(
            "_repr_mimebundle_", lambda: method(include=include, exclude=exclude or None)
        )
        if isinstance(bundle, tuple) and len(bundle) == 2:
            bundle = bundle[0]
        if isinstance(bundle, dict):
            for kind, data in bundle.items():
                add("_repr_mimebundle_", str(kind), data)
        elif bundle is not None:
            notes.append(_wrong(value, "_repr_mimebundle_", bundle))
    for kind, (name, types) in METHODS.items():
        if kind in forms or not wanted(kind):
            continue
        if kind == "image/jpeg" and "image/png" in forms:  # the same picture
            continue
        if method := _method(value, name):
            data = collect(name, method)
            inner = data[0] if isinstance(data, tuple) and len(data) == 2 else data
            if isinstance(inner, types):
                add(name, kind, inner)
            elif inner is not None:
                notes.append(_wrong(value, name, inner))
    return forms, notes


def _method(value: Any, name: str) -> Callable[..., Any] | None:
    """A method that value really has: some objects have an attribute of any name."""
    if inspect.isclass(value):
        return None
    try:
        if getattr(value, "_rillbox_canary_that_should_not_exist_", None) is not None:
            return None
        method = getattr(value, name, None)
    except Exception:
        return None
    return method if callable(method) else None


def _wanted(kind: str, include: Container[str] | None, exclude: Container[str]) -> bool:
    return (include is None or kind in include) and kind not in exclude


def is_binary(kind: str) -> bool:
    """Whether what is of a MIME type goes as base64; as in ../../../deno/display.go."""
    return kind == "application/pdf" or (
        kind.startswith(("image/", "audio/", "video/")) and not kind.startswith("image/svg+xml")
    )


def _encoded(kind: str, data: Any) -> str:
    if isinstance(data, bytes | bytearray | memoryview):
        data = bytes(data)
        if is_binary(kind):
            return base64.b64encode(data).decode()
        return data.decode(errors="replace")
    if isinstance(data, str):
        return data
    return json.dumps(data)


def _told(error: Exception) -> str:
    message = message_of(error)
    name = type(error).__name__
    return shorten(f"{name}: {message}" if message else name, 300)


def _wrong(value: Any, method: str, returned: Any) -> str:
    return f"{method} of {type(value).__name__} returned an object of {type(returned).__name__}."
