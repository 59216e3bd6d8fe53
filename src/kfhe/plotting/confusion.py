"""Confusion matrices: which classes are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from sklearn import metrics
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from kfhe.look.palette import BLUE, VERMILION
from kfhe.plotting.display import Display, ink, label_ticks, width_of

MOST_NUMBERS = 20  # classes; cells of more are too small for numbers
NAME = 24  # letters of a class's name


class ConfusionMatrixDisplay(Display, metrics.ConfusionMatrixDisplay):
    """scikit-learn's display of rows by true and predicted class: right ones blue, others vermilion.

    The stronger the shade, the larger the share of the true class's rows (of the largest value, if the
    matrix has been normalised). With more than 20 classes there are shades only.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_classes)
        Numbers of rows, or shares, by true class (down) and predicted class (across).
    display_labels : sequence, default=None
        What to call the classes. None: 0, 1, 2, ... The middle of a long name is left out.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
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
        """Draw which classes a fitted classifier takes for which.

        Parameters
        ----------
        estimator : classifier
            A fitted one.
        X : array or data frame of shape (n_samples, n_features)
            Rows that it has not been trained on.
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
        """Draw which labels were taken for which.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Labels, and what was predicted.
        labels : sequence, default=None
            The classes, in the order to draw them in. None: all that there are, sorted.
        normalize : {"true", "pred", "all"}, default=None
            Draw shares of the true classes, of the predicted ones or of all rows instead of numbers.
        display_labels : sequence, default=None
            What to call the classes. None: by their labels.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

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
        across = names if names * n_classes > width else 0.2  # upright, if there is no room
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
        # By the root of the share, so that rare mistakes can be seen; by transparency, to suit any background
        whole = matrix.sum(axis=1, keepdims=True) if counts else matrix.max()
        strength = np.divide(matrix, whole, out=np.zeros(matrix.shape), where=np.asarray(whole) > 0) ** 0.5
        colours = np.where(np.eye(len(matrix), dtype=bool)[..., None], to_rgb(BLUE), to_rgb(VERMILION))
        self.im_.set_data(np.dstack([colours, 0.9 * strength]))
        label_ticks(ax.xaxis, self._names(), NAME)
        label_ticks(ax.yaxis, self._names(), NAME)
        ax.set(xlabel="predicted class", ylabel="true class")
        ax.grid(False)
