"""What displays of predictions are given: labels, the scores of classes, and a fitted classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

Floats = NDArray[np.float64]


def coded(y_true: Any, y_score: Any, classes: Any) -> tuple[NDArray[np.intp], Floats, NDArray[Any]]:
    """Return labels as positions of classes, the scores of all classes, and the classes, checked.

    Without `classes` they are the labels that there are. Scores of one column are those of the second of two.
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
        raise ValueError(f"there are labels that are none of the classes: {', '.join(unknown[:5])}")
    codes = np.array([positions[label] for label in labels.tolist()], dtype=np.intp)
    return codes, scores, classes


def scores_of(estimator: Any, X: Any) -> Floats:
    """Return the probabilities that a fitted classifier gives its classes."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"this display needs probabilities; {type(estimator).__name__} has no predict_proba")
    return estimator.predict_proba(X)
