"""Metrics of classifiers, for studies, ``kfhe evaluate`` and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Named as in scikit-learn where it has them
METRICS = {
    "f1_macro": "macro F1",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "AUROC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "calibration_error": "calibration error",
}
LOWER_IS_BETTER = ("log_loss", "brier", "calibration_error")
CALIBRATION_BINS = 15


def metrics_of(
    true: NDArray[np.intp], predicted: NDArray[np.intp], scores: Any, n_classes: int
) -> dict[str, float]:
    """Return the `METRICS` for some rows.

    Parameters
    ----------
    true, predicted : int arrays of shape (n_rows,)
        True classes, by position.
    scores : array of shape (n_rows, n_classes) or None
        The scores of the classes, which need not sum to 1. Without them, only the metrics of
        predictions are returned: macro F1, accuracy and balanced accuracy.
    n_classes : int
        Number of classes. Macro F1 is over all of them, with 0 for a class without rows.

    Returns
    -------
    dict of str to float
        The metrics by name. AUROC is missing if there is only one class.

    Examples
    --------
    >>> from kfhe.metrics import metrics_of
    >>> metrics_of([0, 1, 1], [0, 1, 0], None, 3)
    {'f1_macro': 0.444..., 'accuracy': 0.666..., 'balanced_accuracy': 0.75}
    """
    import numpy as np
    from sklearn.metrics import accuracy_score, f1_score, log_loss, recall_score

    classes = list(range(n_classes))
    found = {
        "f1_macro": float(f1_score(true, predicted, labels=classes, average="macro", zero_division=0)),
        "accuracy": float(accuracy_score(true, predicted)),
        # scikit-learn's own function warns of predicted classes without rows
        "balanced_accuracy": float(recall_score(true, predicted, labels=np.unique(true), average="macro")),
    }
    if scores is None:
        return found
    shares = scores / scores.sum(axis=1, keepdims=True)
    auroc = roc_auc(true, shares)
    if auroc is not None:
        found["roc_auc"] = auroc
    return {
        **found,
        "log_loss": float(log_loss(true, shares, labels=classes)),
        "brier": brier_score(true, shares),
        "calibration_error": calibration_error(true, shares),
    }


def roc_auc(true: NDArray[np.intp], shares: NDArray[np.float64]) -> float | None:
    """Return the mean area under the ROC curve of each class against the others, where both have rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.metrics import roc_auc
    >>> roc_auc(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]))
    0.5
    """
    import numpy as np
    from sklearn.metrics import roc_auc_score

    present = [code for code in range(shares.shape[1]) if 0 < np.sum(true == code) < len(true)]
    areas = [roc_auc_score(true == code, shares[:, code]) for code in present]
    return float(np.mean(areas)) if areas else None


def brier_score(true: NDArray[np.intp], shares: NDArray[np.float64]) -> float:
    """Return the mean squared distance of the scores from 1 for the true class and 0 for others: 0 to 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.metrics import brier_score
    >>> brier_score(np.array([0, 1]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    0.25
    """
    import numpy as np

    return float(np.mean(np.sum((shares - np.eye(shares.shape[1])[true]) ** 2, axis=1)))


class CalibrationBins(NamedTuple):
    """Rows in bins of equal width, by the score of their most likely class.

    Attributes
    ----------
    n_rows : int array of shape (n_bins,)
        Number of rows in each bin.
    said, right : arrays of shape (n_bins,)
        Sum of the scores of the most likely class, and number of rows in which it is true.
    """

    n_rows: NDArray[Any]
    said: NDArray[Any]
    right: NDArray[Any]

    @classmethod
    def of(
        cls, true: NDArray[np.intp], shares: NDArray[np.float64], n_bins: int = CALIBRATION_BINS
    ) -> CalibrationBins:
        """Assign rows to bins."""
        import numpy as np

        surest = shares.max(axis=1)
        bins = np.minimum((surest * n_bins).astype(np.intp), n_bins - 1)
        right = shares.argmax(axis=1) == true
        n_rows = np.bincount(bins, minlength=n_bins)
        return cls(n_rows, np.bincount(bins, surest, n_bins), np.bincount(bins, right, n_bins))

    @property
    def error(self) -> float:
        """The expected calibration error: the mean difference of confidence and accuracy."""
        import numpy as np

        return float(np.abs(self.said - self.right).sum() / self.n_rows.sum())


def calibration_error(true: NDArray[np.intp], shares: NDArray[np.float64]) -> float:
    """Return the expected calibration error.

    Rows are assigned to 15 bins of equal width by the score of their most likely class. In each bin, the mean
    of these scores is compared with how often that class is true. The error is the mean difference, weighted
    by rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.metrics import calibration_error
    >>> sure = np.array([[0.8, 0.2]] * 5)
    >>> round(calibration_error(np.array([0, 0, 0, 0, 1]), sure), 12)  # right in 80 % of the cases
    0.0
    >>> round(calibration_error(np.array([0, 0, 1, 1, 1]), sure), 12)  # in 40 %
    0.4
    """
    return CalibrationBins.of(true, shares).error


class ClassMetrics(NamedTuple):
    """Precision, recall and F1 of a class; None where they are undefined."""

    rows: int
    precision: float | None
    recall: float | None
    f1: float | None


def class_metrics(confusion: NDArray[np.integer[Any]]) -> list[ClassMetrics]:
    """Return rows, precision, recall and F1 of each class.

    Parameters
    ----------
    confusion : int array of shape (n_classes, n_classes)
        Rows by true (down) and predicted class (across).

    Returns
    -------
    list of ClassMetrics
        One per class. A class that is never predicted has no precision, one without rows no recall.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.metrics import class_metrics
    >>> class_metrics(np.array([[3, 1], [0, 0]]))[0]
    ClassMetrics(rows=4, precision=1.0, recall=0.75, f1=0.857...)
    """

    def share(part: float, whole: float) -> float | None:
        return float(part / whole) if whole else None

    right, true, predicted = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    return [
        ClassMetrics(int(t), share(r, p), share(r, t), share(2 * r, t + p))
        for r, t, p in zip(right, true, predicted, strict=True)
    ]
