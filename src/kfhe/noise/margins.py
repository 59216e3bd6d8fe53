"""Rows near the border of classes, by the margins of a forest or by distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.columns import open_columns

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


def draw_low(values: Floats, n_rows: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Draw distinct rows, mostly those of low values.

    The row with the lowest value is drawn with probability 1/2. From row to row the probability falls by the
    same factor, chosen so that `n_rows` rows are drawn. Only the order of the values matters, so the result
    is comparable between tables.
    """
    n = len(values)
    shuffled = generator.permutation(n)  # equal values are in random order
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    chances = np.empty(n)
    chances[order] = _fading(n, n_rows)
    # Systematic sampling: exactly this number of rows, each with its own probability
    shuffled = generator.permutation(n)
    marks = generator.random() + np.arange(n_rows)
    return shuffled[np.searchsorted(chances[shuffled].cumsum(), marks, side="right").clip(max=n - 1)]


def _fading(n: int, total: int) -> Floats:
    """Return n probabilities that start at 1/2, fall by a constant factor, and have a given sum."""
    from scipy.optimize import brentq

    if 2 * total >= n:
        return np.full(n, total / n)
    places = np.arange(n)
    factor = brentq(lambda factor: 0.5 * (factor**places).sum() - total, 0.0, 1.0, xtol=1e-14)
    chances = 0.5 * factor**places
    return chances * (total / chances.sum())


def by_margin(X: Any, codes: Codes, generator: np.random.Generator) -> tuple[Floats, Codes]:
    """Return each row's margin and its most likely other class, by trees that have not seen the row."""
    from sklearn.ensemble import RandomForestClassifier

    seed = int(generator.integers(2**31))
    forest = RandomForestClassifier(min_samples_leaf=5, oob_score=True, random_state=seed)
    scores = np.nan_to_num(forest.fit(_matrix(X), codes).oob_decision_function_)
    rows = np.arange(len(codes))
    own = scores[rows, codes]
    scores[rows, codes] = -1.0
    margins = own - scores.max(axis=1)
    # If other classes are equally likely, as deep inside a class, any of them is chosen
    others = (scores + 1e-9 * generator.random(scores.shape)).argmax(axis=1)
    return margins, others.astype(np.int32)


def by_neighbours(X: Any, codes: Codes) -> tuple[Floats, Codes]:
    """Return how near each row is to another class, compared with its own, and that class.

    Values near 0 are close to the other class, 0.5 is equally close to both, and 1 coincides with its own
    class.
    """
    from sklearn.neighbors import NearestNeighbors

    matrix = _matrix(X)
    distances = np.empty((len(codes), codes.max() + 1))
    for code in range(distances.shape[1]):
        members = codes == code
        search = NearestNeighbors().fit(matrix[members])
        distances[~members, code] = search.kneighbors(matrix[~members], 1)[0][:, 0]
        # A row's nearest neighbour in its own class is itself, so the second one is used
        distances[members, code] = (
            search.kneighbors(matrix[members], 2)[0][:, 1] if members.sum() > 1 else np.inf
        )
    rows = np.arange(len(codes))
    own = distances[rows, codes]
    distances[rows, codes] = np.inf
    others = distances.argmin(axis=1).astype(np.int32)
    nearest = distances[rows, others]
    together = own + nearest
    nearness = np.divide(nearest, together, out=np.full(len(codes), 0.5), where=together > 0)
    return nearness, others


def _matrix(X: Any) -> Floats:
    """Return a table as numbers on one scale: one-hot categories, and missing numbers as the median."""
    columns = open_columns(X)
    parts = []
    for j in range(columns.n_columns):
        if columns.is_text(j):
            codes, values = columns.factorize(j)
            parts.append((codes[:, None] == np.arange(len(values))).astype(np.float64))
        else:
            parts.append(_scaled(columns.numbers(j))[:, None])
    return np.hstack(parts)


def _scaled(numbers: Floats) -> Floats:
    present = ~np.isnan(numbers)
    if not present.any():
        return np.zeros(len(numbers))
    filled = np.where(present, numbers, np.median(numbers[present]))
    spread = filled.std()
    return (filled - filled.mean()) / spread if spread > 0 else np.zeros(len(numbers))
