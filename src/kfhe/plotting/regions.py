"""Decision regions in two dimensions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kfhe.plotting.display import (
    MARKERS,
    Display,
    class_colours,
    ink,
    legend_beside,
    legend_width,
    shortened,
)

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class DecisionRegionsDisplay(Display):
    """Which class is predicted where, for a classifier of two features.

    The stronger the shade, the higher the score of the class that wins; where two classes tie there is
    none. Rows are markers in the colour of their label; a cross is on those that are predicted otherwise.

    Parameters
    ----------
    x, y : ndarray of shape (n_columns,), ndarray of shape (n_rows,)
        Places of the grid along both features.
    scores : ndarray of shape (n_rows, n_columns, n_classes)
        The scores on the grid.
    classes : ndarray of shape (n_classes,)
        The class labels.
    feature_names : sequence of two str
        Names of the axes.
    points : ndarray of shape (n_samples, 2), default=None
        Rows to draw.
    labels, predicted : ndarray of shape (n_samples,), default=None
        The rows' labels, and what is predicted for them.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    image_ : matplotlib AxesImage
        The shades.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.plotting import DecisionRegionsDisplay
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = KFHEClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> display = DecisionRegionsDisplay.from_estimator(model, X, y)
    >>> display.scores.shape
    (200, 200, 2)
    """

    x: Floats
    y: Floats
    scores: Floats
    _: KW_ONLY
    classes: NDArray[Any]
    feature_names: Any = ("x0", "x1")
    points: Floats | None = None
    labels: NDArray[Any] | None = None
    predicted: NDArray[Any] | None = None
    image_: AxesImage = field(init=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, grid_resolution: int = 200, ax: Axes | None = None
    ) -> DecisionRegionsDisplay:
        """Draw the regions of a fitted classifier of two numeric features.

        Parameters
        ----------
        estimator : classifier
            A fitted one with `predict_proba`.
        X : array or data frame of shape (n_samples, 2)
            Rows; the picture extends a little beyond them.
        y : array-like of shape (n_samples,), default=None
            Their labels. None: the rows are not drawn.
        grid_resolution : int, default=200
            Number of places along each feature.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

        Returns
        -------
        DecisionRegionsDisplay
            The display.
        """
        check_is_fitted(estimator)
        if np.ndim(X) != 2 or np.shape(X)[1] != 2:
            raise ValueError(f"decision regions need two features, got X of shape {np.shape(X)}")
        check_consistent_length(X, y)
        try:
            points = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"decision regions need two numeric features: {error}") from None
        lowest, highest = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        margin = np.where(highest > lowest, 0.06 * (highest - lowest), 0.5)
        places = [
            np.linspace(low, high, grid_resolution)
            for low, high in zip(lowest - margin, highest + margin, strict=True)
        ]
        grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*places)])
        names = getattr(estimator, "feature_names_in_", None)
        scores = estimator.predict_proba(_as_table(grid, X))
        display = cls(
            places[0],
            places[1],
            scores.reshape(grid_resolution, grid_resolution, -1),
            classes=estimator.classes_,
            feature_names=("x0", "x1") if names is None else names,
        )
        if y is not None:
            display.points, display.labels = points, np.asarray(y)
            display.predicted = estimator.predict(X)
        return display.plot(ax)

    def _size(self) -> tuple[float, float]:
        return 4.5 + legend_width([*self.classes, "wrong"]), max(4.2, 0.6 + 0.2 * min(len(self.classes), 25))

    def _draw(self, ax: Axes) -> None:
        colours = class_colours(len(self.classes))
        self._draw_shades(ax, colours)
        if self.points is not None:
            self._draw_points(ax, colours, self.points, np.asarray(self.labels))
        else:
            for name, colour in zip(self.classes, colours, strict=True):
                ax.plot([], [], linestyle="", marker="s", color=colour, label=shortened(name))
        ax.set(xlabel=shortened(self.feature_names[0], 50), ylabel=shortened(self.feature_names[1], 40))
        legend_beside(ax, ax.lines)

    def _draw_shades(self, ax: Axes, colours: list[Any]) -> None:
        n_classes = len(self.classes)
        tie = 1 / n_classes if n_classes > 1 else 0.0
        shades = np.empty((*self.scores.shape[:2], 4))
        shades[..., :3] = np.array([to_rgb(colour) for colour in colours])[self.scores.argmax(axis=2)]
        # By transparency, so that it suits any background
        shades[..., 3] = 0.6 * ((self.scores.max(axis=2) - tie) / (1 - tie)).clip(0, 1)
        # The places are centres of cells
        half = [(places[1] - places[0]) / 2 for places in (self.x, self.y)]
        extent = (
            self.x[0] - half[0],
            self.x[-1] + half[0],
            self.y[0] - half[1],
            self.y[-1] + half[1],
        )
        self.image_ = ax.imshow(shades, extent=extent, origin="lower", aspect="auto", interpolation="nearest")

    def _draw_points(self, ax: Axes, colours: list[Any], points: Floats, labels: NDArray[Any]) -> None:
        for position, (name, colour) in enumerate(zip(self.classes, colours, strict=True)):
            x, y = points[labels == name].T
            ax.plot(
                x,
                y,
                linestyle="",
                marker=MARKERS[position % len(MARKERS)],
                markersize=5,
                markeredgewidth=0.5,
                markeredgecolor="white",
                color=colour,
                label=shortened(name),
            )
        wrong = labels != np.asarray(self.predicted)
        if wrong.any():
            x, y = points[wrong].T
            ax.plot(x, y, linestyle="", marker="x", markersize=7, color=ink(), label=f"wrong ({wrong.sum()})")


def _as_table(grid: Floats, X: Any) -> Any:
    """Return the grid in the container that X came in, so that columns keep their names."""
    if hasattr(X, "column_names"):  # a pyarrow table
        return X.from_pydict(dict(zip(X.column_names, grid.T, strict=True)))
    if hasattr(X, "columns"):
        return type(X)(dict(zip(X.columns, grid.T, strict=True)))
    return grid
