"""Emphasis: how misses become the measured sampling weights.

An emphasis is a function of the current sampling weights and of the rows that the measurement
misclassified. It returns the weights that the weight filter takes as its measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.arrays import exact_sum, margins, multiply
from kfhe.filter_bank import READ_EVERY, WARM_UP, FilterBank
from kfhe.kalman import Filter
from kfhe.rows import TrainingRows

Floats = NDArray[np.float64]
Missed = NDArray[np.bool_]
Emphasis = Callable[[Floats, Missed], Floats]

FLOOR = 0.001  # so much more than nothing is the weight of a row that is surely right


def exponential(weights: Floats, missed: Missed, *, rows: TrainingRows) -> Floats:
    """KFHE-e: a miss multiplies a row's weight by e. The result is not normalised."""
    n = rows.n_rows
    return multiply(weights, missed, exp(1 / n), exp(1 + 1 / n), rows.n_threads)


def linear(weights: Floats, missed: Missed, *, rows: TrainingRows) -> Floats:
    """KFHE-l: a miss adds a row's weight to its base weight. The result sums to 1."""
    return rows.normalised(rows.base + weights * missed)


def margin(weights: Floats, missed: Missed, *, rows: TrainingRows, model: Filter) -> Floats:
    """Weights by the margins of the state, whatever they were before. The result sums to 1."""
    return rows.normalised(margin_weights(rows.base, rows.labels, model.state))


def margin_weights(base: Floats, labels: NDArray[np.int32], scores: Floats) -> Floats:
    """Return base weights that are larger for rows which are missed, or nearly so.

    A row's margin is by how much its label leads before the next class.
    """
    return base * ((1 - margins(scores, labels)) / 2 + FLOOR)


class ByMargin:
    """The robust classifier's: while labels look clean, rows that are nearly missed get more weight.

    Margins are those of the scores of trees that have not seen the row. Once the bank has found noise, rows
    that are missed are wrong as often as they are hard, and all weigh the same again.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    bank : FilterBank
        What is known so far.
    """

    def __init__(self, rows: TrainingRows, bank: FilterBank) -> None:
        self._rows, self._bank = rows, bank

    def __call__(self, weights: Floats, missed: Missed) -> Floats:
        """Return the weights as they are between two readings of the bank, else new ones."""
        bank, rows = self._bank, self._rows
        if bank.n_components < WARM_UP or bank.n_components % READ_EVERY:
            return weights
        if not bank.clean:
            return rows.base
        return margin_weights(rows.base, rows.labels, bank.state)


def resolve(emphasis: str | Emphasis, rows: TrainingRows, model: Filter) -> Emphasis:
    """Turn the classifier's ``emphasis`` parameter into a function, for a run's rows and model filter."""
    if callable(emphasis):
        return partial(_checked, emphasis)
    named: dict[str, Emphasis] = {
        "exponential": partial(exponential, rows=rows),
        "linear": partial(linear, rows=rows),
        "margin": partial(margin, rows=rows, model=model),
    }
    return named[emphasis]


def _checked(emphasis: Emphasis, weights: Floats, missed: Missed) -> Floats:
    """Call the user's own emphasis, on copies, and check what it returns."""
    returned = emphasis(weights.copy(), missed.copy())
    try:
        measured = np.asarray(returned, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        found = type(returned).__name__
        raise ValueError(f"emphasis returned a {found}, expected an array with one weight per row") from None
    if measured.shape != weights.shape:
        raise ValueError(
            f"emphasis returned shape {measured.shape}, expected {weights.shape}: one weight per row"
        )
    if not (measured >= 0).all() or not np.isfinite(exact_sum(measured)):
        raise ValueError(
            "emphasis returned NaN, infinite or negative weights, expected at least 0 and a finite sum"
        )
    return measured
