"""Confusion matrices: which classes are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix as count_pairs
from sklearn.utils.validation import check_is_fitted

from kfhe.look.palette import BLUE, VERMILION
from kfhe.plotting.display import Display, label_ticks, width_of

MOST_NUMBERS = 20  # classes; cells of more are too small for numbers
NAME = 24  # letters of a class's name


class ConfusionMatrixDisplay(Display):
    """Rows by true and predicted class: right ones in blue, others in vermilion.

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
    image_ : matplotlib AxesImage
        The shades.

    Examples
    --------
    >>> from kfhe.plotting import ConfusionMatrixDisplay
    >>> display = ConfusionMatrixDisplay.from_predictions(["a", "b", "b"], ["a", "b", "a"])
    >>> display.confusion_matrix
    array([[1, 0],
           [1, 1]])
    """

    image_: AxesImage

    def __init__(self, confusion_matrix: NDArray[Any], *, display_labels: Any = None) -> None:
        self.confusion_matrix = confusion_matrix
        self.display_labels = display_labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        normalize: str | None = None,
        display_labels: Any = None,
        ax: Axes | None = None,
    ) -> ConfusionMatrixDisplay:
        """Draw which classes a fitted classifier takes for which.

        Parameters
        ----------
        estimator : classifier
            A fitted one.
        X : array or data frame of shape (n_samples, n_features)
            Rows that it has not been trained on.
        y : array-like of shape (n_samples,)
            Their labels.
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
        check_is_fitted(estimator)
        return cls.from_predictions(
            y,
            estimator.predict(X),
            labels=estimator.classes_,
            normalize=normalize,
            display_labels=display_labels,
            ax=ax,
        )

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
        if labels is None:
            labels = np.unique(np.concatenate([np.asarray(y_true), np.asarray(y_pred)]))
        matrix = count_pairs(y_true, y_pred, labels=labels, normalize=normalize)
        if display_labels is None:
            display_labels = labels
        if len(display_labels) != len(labels):
            raise ValueError(f"there are {len(labels)} classes, got {len(display_labels)} display_labels")
        return cls(matrix, display_labels=display_labels).plot(ax)

    def _names(self) -> list[Any]:
        given = range(len(self.confusion_matrix)) if self.display_labels is None else self.display_labels
        return list(given)

    def _texts(self) -> list[list[str]]:
        is_count = np.issubdtype(self.confusion_matrix.dtype, np.integer)
        return [
            [f"{value}" if is_count else f"{value:.2f}" for value in row] for row in self.confusion_matrix
        ]

    def _size(self) -> tuple[float, float]:
        n_classes, names = len(self.confusion_matrix), width_of(self._names(), NAME)
        if n_classes > MOST_NUMBERS:
            cells = min(0.2 * n_classes, 12.0)
            return 1.2 + cells + names, 1.2 + cells + names
        widest = max(len(text) for row in self._texts() for text in row)
        width = n_classes * max(0.5, 0.2 + 0.09 * widest)
        across = names if names * n_classes > width else 0.2  # upright, if there is no room
        return 1.2 + max(width, 2.0) + names, 1.2 + 0.4 * max(n_classes, 4) + across

    def _draw(self, ax: Axes) -> None:
        matrix = np.asarray(self.confusion_matrix)
        n_classes = len(matrix)
        shades = np.empty((n_classes, n_classes, 4))
        shades[..., :3] = to_rgb(VERMILION)
        shades[np.arange(n_classes), np.arange(n_classes), :3] = to_rgb(BLUE)
        shades[..., 3] = 0.9 * self._strength(matrix)  # by transparency, so that it suits any background
        self.image_ = ax.imshow(shades, aspect="auto", interpolation="nearest")
        if n_classes <= MOST_NUMBERS:
            for i, row in enumerate(self._texts()):
                for j, text in enumerate(row):
                    ax.text(j, i, text, ha="center", va="center", fontsize="small")
        label_ticks(ax.xaxis, self._names(), NAME)
        label_ticks(ax.yaxis, self._names(), NAME)
        ax.set(xlabel="predicted class", ylabel="true class")
        ax.grid(False)

    @staticmethod
    def _strength(matrix: NDArray[Any]) -> NDArray[np.float64]:
        """Return how strong the shades are, 0 to 1, by a count's share of its row, a share's of the largest.

        By the root, so that rare mistakes can be seen.
        """
        whole = matrix.sum(axis=1, keepdims=True) if np.issubdtype(matrix.dtype, np.integer) else matrix.max()
        return np.sqrt(np.divide(matrix, whole, out=np.zeros(matrix.shape), where=np.asarray(whole) > 0))
