"""Metrics: what classifiers are judged by, in a study, by ``kfhe evaluate`` and in benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# By scikit-learn's names where it has one, and in words
METRICS = {
    "f1_macro": "macro F1",
    "accuracy": "accuracy",
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
    """Return the `METRICS` of some rows.

    Parameters
    ----------
    true, predicted : int arrays of shape (n_rows,)
        Classes, by their numbers from 0.
    scores : array of shape (n_rows, n_classes) or None
        The scores of the classes; they need not sum to 1. Without them there are macro F1 and accuracy only.
    n_classes : int
        Number of classes. Macro F1 is over all of them, with 0 for one that has no rows.

    Returns
    -------
    dict of str to float
        The metrics by name. AUROC is missing if all rows are of one class.

    Examples
    --------
    >>> from kfhe.metrics import metrics_of
    >>> metrics_of([0, 1, 1], [0, 1, 0], None, 3)
    {'f1_macro': 0.444..., 'accuracy': 0.666...}
    """
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    classes = list(range(n_classes))
    found = {
        "f1_macro": float(f1_score(true, predicted, labels=classes, average="macro", zero_division=0)),
        "accuracy": float(accuracy_score(true, predicted)),
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
    """Return the mean area under the ROC curves of each class against all others, where both have rows.

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
    """Return the mean squared distance of the shares from 1 for the true class and 0 for others: 0 to 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.metrics import brier_score
    >>> brier_score(np.array([0, 1]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    0.25
    """
    import numpy as np

    return float(np.mean(np.sum((shares - np.eye(shares.shape[1])[true]) ** 2, axis=1)))


def calibration_error(true: NDArray[np.intp], shares: NDArray[np.float64]) -> float:
    """Return the expected calibration error: how far shares of the likeliest class are from being right.

    Rows are put into 15 bins of equal width by the share of their likeliest class. In each bin, the mean of
    these shares is compared with how often that class is the true one; the error is the mean difference,
    each bin counting by its rows.

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
    import numpy as np

    surest = shares.max(axis=1)
    right = shares.argmax(axis=1) == true
    bins = np.minimum((surest * CALIBRATION_BINS).astype(np.intp), CALIBRATION_BINS - 1)
    differences = np.bincount(bins, surest - right, minlength=CALIBRATION_BINS)
    return float(np.abs(differences).sum() / len(true))
