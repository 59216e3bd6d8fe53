"""How many labels are wrong: an estimate from votes that have not seen them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SUREST = 0.2  # share of the rows by which the rate of wrong labels is estimated, at least


def estimated_rate(votes: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """Estimate which share of the labels is wrong.

    It is the lowest rate of disagreement among the rows that the votes are surest of, at least a fifth of
    all: rows that are easy to tell apart are wrong as often as others, if labels went wrong by chance.

    Parameters
    ----------
    votes : ndarray of shape (n, n_classes)
        Scores of the rows by classifiers that have not seen them.
    labels : int32 array of shape (n,)
        The given labels, as positions of classes.

    Returns
    -------
    float
        The share, 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.noise import estimated_rate
    >>> votes = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8], [0.6, 0.4]])
    >>> estimated_rate(votes, np.array([0, 0, 1, 0, 1]))
    0.0
    """
    if not len(labels) or votes.shape[1] < 2:
        return 0.0
    *_, second, first = np.sort(votes, axis=1).T
    surest = np.argsort(second - first, kind="stable")
    differ = votes.argmax(axis=1)[surest] != labels[surest]
    rates = differ.cumsum() / np.arange(1, len(labels) + 1)
    return float(rates[round(SUREST * len(labels)) :].min())
