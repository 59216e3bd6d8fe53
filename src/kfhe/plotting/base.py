"""The base class of displays, and helpers for drawing and rendering."""

from __future__ import annotations

import io
import math
import textwrap
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from rich.cells import cell_len
from sklearn.utils.validation import check_is_fitted

from kfhe.base import BaseKFHE
from kfhe.display import text as display_text
from kfhe.display.palette import PALETTE
from kfhe.plotting.fonts import cover

LETTER, LINE = 0.075, 0.14  # width of a letter and height of a line, in inches, in a small font
LEFT_TO_RIGHT = "\u200e"  # an invisible mark
MARKERS = "osD^vP*<>hpd"  # 12 markers and 7 colours give 84 different lines
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 150},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}


class Display(ABC):
    """A plot with its data, which can be drawn repeatedly.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the last plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    """

    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        Display
            The display itself.
        """
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=self._size(), layout="constrained")
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]
        cover(self.figure_)
        return self

    def to_figure(self) -> Figure:
        """Draw on a figure outside pyplot: without a window, and safe in any thread."""
        figure = Figure(figsize=self._size(), layout="constrained")
        self.plot(figure.add_subplot())
        return figure

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on the axes."""

    def _size(self) -> tuple[float, float]:
        """Return a suitable width and height of a new figure, in inches."""
        return 5.5, 3.5


def check_ensemble(estimator: Any) -> None:
    """Raise unless it is a fitted classifier of kfhe."""
    if not isinstance(estimator, BaseKFHE):
        raise TypeError(f"this display needs a KFHEClassifier, got {type(estimator).__name__}")
    check_is_fitted(estimator)


def rendered(figure: Figure, suffix: str) -> bytes:
    """Return a figure as the content of a png, svg or pdf file; the same figure gives the same bytes."""
    content = io.BytesIO()
    cover(figure)  # fonts for a title that was added later
    # Keep text as text in SVG
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "kfhe"}):
        figure.savefig(content, format=suffix, **FORMATS[suffix])
    return content.getvalue()


def ink() -> str:
    """Return the colour of text in the current style."""
    colour: str = mpl.rcParams["text.color"]
    return colour


def class_colours(n_classes: int) -> list[Any]:
    """Return a colour for each class; beyond the palette, from dark to light."""
    if n_classes <= len(PALETTE):
        return list(PALETTE[:n_classes])
    return [mpl.colormaps["viridis"](place / (n_classes - 1)) for place in range(n_classes)]


def shortened(name: Any, width: int = 32) -> str:
    """Return a name for matplotlib, with the middle omitted if it is wider than `width`."""
    text = display_text.shortened(name, width).replace("$", r"\$")  # a dollar starts a formula
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text):
        return f"{LEFT_TO_RIGHT}{text}{LEFT_TO_RIGHT}"  # keeps a following number in its place
    return text


def entitle(figure: Figure, title: str) -> None:
    """Put a title above a figure, on as many lines as necessary."""
    room = int(figure.get_figwidth() / (1.3 * LETTER))
    lines = textwrap.wrap(display_text.shortened(title, 2 * room), room, break_on_hyphens=False)
    figure.suptitle("\n".join(shortened(line, room) for line in lines), fontsize="medium")


def width_of(labels: Iterable[Any], width: int = 32) -> float:
    """Return the approximate width of the longest name in inches, shortened and in a small font."""
    return LETTER * max((cell_len(display_text.shortened(label, width)) for label in labels), default=0)


def label_ticks(axis: Axis, labels: Sequence[Any], width: int = 32) -> None:
    """Label the ticks with names; if there is little room, vertically along x, and not all of them."""
    ax, along_x = axis.axes, axis is axis.axes.xaxis
    # Room without names, titles and legends, which are not drawn yet
    extent = ax.get_window_extent()
    room = 0.8 * (extent.width if along_x else extent.height) / ax.figure.dpi / max(len(labels), 1)
    upright = along_x and width_of(labels, width) > room
    step = math.ceil(LINE / room) if upright or not along_x else 1
    places = range(0, len(labels), step)
    axis.set_ticks(places, [shortened(labels[place], width) for place in places])
    axis.set_tick_params(labelrotation=90 if upright else 0, labelsize="small")


def legend_width(labels: Sequence[Any]) -> float:
    """Return the approximate width of a legend beside the axes, in inches."""
    return _legend_columns(len(labels)) * (width_of(labels) + 0.5)


def _legend_columns(n_entries: int) -> int:
    return 1 + (n_entries - 1) // 25


def legend_beside(ax: Axes, handles: Sequence[Line2D], *, title: str | None = None) -> None:
    """Put a legend to the right of the axes, outside the plot."""
    ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
        frameon=False,
        fontsize="small",
        ncols=_legend_columns(len(handles)),
        alignment="left",
        title=title,
        title_fontsize="small",
    )


def count_along(ax: Axes, first: int, last: int) -> None:
    """Let the x axis show iterations or components: only integers, also for a single one."""
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    margin = 0.02 * (last - first) or 0.5
    ax.set_xlim(first - margin, last + margin)


def thinned(places: Sequence[float], room: float) -> list[float]:
    """Return some of sorted positions, with a minimum distance between them."""
    kept: list[float] = []
    for place in places:
        if not kept or place - kept[-1] >= room:
            kept.append(place)
    return kept


def say_there_are_no_iterations(ax: Axes) -> None:
    """Explain empty axes: a model of one class has only h_0."""
    ax.text(0.5, 0.5, "no iterations", ha="center", va="center", transform=ax.transAxes)
    ax.set_xticks([])


def marker_for(n_points: int) -> str:
    """Return a marker for lines of few points, since a single point has no line."""
    return "o" if n_points < 10 else ""
