"""Emphasis: how misses become the measured sampling weights.

An emphasis is a function of the current sampling weights and of the rows that the measurement
misclassified. It returns the measured weights for the weight filter.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.arrays import exact_sum, margins
from kfhe.filter_bank import READ_EVERY, WARM_UP, FilterBank
from kfhe.kalman import Filter
from kfhe.rows import TrainingRows

Floats = NDArray[np.float64]
Missed = NDArray[np.bool_]
Emphasis = Callable[[Floats, Missed], Floats]

FLOOR = 0.001  # minimum weight of a row that is certainly right


def exponential(weights: Floats, missed: Missed, *, rows: TrainingRows) -> Floats:
    """KFHE-e: a miss multiplies a row's weight by e. The result is not normalised."""
    n = rows.n_rows
    return rows.raised(weights, missed, exp(1 / n), exp(1 + 1 / n))


def linear(weights: Floats, missed: Missed, *, rows: TrainingRows) -> Floats:
    """KFHE-l: a miss adds a row's weight to its base weight. The result sums to 1."""
    return rows.normalised(rows.base + weights * missed)


def margin(weights: Floats, missed: Missed, *, rows: TrainingRows, model: Filter) -> Floats:
    """Weights by the margins of the state, regardless of previous weights. The result sums to 1."""
    return rows.normalised(margin_weights(rows.base, rows.labels, model.state))


def margin_weights(base: Floats, labels: NDArray[np.int32], scores: Floats) -> Floats:
    """Return base weights that are raised for rows which are missed, or nearly missed.

    The margin of a row is the score of its label minus the highest other score.
    """
    return base * ((1 - margins(np.asarray(scores), labels)) / 2 + FLOOR)


class ByMargin:
    """The robust classifier's emphasis: nearly missed rows get more weight while labels look clean.

    Margins come from the scores of trees that have not seen the row. Once the bank has detected noise, missed
    rows are as likely to be wrong as hard, and all weights are equal again.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    bank : FilterBank
        The bank of filters.
    """

    def __init__(self, rows: TrainingRows, bank: FilterBank) -> None:
        self._rows, self._bank = rows, bank

    def __call__(self, weights: Floats, missed: Missed) -> Floats:
        """Keep the weights until the bank is evaluated again, then compute new ones."""
        bank, rows = self._bank, self._rows
        if bank.n_components < WARM_UP or bank.n_components % READ_EVERY:
            return weights
        if not bank.clean:
            return rows.base
        return margin_weights(rows.base, rows.labels, bank.state)


def resolve(emphasis: str | Emphasis, rows: TrainingRows, model: Filter) -> Emphasis:
    """Turn the parameter ``emphasis`` into a function for a run."""
    if callable(emphasis):
        return partial(_checked, emphasis)
    named: dict[str, Emphasis] = {
        "exponential": partial(exponential, rows=rows),
        "linear": partial(linear, rows=rows),
        "margin": partial(margin, rows=rows, model=model),
    }
    return named[emphasis]


def _checked(emphasis: Emphasis, weights: Floats, missed: Missed) -> Floats:
    """Call the user's emphasis on copies, and check its result."""
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
