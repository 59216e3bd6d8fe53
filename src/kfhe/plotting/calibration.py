"""Calibration: whether probabilities can be believed."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn import calibration

from kfhe.look.palette import PALETTE
from kfhe.metrics import CALIBRATION_BINS, CalibrationBins
from kfhe.plotting.display import Display, ink, shortened
from kfhe.plotting.predictions import coded, scores_of

LARGEST = 200.0  # area of a marker, in square points


class CalibrationDisplay(Display, calibration.CalibrationDisplay):
    """scikit-learn's display of how often predictions are right, for any number of classes.

    Rows are put into bins by the probability of their likeliest class. A bin on the diagonal is as often
    right as its probabilities say; below it they promise too much. The larger a marker, the more rows it
    stands for. The mean distance from the diagonal, by rows, is the calibration error in the legend.

    One display is one line. Draw a second one on the `ax_` of the first to compare two models.

    Parameters
    ----------
    prob_true : ndarray of shape (n_bins,)
        How often the likeliest class is the true one.
    prob_pred : ndarray of shape (n_bins,)
        The mean probability of the likeliest class.
    n_rows : ndarray of shape (n_bins,)
        Number of rows in each bin; at least one.
    name : str, default=None
        What to call the line in the legend.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
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
        """Draw whether the probabilities of a fitted classifier can be believed.

        Parameters
        ----------
        estimator : classifier
            A fitted one with `predict_proba`.
        X : array or data frame of shape (n_samples, n_features)
            Rows that it has not been trained on.
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
        """Draw whether probabilities can be believed.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes, or scores of which they are the shares; of one column, those of the
            second of two classes.
        classes : sequence, default=None
            The classes, in the order of the columns. None: the labels that there are, sorted.
        n_bins : int, default=15
            Number of bins of equal width from 0 to 1.
        name : str, default=None
            What to call the line in the legend.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

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
