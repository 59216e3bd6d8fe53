"""Label noise: change labels on purpose, to see how well a classifier copes."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from kfhe.validation import encode_labels

SUREST = 0.2  # share of the rows by which the rate of wrong labels is estimated, at least


def flip_labels(y: ArrayLike, rate: float, *, random_state: Any, model: str = "uniform") -> NDArray[Any]:
    """Give a share of the labels another class.

    Parameters
    ----------
    y : array-like of shape (n,)
        The labels.
    rate : float
        Share of labels to change, 0 to 1. Exactly ``round(n * rate)`` rows change.
    random_state : int, Generator, RandomState or None
        Where the randomness comes from.
    model : {"uniform"}, default="uniform"
        Which rows change, and to what. "uniform": every row is as likely to change as any other, to
        each of the other classes alike.

    Returns
    -------
    ndarray of shape (n,)
        A copy of `y` with the changed labels.

    Examples
    --------
    >>> from kfhe.noise import flip_labels
    >>> flip_labels(["a", "b", "b", "a"], 0.5, random_state=0)
    array(['b', 'a', 'b', 'a'], dtype='<U1')
    """
    if model != "uniform":
        raise ValueError(f"model must be 'uniform', got {model!r}")
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= rate <= 1:
        raise ValueError(f"rate must be a number from 0 to 1, got {rate!r}")
    classes, codes = encode_labels(y, "flip_labels")
    n_flips = round(len(codes) * rate)
    if n_flips and len(classes) < 2:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}): there is no other to change to")
    generator = random_state
    if not isinstance(random_state, np.random.Generator):
        generator = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    rows = generator.choice(len(codes), size=n_flips, replace=False)
    # A shift by 1 .. c - 1 classes reaches each of the others with equal chance.
    shifts = generator.integers(1, max(2, len(classes)), size=n_flips)
    codes[rows] = (codes[rows] + shifts) % len(classes)
    noisy: NDArray[Any] = classes[codes]
    return noisy


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
