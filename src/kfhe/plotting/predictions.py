"""Plots of predictions: confusion matrices, calibration and ROC curves."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn import calibration, metrics
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kfhe.display.palette import BLUE, PALETTE, VERMILION
from kfhe.metrics import CALIBRATION_BINS, CalibrationBins
from kfhe.plotting.base import Display, ink, label_ticks, legend_beside, shortened, width_of

Floats = NDArray[np.float64]


def coded(y_true: Any, y_score: Any, classes: Any) -> tuple[NDArray[np.intp], Floats, NDArray[Any]]:
    """Validate labels and scores; return labels as positions, the scores of all classes, and the classes.

    Without `classes`, they are the labels that occur. A single column of scores is for the second of two
    classes.
    """
    labels, scores = np.asarray(y_true), np.asarray(y_score, dtype=np.float64)
    check_consistent_length(labels, scores)
    classes = np.unique(labels) if classes is None else np.asarray(classes)
    if scores.ndim == 1:
        scores = np.column_stack([1 - scores, scores])
    if scores.shape[1] != len(classes):
        raise ValueError(f"there are {len(classes)} classes, got scores of {scores.shape[1]}")
    positions = {label: position for position, label in enumerate(classes.tolist())}
    unknown = sorted({str(label) for label in labels.tolist() if label not in positions})
    if unknown:
        raise ValueError(f"y_true has labels that are not in classes: {', '.join(unknown[:5])}")
    codes = np.array([positions[label] for label in labels.tolist()], dtype=np.intp)
    return codes, scores, classes


def scores_of(estimator: Any, X: Any) -> Floats:
    """Return the class probabilities by a fitted classifier."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"this display needs probabilities; {type(estimator).__name__} has no predict_proba")
    return estimator.predict_proba(X)


MOST_NUMBERS = 20  # classes; with more, cells are too small for numbers
NAME = 24  # characters of a class name


class ConfusionMatrixDisplay(Display, metrics.ConfusionMatrixDisplay):
    """scikit-learn's confusion matrix, with correct cells in blue and others in vermilion.

    The shade shows the share of the true class's rows (of the largest value, if the matrix is
    normalised). With more than 20 classes, numbers are omitted.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_classes)
        Numbers of rows, or shares, by true class (down) and predicted class (across).
    display_labels : sequence, default=None
        Names of the classes. None: 0, 1, 2, ... The middle of a long name is omitted.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    im_ : matplotlib AxesImage
        The shades.
    text_ : ndarray of matplotlib Text, or None
        The numbers.

    Examples
    --------
    >>> from kfhe.plotting import ConfusionMatrixDisplay
    >>> display = ConfusionMatrixDisplay.from_predictions(["a", "b", "b"], ["a", "b", "a"])
    >>> display.confusion_matrix
    array([[1, 0],
           [1, 1]])
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> ConfusionMatrixDisplay:
        """Plot the confusion matrix of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier.
        X : array or data frame of shape (n_samples, n_features)
            Rows that it was not trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        **options
            `normalize`, `display_labels` and `ax`, as in `from_predictions`.

        Returns
        -------
        ConfusionMatrixDisplay
            The display.
        """
        check_is_fitted(estimator)
        return cls.from_predictions(y, estimator.predict(X), labels=estimator.classes_, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        labels: Any = None,
        normalize: str | None = None,
        display_labels: Any = None,
        ax: Axes | None = None,
    ) -> ConfusionMatrixDisplay:
        """Plot the confusion matrix of predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            True labels and predictions.
        labels : sequence, default=None
            The classes, in order. None: all that occur, sorted.
        normalize : {"true", "pred", "all"}, default=None
            Show shares of the true classes, of the predicted ones or of all rows instead of numbers.
        display_labels : sequence, default=None
            Names of the classes. None: the labels.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        ConfusionMatrixDisplay
            The display.
        """
        labels = unique_labels(y_true, y_pred) if labels is None else labels
        names = labels if display_labels is None else display_labels
        if len(names) != len(labels):
            raise ValueError(f"there are {len(labels)} classes, got {len(names)} display_labels")
        matrix = metrics.confusion_matrix(y_true, y_pred, labels=labels, normalize=normalize)
        return cls(matrix, display_labels=names).plot(ax)

    def _names(self) -> list[Any]:
        return list(range(len(self.confusion_matrix)) if self.display_labels is None else self.display_labels)

    def _size(self) -> tuple[float, float]:
        n_classes, names = len(self.confusion_matrix), width_of(self._names(), NAME)
        if n_classes > MOST_NUMBERS:
            cells = min(0.2 * n_classes, 12.0)
            return 1.2 + cells + names, 1.2 + cells + names
        width = n_classes * max(0.5, 0.2 + 0.09 * max(4, len(f"{np.max(self.confusion_matrix):.0f}")))
        across = names if names * n_classes > width else 0.2  # vertical if there is no room
        return 1.2 + max(width, 2.0) + names, 1.2 + 0.4 * max(n_classes, 4) + across

    def _draw(self, ax: Axes) -> None:
        matrix = np.asarray(self.confusion_matrix)
        counts = np.issubdtype(matrix.dtype, np.integer)
        metrics.ConfusionMatrixDisplay.plot(
            self,
            ax=ax,
            include_values=len(matrix) <= MOST_NUMBERS,
            values_format="d" if counts else ".2f",
            colorbar=False,
            im_kw={"aspect": "auto"},
            text_kw={"color": ink(), "fontsize": "small"},
        )
        # The square root of the share makes rare mistakes visible; transparency is for any background
        whole = matrix.sum(axis=1, keepdims=True) if counts else matrix.max()
        strength = np.divide(matrix, whole, out=np.zeros(matrix.shape), where=np.asarray(whole) > 0) ** 0.5
        colours = np.where(np.eye(len(matrix), dtype=bool)[..., None], to_rgb(BLUE), to_rgb(VERMILION))
        self.im_.set_data(np.dstack([colours, 0.9 * strength]))
        label_ticks(ax.xaxis, self._names(), NAME)
        label_ticks(ax.yaxis, self._names(), NAME)
        ax.set(xlabel="predicted class", ylabel="true class")
        ax.grid(False)


LARGEST = 200.0  # area of a marker, in square points


class CalibrationDisplay(Display, calibration.CalibrationDisplay):
    """scikit-learn's calibration curve, for any number of classes.

    Rows are put into bins by the probability of their most likely class. A bin on the diagonal is right as
    often as its probabilities say; bins below the diagonal are overconfident. The size of a marker shows the
    number of rows. The mean distance from the diagonal, weighted by rows, is the calibration error in the
    legend.

    One display is one line. Draw a second one on the same `ax_` to compare two models.

    Parameters
    ----------
    prob_true : ndarray of shape (n_bins,)
        How often the most likely class is true.
    prob_pred : ndarray of shape (n_bins,)
        The mean probability of the most likely class.
    n_rows : ndarray of shape (n_bins,)
        Number of rows in each bin; at least one.
    name : str, default=None
        Name of the line in the legend.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    line_ : matplotlib Line2D
        The line.

    Examples
    --------
    >>> from kfhe.plotting import CalibrationDisplay
    >>> display = CalibrationDisplay.from_predictions([0, 0, 0, 0, 1], [[0.8, 0.2]] * 5)
    >>> display.line_.get_label()
    'calibration error 0.000'
    """

    def __init__(self, prob_true: Any, prob_pred: Any, n_rows: Any, *, name: str | None = None) -> None:
        super().__init__(prob_true, prob_pred, None, estimator_name=name)
        self.n_rows = n_rows

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> CalibrationDisplay:
        """Plot the calibration curve of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array or data frame of shape (n_samples, n_features)
            Rows that it was not trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        **options
            `n_bins`, `name` and `ax`, as in `from_predictions`.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        return cls.from_predictions(y, scores_of(estimator, X), classes=estimator.classes_, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        n_bins: int = CALIBRATION_BINS,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> CalibrationDisplay:
        """Plot the calibration curve of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes, or scores that are proportional to them; a single column is for the
            second of two classes.
        classes : sequence, default=None
            The classes, in the order of the columns. None: the labels that occur, sorted.
        n_bins : int, default=15
            Number of bins of equal width from 0 to 1.
        name : str, default=None
            Name of the line in the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        codes, scores, _ = coded(y_true, y_prob, classes)
        bins = CalibrationBins.of(codes, scores / scores.sum(axis=1, keepdims=True), n_bins)
        filled = bins.n_rows > 0
        n_rows = bins.n_rows[filled]
        return cls(bins.right[filled] / n_rows, bins.said[filled] / n_rows, n_rows, name=name).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 4.6, 4.2

    def _draw(self, ax: Axes) -> None:
        differences = np.abs(np.asarray(self.prob_true) - self.prob_pred)
        label = f"calibration error {np.average(differences, weights=self.n_rows):.3f}"
        label = label if self.estimator_name is None else f"{shortened(self.estimator_name)}: {label}"
        colour = PALETTE[max(0, len(ax.lines) - 1) % len(PALETTE)]
        calibration.CalibrationDisplay.plot(self, ax=ax, name=label, color=colour, marker="")
        ax.lines[0].set(color=ink(), linewidth=0.8, zorder=1)  # the diagonal
        areas = LARGEST * np.asarray(self.n_rows) / np.max(self.n_rows)
        ax.scatter(self.prob_pred, self.prob_true, areas, color=colour, alpha=0.7, zorder=2)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="probability of the likeliest class")
        ax.set(ylabel="share of rows in which it is the true one")
        ax.legend(fontsize="small", loc="upper left")


class RocCurveDisplay(Display, metrics.RocCurveDisplay):
    """scikit-learn's ROC curve, for each class against all others.

    With two classes there is one line, with more there is one for each. With more than seven, those with the
    smallest areas have names and colours, and the others are grey.

    Parameters
    ----------
    fpr, tpr : list of ndarray
        False and true positive rates of each line.
    roc_auc : list of float
        The area under each line.
    name : list
        The class of each line.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    lines_ : list of matplotlib Line2D
        The lines, in the order of the classes.

    Examples
    --------
    >>> from kfhe.plotting import RocCurveDisplay
    >>> display = RocCurveDisplay.from_predictions(["no", "no", "yes", "yes"], [0.1, 0.4, 0.3, 0.8])
    >>> display.name, display.roc_auc
    (['yes'], [0.75])
    """

    lines_: list[Line2D]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None) -> RocCurveDisplay:
        """Plot the ROC curves of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array or data frame of shape (n_samples, n_features)
            Rows that it was not trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        RocCurveDisplay
            The display.
        """
        return cls.from_predictions(y, scores_of(estimator, X), classes=estimator.classes_, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_score: Any, *, classes: Any = None, ax: Axes | None = None
    ) -> RocCurveDisplay:
        """Plot the ROC curves of scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_score : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the classes; a single column is for the second of two classes.
        classes : sequence, default=None
            The classes, in the order of the columns. None: the labels that occur, sorted. A class without
            rows, or with all of them, has no line.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        RocCurveDisplay
            The display.
        """
        codes, scores, classes = coded(y_true, y_score, classes)
        drawn = [1] if len(classes) == 2 else range(len(classes))
        drawn = [code for code in drawn if 0 < np.sum(codes == code) < len(codes)]
        if not drawn:
            raise ValueError("ROC curves need rows of two classes or more")
        curves = [metrics.roc_curve(codes == code, scores[:, code])[:2] for code in drawn]
        fpr, tpr = map(list, zip(*curves, strict=True))
        areas = [float(metrics.auc(*curve)) for curve in curves]
        return cls(fpr=fpr, tpr=tpr, roc_auc=areas, name=classes[drawn].tolist()).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 4.5 + max(1.9, width_of(self.name) + 1.0), 3.8

    def _draw(self, ax: Axes) -> None:
        worst = np.argsort(self.roc_auc, kind="stable").tolist()
        # In the order of the classes, if all have names
        named = sorted(worst) if len(worst) <= len(PALETTE) else worst[: len(PALETTE)]
        plain = {"linestyle": "-", "alpha": 1.0}
        looks = [{**plain, "color": "0.6", "linewidth": 0.8, "zorder": 1.5, "label": None} for _ in worst]
        for position, colour in zip(named, PALETTE, strict=False):
            label = f"{shortened(self.name[position])}  {self.roc_auc[position]:.3f}"
            looks[position] = {**plain, "color": colour, "linewidth": 1.5, "label": label}
        chance = {"color": ink(), "linewidth": 0.8, "linestyle": ":", "zorder": 1}
        metrics.RocCurveDisplay.plot(
            self, ax=ax, curve_kwargs=looks, plot_chance_level=True, chance_level_kw=chance
        )
        self.lines_ = np.atleast_1d(self.line_).tolist()
        handles, others = [self.lines_[position] for position in named], worst[len(named) :]
        if others:
            least, most = self.roc_auc[others[0]], self.roc_auc[others[-1]]
            label = f"{len(others)} others  {least:.3f} to {most:.3f}"
            handles += ax.plot([], [], color="0.6", linewidth=0.8, label=label)
        ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="auto")
        mean = f", on average {np.mean(self.roc_auc):.3f}" if len(worst) > 1 else ""
        legend_beside(ax, handles, title=f"area{mean}")
