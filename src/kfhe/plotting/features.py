"""Plots of features: importances and decision regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kfhe.display.palette import BLUE
from kfhe.plotting.base import (
    MARKERS,
    Display,
    class_colours,
    ink,
    legend_beside,
    legend_width,
    shortened,
    width_of,
)


@dataclass(eq=False, repr=False)
class FeatureImportanceDisplay(Display):
    """Plot of the most important features as bars, the first at the top.

    Parameters
    ----------
    importances : sequence of float
        The importance of each feature.
    feature_names : sequence of str
        Their names. The middle of a long name is omitted.
    max_features : int, default=20
        Maximum number of features.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    bars_ : matplotlib BarContainer
        The bars, the most important feature first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.plotting import FeatureImportanceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = KFHEClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> display = FeatureImportanceDisplay.from_estimator(model)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][0]
    'petal length (cm)'
    """

    importances: Sequence[float]
    feature_names: Sequence[str]
    _: KW_ONLY
    max_features: int = 20
    bars_: BarContainer = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int = 20,
        ax: Axes | None = None,
    ) -> FeatureImportanceDisplay:
        """Plot the feature importances of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `feature_importances_`.
        feature_names : sequence of str, default=None
            Names of the features. None: the names of the training columns, or x0, x1, ...
        max_features : int, default=20
            Maximum number of features.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        FeatureImportanceDisplay
            The display.
        """
        check_is_fitted(estimator)
        try:
            importances = estimator.feature_importances_
        except AttributeError as error:
            raise ValueError(f"there are no importances to draw: {error}") from error
        if feature_names is None:
            numbered = [f"x{feature}" for feature in range(len(importances))]
            feature_names = getattr(estimator, "feature_names_in_", numbered)
        if len(feature_names) != len(importances):
            raise ValueError(f"there are {len(importances)} features, got {len(feature_names)} feature_names")
        return cls(importances, feature_names, max_features=max_features).plot(ax)

    def _size(self) -> tuple[float, float]:
        width = 4.0 + width_of(self.feature_names, 40)
        return width, 1.0 + 0.27 * min(len(self.importances), self.max_features)

    def _draw(self, ax: Axes) -> None:
        importances = np.asarray(self.importances)
        order = np.argsort(-importances, kind="stable")
        shown, others = order[: self.max_features], order[self.max_features :]
        places = range(len(shown))
        self.bars_ = ax.barh(places, importances[shown], color=BLUE)
        ax.bar_label(self.bars_, fmt="%.3f", padding=3, fontsize="small")
        ax.set_yticks(places, [shortened(self.feature_names[feature], 40) for feature in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.set_xlim(0, 1.2 * importances.max(initial=0.0) or 1.0)
        label = "importance"
        if len(others):
            label += f"\n(the other {len(others)} together: {importances[others].sum():.3f})"
        ax.set_xlabel(label)


Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class DecisionRegionsDisplay(Display):
    """Plot of the predicted class by two features.

    The stronger the shade, the higher the score of the predicted class. Rows are markers in the colour of
    their label; those with another prediction have a cross.

    Parameters
    ----------
    x, y : ndarray of shape (n_columns,), ndarray of shape (n_rows,)
        Coordinates of the grid.
    scores : ndarray of shape (n_rows, n_columns, n_classes)
        The scores on the grid.
    classes : ndarray of shape (n_classes,)
        The class labels.
    feature_names : sequence of two str
        Names of the axes.
    points : ndarray of shape (n_samples, 2), default=None
        Rows.
    labels, predicted : ndarray of shape (n_samples,), default=None
        Their labels and predictions.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
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
        """Plot the decision regions of a fitted classifier with two numeric features.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array or data frame of shape (n_samples, 2)
            Rows; the plot extends a little beyond them.
        y : array-like of shape (n_samples,), default=None
            Their labels. None: rows are not drawn.
        grid_resolution : int, default=200
            Number of grid points along each feature.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

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
        # Transparency, for any background
        shades[..., 3] = 0.6 * ((self.scores.max(axis=2) - tie) / (1 - tie)).clip(0, 1)
        # Grid points are centres of cells
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
    """Return the grid in the container of X, so that columns keep their names."""
    if hasattr(X, "column_names"):  # a pyarrow table
        return X.from_pydict(dict(zip(X.column_names, grid.T, strict=True)))
    if hasattr(X, "columns"):
        return type(X)(dict(zip(X.columns, grid.T, strict=True)))
    return grid
