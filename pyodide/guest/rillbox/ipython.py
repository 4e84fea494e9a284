"""IPython.display for programs that want no more of IPython: it shows by our display.

The package IPython has a dozen others with it. It is fetched for programs that import
more of it, or ask for it by name.
"""

import html
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from . import display as screen

# What there is of IPython here.
MODULES = ("IPython", "IPython.display", "IPython.core", "IPython.core.display")


class DisplayObject:
    """Something to show, in one form."""

    kind = "text/plain"

    def __init__(
        self,
        data: Any = None,
        url: str | None = None,
        filename: str | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Take the data, or read it from a file."""
        self.url, self.filename, self.metadata = url, filename, metadata or {}
        self.data = data
        if data is None and filename is not None:
            self.data = self._read(Path(filename))

    def _read(self, path: Path) -> Any:
        return path.read_text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {} if self.data is None else {self.kind: self.data}

    def __repr__(self) -> str:
        return f"<IPython.core.display.{type(self).__name__} object>"


class TextDisplayObject(DisplayObject):
    """A text to show."""


class Pretty(TextDisplayObject):
    """Plain text."""


class HTML(TextDisplayObject):
    """HTML."""

    kind = "text/html"

    def __html__(self) -> str:
        return str(self.data)


class Markdown(TextDisplayObject):
    """Markdown."""

    kind = "text/markdown"


class Latex(TextDisplayObject):
    """LaTeX."""

    kind = "text/latex"


class Math(Latex):
    """A formula of LaTeX."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {self.kind: f"$\\displaystyle {str(self.data).strip('$')}$"}


class Javascript(TextDisplayObject):
    """JavaScript, which is shown and not run."""

    kind = "application/javascript"


class JSON(DisplayObject):
    """Data for JSON."""

    kind = "application/json"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        data = json.loads(self.data) if isinstance(self.data, str) else self.data
        return {self.kind: data}


class GeoJSON(JSON):
    """Data for GeoJSON."""

    kind = "application/geo+json"


class Code(TextDisplayObject):
    """The text of a program."""

    def __init__(self, data: Any = None, url: Any = None, filename: Any = None, language: str = ""):
        """Take the text, or read it from a file."""
        super().__init__(data, url, filename)
        self.language = language

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        text = f"```{self.language or ''}\n{self.data}\n```"
        return {"text/plain": str(self.data), "text/markdown": text}


class SVG(DisplayObject):
    """A picture in SVG."""

    kind = "image/svg+xml"


class Image(DisplayObject):
    """A picture: its bytes, its file, or its address, which is shown as HTML."""

    KINDS = (
        ("image/png", b"\x89PNG"),
        ("image/jpeg", b"\xff\xd8"),
        ("image/gif", b"GIF8"),
        ("image/webp", b"RIFF"),
    )

    def __init__(
        self,
        data: Any = None,
        url: str | None = None,
        filename: str | None = None,
        format: str | None = None,
        width: int | None = None,
        height: int | None = None,
        **_: Any,
    ) -> None:
        """Take the bytes, a path, or a URL."""
        if isinstance(data, (str, Path)) and filename is None and url is None:
            text = str(data)
            if text.startswith(("http:", "https:", "data:")):
                data, url = None, text
            else:
                data, filename = None, text
        super().__init__(data, url, filename)
        self.width, self.height = width, height
        self.format = (format or "png").lower().replace("jpg", "jpeg")

    def _read(self, path: Path) -> bytes:
        return path.read_bytes()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        if self.data is None:
            sizes = "".join(
                f' {name}="{value}"'
                for name, value in (("width", self.width), ("height", self.height))
                if value
            )
            return {"text/html": f'<img src="{html.escape(self.url or "")}"{sizes}>'}
        for kind, start in self.KINDS:
            if bytes(self.data).startswith(start):
                return {kind: self.data}
        return {f"image/{self.format}": self.data}


class IFrame:
    """A page within the page."""

    def __init__(self, src: str, width: Any, height: Any, **_: Any) -> None:
        """Show the page at src."""
        self.src, self.width, self.height = src, width, height

    def _repr_html_(self) -> str:
        src = html.escape(self.src)
        return f'<iframe src="{src}" width="{self.width}" height="{self.height}"></iframe>'


class Audio(DisplayObject):
    """Sound: its bytes or its file."""

    kind = "audio/wav"

    def _read(self, path: Path) -> bytes:
        return path.read_bytes()


class Video(Audio):
    """A film: its bytes or its file."""

    kind = "video/mp4"


class FileLink:
    """A link to a file."""

    def __init__(self, path: Any, *_: Any, **__: Any) -> None:
        """Link to the file at path."""
        self.path = str(path)

    def _repr_html_(self) -> str:
        path = html.escape(self.path)
        return f'<a href="{path}">{path}</a>'

    def __repr__(self) -> str:
        return self.path


class ProgressBar:
    """How far something is; it can be iterated over."""

    def __init__(self, total: int) -> None:
        """Begin."""
        self.total, self.progress = total, 0

    def display(self) -> None:
        """Show it."""
        display(self)

    def update(self) -> None:
        """Show it as it is now, which nobody sees before the end."""

    def __iter__(self) -> Any:
        for self.progress in range(1, self.total + 1):  # noqa: B020
            yield self.progress - 1

    def __repr__(self) -> str:
        return f"{self.progress}/{self.total}"


class DisplayHandle:
    """What was shown, to be shown anew."""

    def __init__(self, display_id: str | None = None) -> None:
        """Name it."""
        self.display_id = display_id or "display"

    def display(self, value: Any, **options: Any) -> None:
        """Show another value."""
        display(value, **options)

    update = display


def display(
    *objects: Any,
    include: Any = None,
    exclude: Any = None,
    raw: bool = False,
    metadata: Any = None,
    transient: Any = None,
    display_id: Any = None,
    clear: bool = False,
    **_: Any,
) -> DisplayHandle | None:
    """Show objects."""
    screen.display(*objects, include=include, exclude=exclude or (), raw=raw)
    if not display_id:
        return None
    return DisplayHandle(display_id if isinstance(display_id, str) else None)


def update_display(value: Any, *, display_id: str, **options: Any) -> None:
    """Show another value; what was shown before stays."""
    display(value, **options)


def publish_display_data(data: dict[str, Any], metadata: Any = None, **_: Any) -> None:
    """Show what is given in its forms."""
    screen.display(data, raw=True)


def clear_output(wait: bool = False) -> None:
    """Leave what was shown as it is: it has been sent."""


def set_matplotlib_formats(*_: Any, **__: Any) -> None:
    """Leave the form of figures as it is."""


def get_ipython() -> None:
    """Give no shell: there is none."""


def _of_kind(kind: str) -> Any:
    def show(*objects: Any, **options: Any) -> None:
        for value in objects:
            if options.get("raw"):
                screen.display({kind: value}, raw=True)
            else:
                screen.display(value, include=[kind])

    return show


def suffices(modules: list[str]) -> bool:
    """Whether what a program imports of IPython is here."""
    names = [name for name in modules if name.partition(".")[0] == "IPython"]
    here = {"get_ipython", "display", "core", *_public()}
    return all(name in MODULES or name.rpartition(".")[2] in here for name in names)


def _public() -> dict[str, Any]:
    kinds = {
        "html": "text/html",
        "markdown": "text/markdown",
        "svg": "image/svg+xml",
        "png": "image/png",
        "jpeg": "image/jpeg",
        "latex": "text/latex",
        "json": "application/json",
        "javascript": "application/javascript",
        "pretty": "text/plain",
    }
    shown = {f"display_{name}": _of_kind(kind) for name, kind in kinds.items()}
    own = {k: v for k, v in globals().items() if getattr(v, "__module__", "") == __name__}
    return shown | {name: value for name, value in own.items() if name[0] != "_"}


def provide() -> None:
    """Make the modules, unless IPython itself is there."""
    if "IPython" in sys.modules:
        return
    for name in MODULES:
        module = ModuleType(name, __doc__)
        module.__dict__.update(_public(), __path__=[], version_info=(9, 0, 0), __version__="9.0.0")
        module.__dict__.pop("provide", None)
        module.__dict__.pop("suffices", None)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent and name != "IPython.display":
            setattr(sys.modules[parent], last, module)
    # `from IPython import display` gives the module, of which notebooks use names.
    sys.modules["IPython"].__dict__["display"] = sys.modules["IPython.display"]
