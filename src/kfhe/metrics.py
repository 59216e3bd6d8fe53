"""Metrics: what classifiers are judged by, in a study, by ``kfhe evaluate`` and in benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# By scikit-learn's names, and in words
METRICS = {"f1_macro": "macro F1", "accuracy": "accuracy", "log_loss": "log loss"}


def metrics_of(
    true: NDArray[np.intp], predicted: NDArray[np.intp], scores: Any, n_classes: int
) -> dict[str, float]:
    """Return the `METRICS` of some rows.

    Parameters
    ----------
    true, predicted : int arrays of shape (n_rows,)
        Classes, by their numbers from 0.
    scores : array of shape (n_rows, n_classes) or None
        The scores of the classes; they need not sum to 1. Without them there is no log loss.
    n_classes : int
        Number of classes. Macro F1 is over all of them, with 0 for one that has no rows.

    Returns
    -------
    dict of str to float
        The metrics by name.

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
    if scores is not None:
        shares = scores / scores.sum(axis=1, keepdims=True)
        found["log_loss"] = float(log_loss(true, shares, labels=classes))
    return found
