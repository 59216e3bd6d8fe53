"""What all displays share: where they draw, in which colours, and how they become files."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from kfhe.base import BaseKFHE
from kfhe.look.palette import PALETTE

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise ImportError("kfhe.plotting needs matplotlib: pip install kfhe[plot]") from error

MARKERS = "osD^vP*<>hpd"  # 12 of them and 7 colours make 84 lines that differ
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 150},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}


class Display(ABC):
    """A picture that has its data and can be drawn again and again.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
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
            Where to draw. None: on a new figure.

        Returns
        -------
        Display
            The display itself; `ax_` and `figure_` are what it was drawn on.
        """
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=self._size(), layout="constrained")
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]
        return self

    def to_figure(self) -> Figure:
        """Draw on a figure that pyplot doesn't know of: no window, nothing to close, safe in any thread."""
        figure = Figure(figsize=self._size(), layout="constrained")
        self.plot(figure.add_subplot())
        return figure

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on the axes."""

    def _size(self) -> tuple[float, float]:
        """Return the width and height, in inches, that suit a figure of its own."""
        return 5.5, 3.5


def check_ensemble(estimator: Any) -> None:
    """Raise unless it is a fitted classifier of the family."""
    if not isinstance(estimator, BaseKFHE):
        raise TypeError(f"this display needs a KFHEClassifier, got {type(estimator).__name__}")
    check_is_fitted(estimator)


def rendered(figure: Figure, suffix: str) -> bytes:
    """Return a figure as the content of a png, svg or pdf file; the same figure gives the same bytes."""
    content = io.BytesIO()
    # Texts stay texts in SVG
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "kfhe"}):
        figure.savefig(content, format=suffix, **FORMATS[suffix])
    return content.getvalue()


def ink() -> str:
    """Return the colour of texts in the style that is in use."""
    colour: str = mpl.rcParams["text.color"]
    return colour


def class_colours(n_classes: int) -> list[Any]:
    """Return a colour for each class; more than the palette has go from dark to light."""
    if n_classes <= len(PALETTE):
        return list(PALETTE[:n_classes])
    return [mpl.colormaps["viridis"](place / (n_classes - 1)) for place in range(n_classes)]


def shortened(name: Any, width: int = 32) -> str:
    """Return a name with its middle left out if it is longer than `width`."""
    text = " ".join(str(name).split()).replace("$", r"\$")  # a dollar would start a formula
    if len(text) <= width:
        return text
    end = (width - 1) // 3
    return f"{text[: width - 1 - end]}…{text[-end:]}"


def width_of(names: Iterable[Any], width: int = 32) -> float:
    """Return about how many inches the longest of these names takes, shortened, in a small font."""
    return 0.075 * max((len(shortened(name, width)) for name in names), default=0)


def legend_beside(ax: Axes, n_entries: int) -> None:
    """Put a legend to the right of the axes, where no line can be under it."""
    columns = 1 + (n_entries - 1) // 25
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small", ncols=columns)


def count_along(ax: Axes, first: int, last: int) -> None:
    """Have the x axis count iterations or components: whole numbers only, and room for a single one."""
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    margin = 0.02 * (last - first) or 0.5
    ax.set_xlim(first - margin, last + margin)


def say_there_are_no_iterations(ax: Axes) -> None:
    """Say in the middle of the axes why they are empty: a model of one class has h_0 only."""
    ax.text(0.5, 0.5, "no iterations", ha="center", va="center", transform=ax.transAxes)
    ax.set_xticks([])


def marker_for(n_points: int) -> str:
    """Return a marker for lines of few points: a single one has no line."""
    return "o" if n_points < 10 else ""
