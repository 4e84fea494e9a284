"""The backend of matplotlib that a program gets: Agg, with a `show` that shows.

matplotlib imports it by the name that `BACKEND` gives to MPLBACKEND. The module
is in the snapshot, where there is no matplotlib: its canvas is looked up when
matplotlib asks for it.
"""

import sys
from typing import Any

from . import display

BACKEND = f"module://{__name__}"

# Backends that a program may name and that have windows, or a notebook, to show figures in.
OTHERS = (
    *(
        f"matplotlib.backends.backend_{name}"
        for name in (
            "gtk3agg",
            "gtk3cairo",
            "gtk4agg",
            "gtk4cairo",
            "macosx",
            "nbagg",
            "qt5agg",
            "qt5cairo",
            "qtagg",
            "qtcairo",
            "tkagg",
            "tkcairo",
            "webagg",
            "wx",
            "wxagg",
            "wxcairo",
        )
    ),
    "ipympl.backend_nbagg",
    "matplotlib_inline.backend_inline",
)


def stand_in() -> None:
    """Be these backends too: `matplotlib.use` finds them as they are imported already."""
    for name in OTHERS:
        sys.modules[name] = sys.modules[__name__]


def show(*_arguments: Any, **_options: Any) -> None:
    """Show and close the open figures: pyplot.show."""
    display.SCREEN.figures()


def __getattr__(name: str) -> Any:
    if name != "FigureCanvas":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    globals()["FigureCanvas"] = FigureCanvasAgg
    return FigureCanvasAgg
