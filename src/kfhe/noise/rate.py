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
    n_differ, n_rows = _among_the_surest(votes, labels)
    return n_differ / n_rows if n_rows else 0.0


def estimated_rate_range(
    votes: NDArray[np.float64], labels: NDArray[np.int32], level: float = 0.9
) -> tuple[float, float]:
    """Return the range that the estimated rate is in, if labels went wrong by chance.

    It is that of Clopper and Pearson for the rows by which `estimated_rate` judges. Mistakes that follow a
    pattern are not in it: the votes learn them.

    Parameters
    ----------
    votes, labels
        As for `estimated_rate`.
    level : float, default=0.9
        The chance that the range covers the rate.

    Returns
    -------
    tuple of (float, float)
        The lowest and highest share, 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.noise import estimated_rate_range
    >>> votes = np.repeat([[0.9, 0.1]], 100, axis=0)
    >>> low, high = estimated_rate_range(votes, (np.arange(100) % 10 == 9).astype(np.int32))
    >>> round(low, 3), round(high, 3)
    (0.012, 0.202)
    """
    from scipy.stats import beta

    n_differ, n_rows = _among_the_surest(votes, labels)
    rest = (1 - level) / 2
    low = beta.ppf(rest, n_differ, n_rows - n_differ + 1) if n_differ else 0.0
    high = beta.ppf(1 - rest, n_differ + 1, n_rows - n_differ) if n_differ < n_rows else 1.0
    return float(low), float(high)


def _among_the_surest(votes: NDArray[np.float64], labels: NDArray[np.int32]) -> tuple[int, int]:
    """Return how many labels the votes disagree with among the surest rows, and how many rows these are.

    Votes on a single class are sure of nothing.
    """
    n, n_classes = votes.shape
    if not n or n_classes < 2:
        return 0, 0
    *_, second, first = np.sort(votes, axis=1).T
    differ = votes.argmax(axis=1) != labels
    counts, rows = differ[np.argsort(second - first, kind="stable")].cumsum(), np.arange(1, n + 1)
    rates = (counts / rows)[round(SUREST * n) :]
    best = n - 1 - int(rates[::-1].argmin())  # of equal rates, that of the most rows
    return int(counts[best]), int(rows[best])
