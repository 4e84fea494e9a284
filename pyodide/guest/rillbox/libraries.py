"""Forms for what libraries have no notebook forms for themselves.

Nothing is imported for that: a library that the program has not imported is not
in sys.modules, and costs nothing.
"""

import io
import sys
from typing import Any

# The longer side of a picture that is made here, in pixels.
MAX_PIXELS = 1600
# How much of a table its text shows.
MAX_ROWS = 20
MAX_COLUMNS = 12
MAX_WIDTH = 120  # of a line, in characters


def special_forms(value: Any) -> tuple[dict[str, Any], str]:
    """The forms of a figure, picture or frame, and a note; empty for anything else."""
    if isinstance(value, _type("matplotlib.figure", "Figure")):
        return _figure(value)
    if isinstance(value, _type("PIL.Image", "Image")):
        return _picture(value)
    if isinstance(value, _type("pandas", "DataFrame")):
        text = value.to_string(
            max_rows=MAX_ROWS,
            max_cols=MAX_COLUMNS,
            max_colwidth=50,
            line_width=MAX_WIDTH,
            show_dimensions=True,
        )
        return {"text/plain": text}, ""
    if isinstance(value, _type("pandas", "Series")):
        text = value.to_string(max_rows=MAX_ROWS, length=True, dtype=True, name=True)
        return {"text/plain": text}, ""
    return {}, ""


def is_frame(value: Any) -> bool:
    """Whether value is a table of data, whose text says what it is."""
    return isinstance(value, (_type("pandas", "DataFrame"), _type("polars", "DataFrame")))


def _type(module: str, name: str) -> Any:
    """A class of a module that the program has imported, else no class."""
    found = getattr(sys.modules.get(module), name, ())
    return found if isinstance(found, type) else ()


def take_figures() -> list[Any]:
    """Those of matplotlib's open figures that have something in them; all are closed."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return [figure for figure in figures if not _is_empty(figure)]


def _is_empty(figure: Any) -> bool:
    return not figure.axes and not figure.lines


def _figure(figure: Any) -> tuple[dict[str, Any], str]:
    if _is_empty(figure):
        return {}, ""
    width, height = figure.get_size_inches() * figure.dpi
    scale = min(1, MAX_PIXELS / max(width, height))
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=figure.dpi * scale, bbox_inches="tight")
    return {"image/png": file.getvalue()}, _scaled(width, height, scale)


def _picture(image: Any) -> tuple[dict[str, Any], str]:
    width, height = image.size
    scale = min(1, MAX_PIXELS / max(width, height, 1))
    if scale == 1:
        return {}, ""  # it has its own forms
    smaller = image.resize((max(int(width * scale), 1), max(int(height * scale), 1)))
    return {"image/png": smaller._repr_png_()}, _scaled(width, height, scale)


def _scaled(width: float, height: float, scale: float) -> str:
    if scale == 1:
        return ""
    small = f"{int(width * scale)} by {int(height * scale)}"
    return f"A picture of {int(width)} by {int(height)} pixels is shown at {small}."
