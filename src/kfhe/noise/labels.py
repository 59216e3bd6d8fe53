"""Label noise: functions that change labels, or thin out classes."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from kfhe.noise.margins import by_margin, by_neighbours, draw_low
from kfhe.validation import check_same_length, encode_labels, readable_table


def checked_rate(rate: Any, most: float = 1.0, why: str = "") -> float:
    """Return a rate; raise unless it is a number from 0 to `most`."""
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= most:
        raise ValueError(f"rate must be a number from 0 to {most:g}{why}, got {rate!r}")
    return float(rate)


def generator_of(random_state: Any) -> np.random.Generator:
    """Return the generator for a `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


Codes = NDArray[np.int32]
Flip = Callable[[Codes, int, int, np.random.Generator, Any], Codes]


def flip_labels(
    y: ArrayLike, rate: float, *, random_state: Any, model: str = "uniform", X: Any = None
) -> NDArray[Any]:
    """Change a share of the labels to another class.

    Parameters
    ----------
    y : array-like of shape (n,)
        The labels.
    rate : float
        Share of labels to change, 0 to 1; at most 0.5 for all models but "uniform". Exactly
        ``round(n * rate)`` rows change.
    random_state : int, Generator, RandomState or None
        Seed.
    model : {"uniform", "pairwise", "border", "neighbourhood"}, default="uniform"
        Which rows change, and to what:

        - "uniform": each row with the same probability, to any other class;
        - "pairwise": each row with the same probability, to the next class, and from the last class to the
          first;
        - "border": rows with a small margin, by a random forest that has not seen them, to the most probable
          other class;
        - "neighbourhood": rows near a row of another class, compared with their own, to that class.

        In the last two, the probability is one half at the border and falls with the distance from it.
    X : array or data frame of shape (n, n_features), default=None
        The rows, for "border" and "neighbourhood".

    Returns
    -------
    ndarray of shape (n,)
        A copy of `y` with the changed labels.

    Examples
    --------
    >>> from kfhe.noise import flip_labels
    >>> flip_labels(["a", "b", "b", "a"], 0.5, random_state=0)
    array(['b', 'a', 'b', 'a'], dtype='<U1')

    Mistakes mostly where classes meet:

    >>> import numpy as np
    >>> X, y = np.arange(100).reshape(-1, 1), np.repeat([0, 1], 50)
    >>> np.flatnonzero(flip_labels(y, 0.05, random_state=0, model="neighbourhood", X=X) != y)
    array([40, 49, 51, 52, 60])
    """
    if model not in FLIPS:
        raise ValueError(f"model must be one of {', '.join(map(repr, FLIPS))}, got {model!r}")
    rate = checked_rate(rate, MOST[model], "" if model == "uniform" else f" for model={model!r}")
    classes, codes = encode_labels(y, "flip_labels")
    n_flips = round(len(codes) * rate)
    if n_flips and len(classes) < 2:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}): there is no other to change to")
    if model in NEEDS_X:
        if X is None:
            raise ValueError(f"model={model!r} needs the rows as well: X")
        X = readable_table(X, "flip_labels")
        check_same_length(X, codes)
    generator = generator_of(random_state)
    if n_flips:
        codes = FLIPS[model](codes, len(classes), n_flips, generator, X)
    noisy: NDArray[Any] = classes[codes]
    return noisy


def flip_by_transition(y: ArrayLike, transition: ArrayLike, *, random_state: Any) -> NDArray[Any]:
    """Change labels by a matrix of probabilities.

    Parameters
    ----------
    y : array-like of shape (n,)
        The labels.
    transition : array-like of shape (n_classes, n_classes)
        Each row has the shares of a class that get each label, and sums to 1. Classes are in sorted order.
        Exactly ``n_k - round(n_k * transition[k, k])`` of the n_k rows of class k change.
    random_state : int, Generator, RandomState or None
        Seed.

    Returns
    -------
    ndarray of shape (n,)
        A copy of `y` with the changed labels.

    Examples
    --------
    A third of the cats become dogs, and no dog becomes a cat:

    >>> from kfhe.noise import flip_by_transition
    >>> y = ["cat", "cat", "cat", "dog", "dog"]
    >>> flip_by_transition(y, [[2 / 3, 1 / 3], [0, 1]], random_state=0)
    array(['cat', 'dog', 'cat', 'dog', 'dog'], dtype='<U3')
    """
    classes, codes = encode_labels(y, "flip_by_transition")
    shares = _checked_transition(transition, classes)
    generator = generator_of(random_state)
    noisy = codes.copy()
    for code, row in enumerate(shares):
        members = generator.permutation(np.flatnonzero(codes == code))
        others = np.where(np.arange(len(classes)) == code, 0.0, row)
        n_flips = len(members) - round(len(members) * row[code])
        if n_flips and others.any():
            noisy[members[:n_flips]] = generator.choice(len(classes), n_flips, p=others / others.sum())
    changed: NDArray[Any] = classes[noisy]
    return changed


def _checked_transition(transition: ArrayLike, classes: NDArray[Any]) -> NDArray[np.float64]:
    shares = np.asarray(transition, dtype=np.float64)
    n_classes = len(classes)
    if shares.shape != (n_classes, n_classes):
        raise ValueError(
            f"transition must be of shape ({n_classes}, {n_classes}), for the classes "
            f"{', '.join(map(str, classes))}; got {shares.shape}"
        )
    if not (shares >= 0).all():  # also false for NaN
        raise ValueError("transition must hold shares from 0 to 1, got a negative or missing one")
    wrong = np.flatnonzero(~np.isclose(shares.sum(axis=1), 1))
    if len(wrong):
        raise ValueError(
            f"each row of transition must sum to 1, that of class {classes[wrong[0]]!s} sums to "
            f"{shares[wrong[0]].sum():g}"
        )
    return shares


def _uniform(codes: Codes, n_classes: int, n_flips: int, generator: np.random.Generator, X: Any) -> Codes:
    rows = generator.choice(len(codes), size=n_flips, replace=False)
    # Shifts by 1 to c - 1 classes are equally likely.
    shifts = generator.integers(1, max(2, n_classes), size=n_flips)
    codes[rows] = (codes[rows] + shifts) % n_classes
    return codes


def _pairwise(codes: Codes, n_classes: int, n_flips: int, generator: np.random.Generator, X: Any) -> Codes:
    rows = generator.choice(len(codes), size=n_flips, replace=False)
    codes[rows] = (codes[rows] + 1) % n_classes
    return codes


def _border(codes: Codes, n_classes: int, n_flips: int, generator: np.random.Generator, X: Any) -> Codes:
    margins, others = by_margin(X, codes, generator)
    rows = draw_low(margins, n_flips, generator)
    codes[rows] = others[rows]
    return codes


def _neighbourhood(
    codes: Codes, n_classes: int, n_flips: int, generator: np.random.Generator, X: Any
) -> Codes:
    nearness, others = by_neighbours(X, codes)
    rows = draw_low(nearness, n_flips, generator)
    codes[rows] = others[rows]
    return codes


FLIPS: dict[str, Flip] = {
    "uniform": _uniform,
    "pairwise": _pairwise,
    "border": _border,
    "neighbourhood": _neighbourhood,
}
MOST = {name: 1.0 if name == "uniform" else 0.5 for name in FLIPS}  # higher rates make most labels wrong
NEEDS_X = ("border", "neighbourhood")


def thin_classes(y: ArrayLike, rate: float, *, random_state: Any) -> NDArray[np.intp]:
    """Select rows so that some classes become rare.

    The classes are put into random order. The first one keeps all of its rows, the second one ``1 - rate`` of
    them, the third one ``(1 - rate) ** 2``, and so on, rounded. Each class keeps at least one row.

    Parameters
    ----------
    y : array-like of shape (n,)
        The labels.
    rate : float
        Share that each class loses compared with the one before, 0 to 1.
    random_state : int, Generator, RandomState or None
        Seed.

    Returns
    -------
    int array
        Positions of the rows to keep, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.noise import thin_classes
    >>> y = np.repeat(["a", "b", "c"], 100)
    >>> kept = thin_classes(y, 0.5, random_state=0)
    >>> np.unique(y[kept], return_counts=True)
    (array(['a', 'b', 'c'], dtype='<U1'), array([ 25, 100,  50]))
    """
    rate = checked_rate(rate)
    classes, codes = encode_labels(y, "thin_classes")
    generator = generator_of(random_state)
    kept = []
    for place, code in enumerate(generator.permutation(len(classes))):
        members = generator.permutation(np.flatnonzero(codes == code))
        kept.append(members[: max(1, round(len(members) * (1 - rate) ** place))])
    return np.sort(np.concatenate(kept))
