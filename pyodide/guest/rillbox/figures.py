"""The backend of matplotlib that a program gets: Agg, with a `show` that shows.

matplotlib imports it by the name that `BACKEND` gives to MPLBACKEND. The module
is in the snapshot, where there is no matplotlib: its canvas is looked up when
matplotlib asks for it.
"""

from typing import Any

from . import display

BACKEND = f"module://{__name__}"


def show(*_arguments: Any, **_options: Any) -> None:
    """Show and close the open figures: pyplot.show."""
    display.SCREEN.figures()


def __getattr__(name: str) -> Any:
    if name != "FigureCanvas":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    globals()["FigureCanvas"] = FigureCanvasAgg
    return FigureCanvasAgg
